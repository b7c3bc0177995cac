//! Definitions that Kubernetes publishes and that every API refers to.
//!
//! The aggregator renames a definition that differs from its own of the same name, so these are Kubernetes' texts,
//! byte for byte (kubernetes v1.36, api/openapi-spec/swagger.json; Apache License 2.0).

use std::sync::LazyLock;

use serde_json::{Map, Value};

static PUBLISHED: LazyLock<Value> =
    // The text is compiled into this crate, and a test parses it.
    LazyLock::new(|| serde_json::from_str(include_str!("published.json")).unwrap_or_default());

/// Returns a definition by name.
pub(super) fn definition(name: &str) -> Option<&'static Map<String, Value>> {
    PUBLISHED["definitions"].get(name).and_then(Value::as_object)
}

/// Returns a parameter by name; `fieldManager (patch)` and the like if several have one name.
pub(super) fn parameter(name: &str) -> Value {
    PUBLISHED["parameters"][name].clone()
}

/// Returns a field that every object or list has: `apiVersion`, `kind`, `metadata`, `listMeta`.
pub(super) fn field(name: &str) -> Value {
    PUBLISHED["fields"][name].clone()
}
