//! An API object as the server handles it: a JSON object with typed access to its metadata.

use bytes::Bytes;
use serde_json::{Map, Value};

/// Bytes that hold most objects.
const USUAL_SIZE: usize = 4096;

/// A decoded object, with `apiVersion` and `kind`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(pub Map<String, Value>);

impl Object {
    /// `metadata.name`, empty if absent.
    pub fn name(&self) -> &str {
        self.meta_str("name")
    }
    /// `metadata.namespace`, empty if absent.
    pub fn namespace(&self) -> &str {
        self.meta_str("namespace")
    }
    /// `metadata.uid`, empty if absent.
    pub fn uid(&self) -> &str {
        self.meta_str("uid")
    }
    /// `metadata.resourceVersion`, empty if absent.
    pub fn resource_version(&self) -> &str {
        self.meta_str("resourceVersion")
    }
    /// `metadata.deletionTimestamp`, if set.
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.meta().and_then(|m| m.get("deletionTimestamp")).and_then(Value::as_str)
    }
    /// `metadata.generation`, 0 if absent.
    pub fn generation(&self) -> i64 {
        self.meta().and_then(|m| m.get("generation")).and_then(Value::as_i64).unwrap_or_default()
    }
    /// `metadata.labels`.
    pub fn labels(&self) -> Option<&Map<String, Value>> {
        self.meta().and_then(|m| m.get("labels")).and_then(Value::as_object)
    }
    /// `metadata.finalizers`.
    pub fn finalizers(&self) -> Vec<&str> {
        let list = self.meta().and_then(|m| m.get("finalizers")).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }
    /// Sets `metadata.resourceVersion`; an empty string removes it.
    pub fn set_resource_version(&mut self, rv: &str) {
        self.set_meta("resourceVersion", (!rv.is_empty()).then(|| Value::from(rv)));
    }
    /// `metadata`, if it is an object.
    pub fn meta(&self) -> Option<&Map<String, Value>> {
        self.0.get("metadata").and_then(Value::as_object)
    }
    /// `metadata`, made if absent or not an object.
    pub fn meta_mut(&mut self) -> &mut Map<String, Value> {
        let slot = self.0.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if !slot.is_object() {
            *slot = Value::Object(Map::new());
        }
        match slot {
            Value::Object(map) => map,
            _ => unreachable!("made an object above"),
        }
    }
    /// Sets or removes one metadata field.
    pub fn set_meta(&mut self, field: &str, value: Option<Value>) {
        match value {
            Some(value) => self.meta_mut().insert(field.to_owned(), value),
            None => self.meta_mut().remove(field),
        };
    }
    /// Compact JSON, in no more memory than it needs: it may be kept for long.
    pub fn to_json(&self) -> Bytes {
        let mut text = Vec::with_capacity(USUAL_SIZE);
        // Serializing a tree of JSON values to memory cannot fail: every key is a string.
        let written = serde_json::to_writer(&mut text, &self.0);
        debug_assert!(written.is_ok());
        Bytes::copy_from_slice(&text)
    }

    fn meta_str(&self, field: &str) -> &str {
        self.meta().and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
    }
}
