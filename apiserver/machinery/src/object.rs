//! An API object in the server: a JSON object with typed access to its metadata.

pub(crate) mod canonical;
mod defaulted_items;
pub(crate) mod fields_v1;
mod json;
pub(crate) mod managed_fields;
mod size;

pub use fields_v1::FieldsV1;
pub use managed_fields::ManagedFieldsEntry;
pub use size::{Size, json_len};

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use defaulted_items::DefaultedItems;
use managed_fields::{FIELD, FieldsForm};

/// Initial capacity of the buffer; most objects fit.
const USUAL_SIZE: usize = 4096;

/// A decoded object with `apiVersion` and `kind`: its fields as a tree, except for `metadata.managedFields`, which
/// are stored separately. Managed fields that are not a list of entries stay in the tree, and so do those of an
/// object that is still [raw](Self::raw).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(pub Map<String, Value>, Option<Arc<[ManagedFieldsEntry]>>, DefaultedItems);

impl From<Map<String, Value>> for Object {
    fn from(tree: Map<String, Value>) -> Self {
        Self::of_tree(tree, FieldsForm::AsTree)
    }
}

impl Object {
    /// An object that is yet to be decoded: its managed fields stay in the tree.
    pub fn raw(tree: Map<String, Value>) -> Self {
        Self(tree, None, DefaultedItems::default())
    }
    /// Reads an object's JSON.
    ///
    /// # Errors
    /// If the text is no JSON object.
    pub fn from_json(json: &[u8]) -> serde_json::Result<Self> {
        // An object with managed fields of another form is read as a tree.
        json::read(json).or_else(|_| serde_json::from_slice::<Map<_, _>>(json).map(Self::from))
    }
    /// Returns the whole object as a tree.
    pub fn to_tree(&self) -> Map<String, Value> {
        self.clone().into_tree()
    }
    /// As [`Self::to_tree`], as a value.
    pub fn to_value(&self) -> Value {
        Value::Object(self.to_tree())
    }
    /// Converts the whole object to a tree.
    pub fn into_tree(mut self) -> Map<String, Value> {
        if let Some(entries) = self.1.take() {
            managed_fields::put(&entries, self.meta_mut());
        }
        self.0
    }
    /// As [`Self::into_tree`], as a value.
    pub fn into_value(self) -> Value {
        Value::Object(self.into_tree())
    }
    /// Returns `metadata` as a tree, with the managed fields; empty if absent.
    pub fn metadata(&self) -> Map<String, Value> {
        let mut metadata = self.meta().cloned().unwrap_or_default();
        if let Some(entries) = &self.1 {
            managed_fields::put(entries, &mut metadata);
        }
        metadata
    }
    /// `metadata.managedFields`; `None` if absent or not a list of entries.
    pub fn managed_fields(&self) -> Option<&[ManagedFieldsEntry]> {
        self.1.as_deref()
    }
    /// Whether `metadata.managedFields` is present in any form.
    pub fn has_managed_fields(&self) -> bool {
        self.1.is_some() || self.meta().is_some_and(|meta| meta.contains_key(FIELD))
    }
    /// Sets `metadata.managedFields`; an empty list removes them.
    pub fn set_managed_fields(&mut self, entries: impl Into<Arc<[ManagedFieldsEntry]>>) {
        let entries = entries.into();
        self.remove_managed_fields();
        if !entries.is_empty() {
            self.meta_mut();
            self.1 = Some(entries);
        }
    }
    /// Sets `metadata.managedFields` to those of another object, without copying them.
    pub fn share_managed_fields(&mut self, of: &Self) {
        self.set_managed_fields(of.1.clone().unwrap_or_default());
    }
    /// Removes and returns `metadata.managedFields`; an empty list if they were absent or not a list of entries.
    pub fn take_managed_fields(&mut self) -> Arc<[ManagedFieldsEntry]> {
        let entries = self.1.take();
        self.remove_managed_fields();
        entries.unwrap_or_default()
    }
    /// Removes `metadata.managedFields`.
    pub fn remove_managed_fields(&mut self) {
        self.1 = None;
        if let Some(Value::Object(metadata)) = self.0.get_mut("metadata") {
            metadata.remove(FIELD);
        }
    }

    pub(crate) fn of_tree(mut tree: Map<String, Value>, fields: FieldsForm) -> Self {
        let metadata = tree.get_mut("metadata").and_then(Value::as_object_mut);
        let entries = metadata.and_then(|metadata| managed_fields::take(metadata, fields));
        Self(tree, entries, DefaultedItems::default())
    }

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
    /// `metadata`, created if absent or not an object.
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
        if field == FIELD {
            self.1 = managed_fields::take(self.meta_mut(), FieldsForm::AsTree);
        }
    }
    /// Returns compact JSON in exactly the memory that it needs, because it may be kept for long.
    pub fn to_json(&self) -> Bytes {
        let mut text = Vec::with_capacity(USUAL_SIZE);
        // Writing to memory cannot fail, and every key is a string.
        let written = json::write(self, &mut text);
        debug_assert!(written.is_ok());
        Bytes::copy_from_slice(&text)
    }

    fn meta_str(&self, field: &str) -> &str {
        self.meta().and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
    }
}
