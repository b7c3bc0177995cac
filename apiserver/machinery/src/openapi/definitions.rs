//! OpenAPI definitions: the structs of the kinds, from their schemas, and the definitions that they refer to.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::kind::Kind;
use crate::schema::{Field, ListType, ObjectShape, PatchStrategy, Schema, Shape};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// Definitions that operations of any kind refer to.
const OF_OPERATIONS: [&str; 5] = ["APIResourceList", "DeleteOptions", "Patch", "Status", "WatchEvent"];
/// Definitions that are registered with every group and version.
const OF_EVERY_VERSION: [&str; 2] = ["DeleteOptions", "WatchEvent"];

/// Returns all definitions that the documents of these kinds need.
pub(super) fn definitions(kinds: &[&dyn Kind]) -> Map<String, Value> {
    let mut definitions = Map::new();
    for name in OF_OPERATIONS {
        add_published(&mut definitions, &format!("{META}{name}"));
    }
    add_published(&mut definitions, &format!("{META}ListMeta"));
    for kind in kinds {
        add_schema(&mut definitions, kind.schema());
        add_list(&mut definitions, *kind);
    }
    for name in OF_EVERY_VERSION {
        add_versions(&mut definitions, &format!("{META}{name}"), name, kinds);
    }
    definitions
}

/// Returns the name of the definition of a kind's objects.
pub(super) fn definition_name(kind: &dyn Kind) -> &'static str {
    match &kind.schema().shape {
        Shape::Object(shape) => shape.definition,
        _ => "",
    }
}

/// `#/definitions/NAME`
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/definitions/{name}")})
}

/// Adds the kind to the object's definition, and the definition of the list, which no schema describes.
fn add_list(definitions: &mut Map<String, Value>, kind: &dyn Kind) {
    let (name, names) = (definition_name(kind), kind.names());
    let gvk = |kind: &str| json!([{"group": names.group, "version": names.version, "kind": kind}]);
    if let Some(definition) = definitions.get_mut(name) {
        definition["x-kubernetes-group-version-kind"] = gvk(names.kind);
    }
    let list_kind = format!("{}List", names.kind);
    let list = json!({
        "description": format!("{list_kind} is a list of {} objects.", names.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": published_field("apiVersion"),
            "kind": published_field("kind"),
            "metadata": published_field("listMeta"),
            "items": {"description": "items is the list of objects.", "type": "array", "items": reference(name)},
        },
        "x-kubernetes-group-version-kind": gvk(&list_kind),
    });
    definitions.insert(format!("{name}List"), list);
}

fn add_versions(definitions: &mut Map<String, Value>, name: &str, kind: &str, kinds: &[&dyn Kind]) {
    let mut versions = vec![json!({"group": "", "version": "v1", "kind": kind})];
    for names in kinds.iter().map(|k| k.names()) {
        let version = json!({"group": names.group, "version": names.version, "kind": kind});
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    if let Some(definition) = definitions.get_mut(name) {
        definition["x-kubernetes-group-version-kind"] = versions.into();
    }
}

fn add_schema(definitions: &mut Map<String, Value>, schema: &Schema) {
    add_described(definitions, schema, schema.description);
}

/// The value of a struct field is described at the field. If its definition had the same description, `kubectl
/// explain` would print it twice.
fn add_field(definitions: &mut Map<String, Value>, field: &Field) {
    add_described(definitions, &field.schema, "");
}

fn add_described(definitions: &mut Map<String, Value>, schema: &Schema, description: &str) {
    match &schema.shape {
        Shape::IntOrString => add_published(definitions, INT_OR_STRING),
        Shape::Time | Shape::MicroTime | Shape::Raw => {
            add_published(definitions, &format!("{META}{}", scalar(schema)))
        }
        Shape::Map(items) | Shape::List(items, _) => add_schema(definitions, items),
        Shape::Object(shape) if published(shape.definition).is_some() => {
            add_published(definitions, shape.definition);
        }
        Shape::Object(shape) => {
            shape.fields.iter().for_each(|field| add_field(definitions, field));
            if !shape.definition.is_empty() && !definitions.contains_key(shape.definition) {
                definitions.insert(shape.definition.to_owned(), render_struct(description, shape));
            }
        }
        Shape::Boolean | Shape::Int32 | Shape::Int64 | Shape::String | Shape::Bytes => (),
    }
}

/// Adds a definition of Kubernetes and those that it refers to.
fn add_published(definitions: &mut Map<String, Value>, name: &str) {
    let Some(definition) = published(name) else { return };
    if definitions.contains_key(name) {
        return;
    }
    let definition = Value::Object(definition.clone());
    let referred = references(&definition);
    definitions.insert(name.to_owned(), definition);
    referred.iter().for_each(|name| add_published(definitions, name));
}

fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => {
            let own = map.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/definitions/"));
            own.map(str::to_owned).into_iter().chain(map.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

fn render_struct(description: &str, shape: &ObjectShape) -> Value {
    let properties: Map<_, _> = shape.fields.iter().map(|f| (f.name.to_owned(), render_field(f))).collect();
    let required: Vec<_> = shape.fields.iter().filter(|f| f.required).map(|f| f.name).collect();
    let mut definition = json!({"type": "object", "properties": properties});
    if !description.is_empty() {
        definition["description"] = description.into();
    }
    if !required.is_empty() {
        definition["required"] = required.into();
    }
    if shape.atomic {
        definition["x-kubernetes-map-type"] = "atomic".into();
    }
    definition
}

fn render_field(field: &Field) -> Value {
    let mut property = render(&field.schema);
    if !field.schema.description.is_empty() {
        property["description"] = field.schema.description.into();
    }
    property
}

pub(super) fn render(schema: &Schema) -> Value {
    let mut value = match &schema.shape {
        Shape::Boolean => json!({"type": "boolean"}),
        Shape::Int32 => json!({"type": "integer", "format": "int32"}),
        Shape::Int64 => json!({"type": "integer", "format": "int64"}),
        Shape::String => json!({"type": "string"}),
        Shape::Bytes => json!({"type": "string", "format": "byte"}),
        Shape::IntOrString => reference(INT_OR_STRING),
        Shape::Time | Shape::MicroTime | Shape::Raw => reference(&format!("{META}{}", scalar(schema))),
        Shape::Map(values) => json!({"type": "object", "additionalProperties": render(values)}),
        Shape::List(items, list_type) => render_list(items, list_type),
        Shape::Object(shape) if shape.definition.is_empty() => render_struct(schema.description, shape),
        Shape::Object(shape) => reference(shape.definition),
    };
    add_patch_strategy(&mut value, schema.patch);
    if !schema.enumeration.is_empty() {
        value["enum"] = json!(schema.enumeration);
    }
    if let Some(default) = schema.default.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        value["default"] = default;
    }
    value
}

fn render_list(items: &Schema, list_type: &ListType) -> Value {
    let mut list = json!({"type": "array", "items": render(items)});
    match list_type {
        ListType::Atomic => list["x-kubernetes-list-type"] = "atomic".into(),
        ListType::Set => list["x-kubernetes-list-type"] = "set".into(),
        ListType::Map(keys) => {
            list["x-kubernetes-list-type"] = "map".into();
            list["x-kubernetes-list-map-keys"] = json!(keys);
        }
    }
    list
}

/// Adds the extensions from which kubectl computes its patches.
fn add_patch_strategy(value: &mut Value, strategy: PatchStrategy) {
    match strategy {
        PatchStrategy::Unset => {}
        PatchStrategy::Replace => value["x-kubernetes-patch-strategy"] = "replace".into(),
        PatchStrategy::Merge | PatchStrategy::MergeBy(_) => {
            value["x-kubernetes-patch-strategy"] = "merge".into();
        }
    }
    if let PatchStrategy::MergeBy(key) = strategy {
        value["x-kubernetes-patch-merge-key"] = key.into();
    }
}

fn scalar(schema: &Schema) -> &'static str {
    match schema.shape {
        Shape::MicroTime => "MicroTime",
        Shape::Raw => "FieldsV1",
        _ => "Time",
    }
}

/// Definitions that Kubernetes publishes and that every API refers to. The aggregator renames a definition that differs
/// from its own of the same name, so these are Kubernetes' texts, byte for byte (kubernetes v1.36,
/// api/openapi-spec/swagger.json; Apache License 2.0).
static PUBLISHED: LazyLock<Value> =
    // The text is compiled into this crate, and a test parses it.
    LazyLock::new(|| serde_json::from_str(include_str!("published.json")).unwrap_or_default());

/// Returns a published definition by name.
pub(super) fn published(name: &str) -> Option<&'static Map<String, Value>> {
    PUBLISHED["definitions"].get(name).and_then(Value::as_object)
}

/// Returns a published parameter by name; `fieldManager (patch)` and the like if several have one name.
pub(super) fn published_parameter(name: &str) -> Value {
    PUBLISHED["parameters"][name].clone()
}

/// Returns a published field that every object or list has: `apiVersion`, `kind`, `metadata`, `listMeta`.
fn published_field(name: &str) -> Value {
    PUBLISHED["fields"][name].clone()
}
