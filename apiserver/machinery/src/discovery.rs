//! Discovery documents: the groups, versions and resources that are served
//! (k8s.io/apiserver/pkg/endpoints/discovery).
//!
//! If a resource is served in several versions, the first of its kinds is the version in which it is stored.

mod protobuf;

pub use protobuf::encode_document;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::kind::{Kind, Names};
use crate::versions::by_priority;

/// The verbs of every resource.
pub const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The verbs of a status subresource.
pub const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// `/apis`: APIGroupList.
pub fn api_group_list(kinds: &[&dyn Kind]) -> Value {
    let groups: Vec<_> =
        groups(kinds).into_iter().map(|group| Value::Object(group_fields(kinds, group))).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`: APIGroup; `None` for an unknown group.
pub fn api_group(kinds: &[&dyn Kind], group: &str) -> Option<Value> {
    let group = groups(kinds).into_iter().find(|g| *g == group)?;
    let mut fields = group_fields(kinds, group);
    fields.insert("kind".into(), "APIGroup".into());
    fields.insert("apiVersion".into(), "v1".into());
    Some(Value::Object(fields))
}

/// `/apis/GROUP/VERSION`: APIResourceList; `None` for an unknown group or version.
pub fn api_resource_list(kinds: &[&dyn Kind], group: &str, version: &str) -> Option<Value> {
    let resources: Vec<_> =
        of_version(kinds, group, version).flat_map(|kind| api_resources(kinds, kind)).collect();
    let list = json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": format!("{group}/{version}"),
        "resources": resources,
    });
    (!resources.is_empty()).then_some(list)
}

/// `/apis` in the aggregated form: APIGroupDiscoveryList of apidiscovery.k8s.io/v2.
pub fn api_group_discovery_list(kinds: &[&dyn Kind]) -> Value {
    let items: Vec<_> = groups(kinds).into_iter().map(|group| group_discovery(kinds, group)).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

/// Returns the hash of `names`, which are those of the version in which objects are stored; clients compare it.
pub fn storage_version_hash(names: &Names) -> String {
    let hash = Sha256::digest(format!("{}/{}/{}", names.group, names.version, names.kind));
    STANDARD.encode(&hash[..8])
}

fn group_fields(kinds: &[&dyn Kind], group: &str) -> Map<String, Value> {
    let versions: Vec<_> = versions(kinds, group)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    let preferred = versions.first().cloned();
    let mut fields = Map::new();
    fields.insert("name".into(), group.into());
    fields.insert("versions".into(), versions.into());
    fields.insert("preferredVersion".into(), preferred.into());
    fields
}

/// Returns the resource, and its status subresource if it has one.
fn api_resources(kinds: &[&dyn Kind], kind: &dyn Kind) -> Vec<Value> {
    let names = kind.names();
    let mut resource = json!({
        "name": names.plural,
        "singularName": names.singular,
        "namespaced": names.namespaced,
        "kind": names.kind,
        "verbs": VERBS,
        "storageVersionHash": storage_version_hash(stored_names(kinds, names)),
    });
    set_lists(&mut resource, names);
    if !kind.has_status() {
        return vec![resource];
    }
    let status = json!({
        "name": format!("{}/status", names.plural),
        "singularName": "",
        "namespaced": names.namespaced,
        "kind": names.kind,
        "verbs": STATUS_VERBS,
    });
    vec![resource, status]
}

fn group_discovery(kinds: &[&dyn Kind], group: &str) -> Value {
    let versions: Vec<_> = versions(kinds, group)
        .into_iter()
        .map(|version| {
            let resources: Vec<_> = of_version(kinds, group, version).map(resource_discovery).collect();
            json!({"version": version, "freshness": "Current", "resources": resources})
        })
        .collect();
    json!({"metadata": {"name": group}, "versions": versions})
}

fn resource_discovery(kind: &dyn Kind) -> Value {
    let names = kind.names();
    let response = json!({"group": names.group, "version": names.version, "kind": names.kind});
    let status = json!({"subresource": "status", "responseKind": response, "verbs": STATUS_VERBS});
    let mut resource = json!({
        "resource": names.plural,
        "responseKind": response,
        "scope": if names.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": names.singular,
        "verbs": VERBS,
    });
    if kind.has_status() {
        resource["subresources"] = json!([status]);
    }
    set_lists(&mut resource, names);
    resource
}

fn set_lists(resource: &mut Value, names: &Names) {
    for (field, list) in [("shortNames", names.short_names), ("categories", names.categories)] {
        if !list.is_empty() {
            resource[field] = json!(list);
        }
    }
}

fn groups(kinds: &[&dyn Kind]) -> Vec<&'static str> {
    distinct(kinds.iter().map(|kind| kind.names().group))
}

/// Returns the versions of a group, the preferred one first.
fn versions(kinds: &[&dyn Kind], group: &str) -> Vec<&'static str> {
    let names = kinds.iter().map(|kind| kind.names()).filter(|names| names.group == group);
    let mut versions = distinct(names.map(|names| names.version));
    versions.sort_by(|a, b| by_priority(a, b));
    versions
}

/// Returns the names of a resource in the version in which it is stored.
fn stored_names<'k>(kinds: &[&'k dyn Kind], of: &'k Names) -> &'k Names {
    let is_same = |names: &&Names| (names.group, names.plural) == (of.group, of.plural);
    kinds.iter().map(|kind| kind.names()).find(is_same).unwrap_or(of)
}

fn of_version<'k>(
    kinds: &'k [&dyn Kind],
    group: &'k str,
    version: &'k str,
) -> impl Iterator<Item = &'k dyn Kind> {
    let is_of = move |names: &Names| names.group == group && names.version == version;
    kinds.iter().copied().filter(move |kind| is_of(kind.names()))
}

/// Returns each name once, in the order of the kinds.
fn distinct(names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{NAMES, Thing};

    fn with_kinds<T>(test: impl Fn(&[&dyn Kind]) -> T) -> T {
        test(&[&Thing::namespaced(), &Thing::cluster()])
    }

    #[test]
    fn a_group_prefers_its_only_version() {
        let group = with_kinds(|kinds| api_group(kinds, "g.io")).unwrap();
        let version = json!({"groupVersion": "g.io/v1", "version": "v1"});
        assert_eq!(
            group,
            json!({"kind": "APIGroup", "apiVersion": "v1", "name": "g.io", "versions": [version], "preferredVersion": version})
        );
        assert_eq!(with_kinds(api_group_list)["groups"][0]["name"], "g.io");
        assert_eq!(with_kinds(|kinds| api_group(kinds, "x")), None);
    }

    #[test]
    fn a_group_prefers_the_version_of_the_highest_priority() {
        let stored = Thing::namespaced();
        let kinds: [&dyn Kind; 3] = [&stored, &stored.in_version("v2beta1"), &stored.in_version("v2")];
        let group = api_group(&kinds, "g.io").unwrap();
        let versions: Vec<_> = group["versions"].as_array().unwrap().iter().map(|v| &v["version"]).collect();
        assert_eq!(versions, ["v2", "v1", "v2beta1"]);
        assert_eq!(group["preferredVersion"]["groupVersion"], "g.io/v2");
        let document = api_group_discovery_list(&kinds);
        let versions = document["items"][0]["versions"].as_array().unwrap();
        let versions: Vec<_> = versions.iter().map(|v| v["version"].as_str().unwrap()).collect();
        assert_eq!(versions, ["v2", "v1", "v2beta1"]);
        // Every version names the stored one, so that clients see when that changes.
        let hash_in = |version| {
            let list = api_resource_list(&kinds, "g.io", version).unwrap();
            list["resources"][0]["storageVersionHash"].clone()
        };
        assert_eq!(hash_in("v1"), storage_version_hash(stored.names()));
        assert_eq!([hash_in("v2"), hash_in("v2beta1")], [hash_in("v1"), hash_in("v1")]);
    }

    #[test]
    fn resources_have_a_status_each() {
        let list = with_kinds(|kinds| api_resource_list(kinds, "g.io", "v1")).unwrap();
        let names: Vec<_> =
            list["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["things", "things/status", "others", "others/status"]);
        assert_eq!(list["resources"][0]["shortNames"], json!(["th"]));
        assert_eq!(list["resources"][2].get("shortNames"), None);
        assert_eq!(list["resources"][3]["namespaced"], false);
        assert_eq!(with_kinds(|kinds| api_resource_list(kinds, "g.io", "v2")), None);
    }

    #[test]
    fn the_storage_version_hash_is_that_of_kubernetes() {
        let lease = Names { group: "coordination.k8s.io", kind: "Lease", ..NAMES };
        assert_eq!(storage_version_hash(&lease), "gqkMMb/YqFM=");
    }

    #[test]
    fn aggregated_discovery_tells_the_kind_of_subresources_too() {
        let value = with_kinds(api_group_discovery_list);
        let resource = &value["items"][0]["versions"][0]["resources"][0];
        assert_eq!(resource["subresources"][0]["responseKind"], resource["responseKind"]);
        assert_eq!(resource["scope"], "Namespaced");
        assert_eq!(value, with_kinds(api_group_discovery_list));
    }
}
