//! Discovery documents in protobuf (k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto and
//! k8s.io/api/apidiscovery/v2/generated.proto).

use bytes::Bytes;
use serde_json::{Value, json};

use crate::protobuf::{Envelope, encode_message};
use crate::schema::common::{list, meta_schema, object, optional, text};
use crate::schema::{Field, ListType, Schema, Shape};

/// Returns a discovery document in its envelope. `document` is what a function of [`discovery`](super) returned for an
/// APIGroupList, APIGroup or APIResourceList, or the JSON of an APIGroupDiscoveryList; the message of any other kind
/// is empty.
pub fn encode_document(document: &Value) -> Bytes {
    let word = |field: &str| document[field].as_str().unwrap_or_default();
    let mut document = document.clone();
    let message = match word("kind") {
        "APIGroupList" => struct_of(vec![structs("groups", 1, group())]),
        "APIGroup" => group(),
        "APIResourceList" => {
            wrap_verbs(&mut document);
            struct_of(vec![name("groupVersion", 1), structs("resources", 2, resource())])
        }
        "APIGroupDiscoveryList" => group_discovery_list(),
        _ => struct_of(Vec::new()),
    };
    let raw = document.as_object().map(|fields| encode_message(fields, &message)).unwrap_or_default();
    Envelope::seal(word("apiVersion"), word("kind"), &raw)
}

/// The verbs of a resource are a list in JSON, and a message with a list (metav1.Verbs) in protobuf.
fn wrap_verbs(resource_list: &mut Value) {
    for resource in resource_list["resources"].as_array_mut().into_iter().flatten() {
        resource["verbs"] = json!({"items": resource["verbs"].take()});
    }
}

fn group() -> Schema {
    let version = || struct_of(vec![name("groupVersion", 1), name("version", 2)]);
    struct_of(vec![
        name("name", 1),
        structs("versions", 2, version()),
        optional("preferredVersion", 3, version()),
    ])
}

fn resource() -> Schema {
    struct_of(vec![
        name("name", 1),
        optional("namespaced", 2, Schema::new("", Shape::Boolean)),
        name("kind", 3),
        optional("verbs", 4, struct_of(vec![names("items", 1)])),
        names("shortNames", 5),
        name("singularName", 6),
        names("categories", 7),
        name("group", 8),
        name("version", 9),
        name("storageVersionHash", 10),
    ])
}

fn group_discovery_list() -> Schema {
    let list_meta = struct_of(vec![name("selfLink", 1), name("resourceVersion", 2), name("continue", 3)]);
    let group =
        struct_of(vec![optional("metadata", 1, meta_schema()), structs("versions", 2, version_discovery())]);
    struct_of(vec![optional("metadata", 1, list_meta), structs("items", 2, group)])
}

fn version_discovery() -> Schema {
    let kind = || struct_of(vec![name("group", 1), name("version", 2), name("kind", 3)]);
    let subresource =
        struct_of(vec![name("subresource", 1), optional("responseKind", 2, kind()), names("verbs", 4)]);
    let resource = struct_of(vec![
        name("resource", 1),
        optional("responseKind", 2, kind()),
        name("scope", 3),
        name("singularResource", 4),
        names("verbs", 5),
        names("shortNames", 6),
        names("categories", 7),
        structs("subresources", 8, subresource),
    ]);
    struct_of(vec![name("version", 1), structs("resources", 2, resource), name("freshness", 3)])
}

fn struct_of(fields: Vec<Field>) -> Schema {
    object("", "", fields)
}

fn structs(name: &'static str, number: u32, items: Schema) -> Field {
    optional(name, number, list("", items, ListType::Atomic))
}

fn name(name: &'static str, number: u32) -> Field {
    text(name, number, "")
}

fn names(name: &'static str, number: u32) -> Field {
    structs(name, number, Schema::new("", Shape::String))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::discovery::{STATUS_VERBS, VERBS, storage_version_hash};
    use crate::kind::Names;
    use crate::testing::NAMES;

    /// kube-apiserver 1.36.3 answers these bytes for `/apis/policy` and `/apis/policy/v1`.
    #[test]
    fn plain_documents_are_the_bytes_of_kube_apiserver() {
        let version = json!({"groupVersion": "policy/v1", "version": "v1"});
        let group = json!({
            "kind": "APIGroup", "apiVersion": "v1", "name": "policy",
            "versions": [version], "preferredVersion": version,
        });
        assert_eq!(encode_document(&group).escape_ascii().to_string(), GROUP.escape_ascii().to_string());
        let resources = json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "policy/v1",
            "resources": [
                {
                    "name": "poddisruptionbudgets", "singularName": "poddisruptionbudget", "namespaced": true,
                    "kind": "PodDisruptionBudget", "verbs": VERBS, "shortNames": ["pdb"],
                    "storageVersionHash": storage_version_hash(&BUDGET),
                },
                {
                    "name": "poddisruptionbudgets/status", "singularName": "", "namespaced": true,
                    "kind": "PodDisruptionBudget", "verbs": STATUS_VERBS,
                },
            ],
        });
        assert_eq!(
            encode_document(&resources).escape_ascii().to_string(),
            RESOURCES.escape_ascii().to_string()
        );
    }

    /// A list holds its groups as they are encoded alone.
    #[test]
    fn a_list_of_groups_holds_each_group() {
        let group = json!({"kind": "APIGroup", "apiVersion": "v1", "name": "g.io", "versions": []});
        let list = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]});
        let expected = b"k8s\0\n\x12\n\x02v1\x12\x0cAPIGroupList\x12\x08\n\x06\n\x04g.io\x1a\0\"\0";
        assert_eq!(encode_document(&list).escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    /// kube-apiserver 1.36.3 has these bytes for the group `policy` in its aggregated document.
    #[test]
    fn aggregated_discovery_is_the_bytes_of_kube_apiserver() {
        let kind = json!({"group": "", "version": "", "kind": "PodDisruptionBudget"});
        let list = json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
            "items": [{
                "metadata": {"name": "policy"},
                "versions": [{
                    "version": "v1", "freshness": "Current",
                    "resources": [{
                        "resource": "poddisruptionbudgets", "responseKind": kind, "scope": "Namespaced",
                        "singularResource": "poddisruptionbudget", "verbs": VERBS, "shortNames": ["pdb"],
                        "subresources": [{"subresource": "status", "responseKind": kind, "verbs": STATUS_VERBS}],
                    }],
                }],
            }],
        });
        let enveloped = encode_document(&list);
        let envelope = Envelope::open(&enveloped).unwrap();
        assert_eq!(
            (&*envelope.api_version, &*envelope.kind),
            ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList")
        );
        let list_meta = b"\n\x06\n\0\x12\0\x1a\0";
        let item = envelope.raw.strip_prefix(list_meta).unwrap().strip_prefix(b"\x12").unwrap();
        assert!(item.ends_with(AGGREGATED_ITEM), "{}", item.escape_ascii());
    }

    const BUDGET: Names = Names { group: "policy", kind: "PodDisruptionBudget", ..NAMES };
    const GROUP: &[u8] =
        b"k8s\0\n\x0e\n\x02v1\x12\x08APIGroup\x12*\n\x06policy\x12\x0f\n\tpolicy/v1\x12\x02v1\x1a\x0f\n\tp\
        olicy/v1\x12\x02v1\x1a\0\"\0";
    const RESOURCES: &[u8] =
        b"k8s\0\n\x15\n\x02v1\x12\x0fAPIResourceList\x12\x80\x02\n\tpolicy/v1\x12\x9e\x01\n\x14poddisrupti\
        onbudgets\x10\x01\x1a\x13PodDisruptionBudget\"C\n\x06create\n\x06delete\n\x10deletecollection\n\x03\
        get\n\x04list\n\x05patch\n\x06update\n\x05watch*\x03pdb2\x13poddisruptionbudgetB\0J\0R\x0cEVWiDm\
        WqyJw=\x12R\n\x1bpoddisruptionbudgets/status\x10\x01\x1a\x13PodDisruptionBudget\"\x14\n\x03get\n\
        \x05patch\n\x06update2\0B\0J\0R\0\x1a\0\"\0";
    const AGGREGATED_ITEM: &[u8] =
        b"\n\x16\n\x06policy\x12\0\x1a\0\"\0*\x002\x008\0B\0\x12\xe3\x01\n\x02v1\x12\xd3\x01\n\x14poddisruptio\
        nbudgets\x12\x19\n\0\x12\0\x1a\x13PodDisruptionBudget\x1a\nNamespaced\"\x13poddisruptionbudget*\x06\
        create*\x06delete*\x10deletecollection*\x03get*\x04list*\x05patch*\x06update*\x05watch2\x03pdbB7\
        \n\x06status\x12\x19\n\0\x12\0\x1a\x13PodDisruptionBudget\"\x03get\"\x05patch\"\x06update\x1a\x07\
        Current";
}
