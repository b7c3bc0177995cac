//! What Kubernetes publishes itself and every API refers to.
//!
//! The aggregator renames a definition that differs from its own of the same name, so these are its texts, byte for
//! byte (kubernetes v1.36, api/openapi-spec/swagger.json; Apache License 2.0).

use std::sync::LazyLock;

use serde_json::{Map, Value};

static PUBLISHED: LazyLock<Value> =
    // A test reads it: the text is part of this crate.
    LazyLock::new(|| serde_json::from_str(include_str!("published.json")).unwrap_or_default());

/// A definition by its name.
pub(super) fn definition(name: &str) -> Option<&'static Map<String, Value>> {
    PUBLISHED["definitions"].get(name).and_then(Value::as_object)
}

/// A parameter by its name; `fieldManager (patch)` and the like where one name has several.
pub(super) fn parameter(name: &str) -> Value {
    PUBLISHED["parameters"][name].clone()
}

/// A field that every object or list has: `apiVersion`, `kind`, `metadata`, `listMeta`.
pub(super) fn field(name: &str) -> Value {
    PUBLISHED["fields"][name].clone()
}
