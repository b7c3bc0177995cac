//! The documents that `kubectl explain` and `--validate` read and that the aggregator merges.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::metav1::{Condition, LabelSelector, ObjectMeta};
use crate::schema::{ApiType, ListType, PatchStrategy, Schema, Shape};
use crate::testing::Thing;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

fn v2() -> Value {
    v2_document(&[&Thing::namespaced(), &Thing::cluster()], "Test", "v1.2.3")
}

fn v3() -> Value {
    v3_document(&[&Thing::namespaced()], "Test", "v1.2.3")
}

/// Collects all strings under a `$ref`.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|v| references(v, found));
        }
        Value::Array(items) => items.iter().for_each(|v| references(v, found)),
        _ => (),
    }
}

#[test]
fn every_reference_leads_somewhere() {
    for (document, root, prefix) in
        [(v2(), "/definitions", "#/definitions/"), (v3(), "/components/schemas", "#/components/schemas/")]
    {
        let (definitions, mut found) = (document.pointer(root).unwrap(), Vec::new());
        references(&document, &mut found);
        assert!(found.len() > 50);
        for reference in found {
            assert!(definitions.get(reference.strip_prefix(prefix).unwrap()).is_some(), "{reference}");
        }
    }
}

#[test]
fn paths_are_those_of_kubernetes() {
    let document = v2();
    let paths: Vec<_> = document["paths"].as_object().unwrap().keys().cloned().collect();
    let mut expected = [
        "/apis/g.io/v1/",
        "/apis/g.io/v1/namespaces/{namespace}/things",
        "/apis/g.io/v1/namespaces/{namespace}/things/{name}",
        "/apis/g.io/v1/namespaces/{namespace}/things/{name}/status",
        "/apis/g.io/v1/others",
        "/apis/g.io/v1/others/{name}",
        "/apis/g.io/v1/others/{name}/status",
        "/apis/g.io/v1/things",
    ];
    expected.sort_unstable();
    let mut paths: Vec<_> = paths.iter().map(String::as_str).collect();
    paths.sort_unstable();
    assert_eq!(paths, expected);
}

#[test]
fn operation_ids_are_unique() {
    let document = v2();
    let mut ids: Vec<_> = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|p| p.as_object().unwrap().values())
        .filter_map(|o| o.get("operationId").and_then(Value::as_str))
        .collect();
    assert!(
        ids.contains(&"patchGIoV1NamespacedThingStatus") && ids.contains(&"listGIoV1ThingForAllNamespaces")
    );
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn patch_tells_kubectl_what_it_takes() {
    for (document, path) in [(v2(), "parameters"), (v3(), "parameters")] {
        let patch = &document["paths"]["/apis/g.io/v1/namespaces/{namespace}/things/{name}"]["patch"];
        let names: Vec<_> =
            patch[path].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"fieldValidation") && names.contains(&"force"), "{names:?}");
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({"group": "g.io", "version": "v1", "kind": "Thing"})
        );
    }
    assert_eq!(v2()["paths"]["/apis/g.io/v1/others/{name}"]["patch"]["consumes"], json!(PATCH_TYPES));
}

#[test]
fn lists_of_the_schema_keep_their_merge_keys() {
    let document = v2();
    let items = &document["definitions"]["io.k8s.api.g.v1.ThingSpec"]["properties"]["items"];
    assert_eq!(
        items,
        &json!({
            "description": "Which.",
            "type": "array",
            "items": {"$ref": "#/definitions/io.k8s.api.g.v1.Item"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "name",
        })
    );
}

#[test]
fn a_struct_that_patches_replace_says_so() {
    let replaced = Schema { patch: PatchStrategy::Replace, ..LabelSelector::schema() };
    let merged = LabelSelector::schema();
    let of = |schema| definitions::render(schema)["x-kubernetes-patch-strategy"].clone();
    assert_eq!((of(&replaced), of(&merged)), (json!("replace"), Value::Null));
}

/// `kubectl explain` prints the description of the field and that of the struct, one after the other.
#[test]
fn a_struct_that_is_described_at_its_field_is_not_described_again() {
    let definitions = &v2()["definitions"];
    assert_eq!(definitions["io.k8s.api.g.v1.ThingSpec"]["description"], Value::Null);
    assert_ne!(definitions["io.k8s.api.g.v1.Thing"]["description"], Value::Null);
}

#[test]
fn references_with_a_description_are_wrapped_in_v3() {
    let document = v3();
    let spec = &document["components"]["schemas"]["io.k8s.api.g.v1.Thing"]["properties"]["spec"];
    assert_eq!(
        spec,
        &json!({"description": "What is wanted.", "allOf": [{"$ref": "#/components/schemas/io.k8s.api.g.v1.ThingSpec"}]})
    );
    let post = &document["paths"]["/apis/g.io/v1/namespaces/{namespace}/things"]["post"];
    assert_eq!(post["requestBody"]["required"], true);
    assert_eq!(
        post["requestBody"]["content"]["*/*"]["schema"]["$ref"],
        "#/components/schemas/io.k8s.api.g.v1.Thing"
    );
    assert_eq!(post["consumes"], Value::Null);
}

#[test]
fn the_index_names_each_document_by_its_hash() {
    let documents = OpenApi::new(&[&Thing::namespaced(), &Thing::cluster()], "Test", "v1");
    let index: Value = serde_json::from_slice(&documents.v3_index.body).unwrap();
    let document = documents.v3_document("apis/g.io/v1").unwrap();
    assert_eq!(
        index,
        json!({"paths": {"apis/g.io/v1": {"serverRelativeURL": format!("/openapi/v3/apis/g.io/v1?hash={}", document.hash)}}})
    );
    assert!(documents.v3_document("apis/x/v1").is_none());
}

#[test]
fn shared_schemas_have_the_structure_that_kubernetes_publishes() {
    let schemas = [ObjectMeta::schema(), Condition::schema(), LabelSelector::schema()];
    schemas.iter().for_each(same_structure);
}

fn same_structure(schema: &Schema) {
    match &schema.shape {
        Shape::List(items, _) | Shape::Map(items) => same_structure(items),
        Shape::Object(shape) => {
            let published = definitions::published(shape.definition).unwrap();
            let properties = published["properties"].as_object().unwrap();
            assert_eq!(published.contains_key("x-kubernetes-map-type"), shape.atomic, "{}", shape.definition);
            for field in &shape.fields {
                let property = &properties[field.name];
                let required = published
                    .get("required")
                    .is_some_and(|r| r.as_array().unwrap().contains(&field.name.into()));
                assert_eq!(required, field.required, "{} {}", shape.definition, field.name);
                assert_eq!(
                    shape_name(&field.schema),
                    published_name(property),
                    "{} {}",
                    shape.definition,
                    field.name
                );
                same_structure(&field.schema);
            }
            // Sharded lists are alpha in Kubernetes and not served here.
            let unknown = properties.keys().filter(|k| shape.fields.iter().all(|f| f.name != k.as_str()));
            assert!(unknown.into_iter().all(|k| k == "shardInfo"), "{}", shape.definition);
        }
        _ => (),
    }
}

const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

fn shape_name(schema: &Schema) -> String {
    match &schema.shape {
        Shape::Boolean => "boolean".into(),
        Shape::Int32 => "integer int32".into(),
        Shape::Int64 => "integer int64".into(),
        Shape::String => "string".into(),
        Shape::Bytes => "string byte".into(),
        Shape::IntOrString => INT_OR_STRING.into(),
        Shape::Time => format!("{META}.Time"),
        Shape::MicroTime => format!("{META}.MicroTime"),
        Shape::Raw => format!("{META}.FieldsV1"),
        Shape::Object(shape) => shape.definition.into(),
        Shape::Map(values) => format!("map of {}", shape_name(values)),
        Shape::List(items, list_type) => {
            let kind = match list_type {
                ListType::Atomic => "atomic".to_owned(),
                ListType::Set => "set".to_owned(),
                ListType::Map(keys) => format!("map by {}", keys.join(",")),
            };
            format!("{kind} list of {}", shape_name(items))
        }
    }
}

fn published_name(property: &Value) -> String {
    if let Some(reference) = property["$ref"].as_str() {
        return reference.strip_prefix("#/definitions/").unwrap().to_owned();
    }
    let text = |field: &str| property[field].as_str().unwrap_or_default();
    match (text("type"), text("x-kubernetes-list-type")) {
        ("integer", _) => format!("integer {}", text("format")),
        ("object", _) => format!("map of {}", published_name(&property["additionalProperties"])),
        ("array", "map") => {
            let keys: Vec<_> = property["x-kubernetes-list-map-keys"]
                .as_array()
                .unwrap()
                .iter()
                .map(|k| k.as_str().unwrap())
                .collect();
            format!("map by {} list of {}", keys.join(","), published_name(&property["items"]))
        }
        ("array", list_type) => format!("{list_type} list of {}", published_name(&property["items"])),
        (other, _) => other.to_owned(),
    }
}
