//! `metadata.managedFields` of an object: the entries as structs, with the owned fields as text.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::fields_v1::FieldsV1;
use super::json::write_key;

/// Name of the field.
pub(crate) const FIELD: &str = "managedFields";

/// metav1.ManagedFieldsEntry. An empty text means that the field is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ManagedFieldsEntry {
    /// Name of the manager.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// API version of the fields.
    pub api_version: String,
    /// When the entry last changed, as RFC 3339.
    pub time: String,
    /// `FieldsV1`
    pub fields_type: String,
    /// The set of fields.
    #[serde(rename = "fieldsV1")]
    pub fields_v1: Option<FieldsV1>,
    /// The subresource that was written.
    pub subresource: String,
}

impl Serialize for ManagedFieldsEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl ManagedFieldsEntry {
    /// The entry as a JSON tree.
    pub fn to_value(&self) -> Value {
        let texts = self.texts().into_iter().filter(|(_, text)| !text.is_empty());
        let mut entry: Map<_, _> = texts.map(|(field, text)| (field.to_owned(), Value::from(text))).collect();
        if let Some(fields) = &self.fields_v1 {
            entry.insert("fieldsV1".to_owned(), fields.to_value());
        }
        Value::Object(entry)
    }

    /// The set of fields as a JSON tree; null if there is none.
    pub fn fields(&self) -> Value {
        self.fields_v1.as_ref().map(FieldsV1::to_value).unwrap_or_default()
    }

    /// Whether the entries are equal except for the time.
    pub fn is_same_but_for_time(&self, other: &Self) -> bool {
        self.fields_v1 == other.fields_v1 && self.texts()[..5] == other.texts()[..5]
    }

    /// Appends the entry as JSON, its fields in the order of their names.
    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.push(b'{');
        for (field, text) in self.texts() {
            if let ("manager", Some(fields)) = (field, &self.fields_v1) {
                write_key("fieldsV1", out)?;
                out.extend_from_slice(fields.as_str().as_bytes());
            }
            if !text.is_empty() {
                write_key(field, out)?;
                serde_json::to_writer(&mut *out, text)?;
            }
        }
        out.push(b'}');
        Ok(())
    }

    /// Returns all fields but the set, sorted by name; the time is the last one.
    fn texts(&self) -> [(&'static str, &str); 6] {
        [
            ("apiVersion", &self.api_version),
            ("fieldsType", &self.fields_type),
            ("manager", &self.manager),
            ("operation", &self.operation),
            ("subresource", &self.subresource),
            ("time", &self.time),
        ]
    }

    /// Converts an entry from a tree; `None` if it is no entry.
    fn of_value(entry: &Value, fields: FieldsForm) -> Option<Self> {
        let mut read = Self::default();
        for (field, value) in entry.as_object()? {
            let slot = match field.as_str() {
                _ if value.is_null() => continue,
                "fieldsV1" => {
                    read.fields_v1 = Some(fields.read(value));
                    continue;
                }
                "apiVersion" => &mut read.api_version,
                "fieldsType" => &mut read.fields_type,
                "manager" => &mut read.manager,
                "operation" => &mut read.operation,
                "subresource" => &mut read.subresource,
                "time" => &mut read.time,
                _ => return None,
            };
            value.as_str()?.clone_into(slot);
        }
        Some(read)
    }
}

/// The form of sets of fields in a tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldsForm {
    /// As JSON trees.
    AsTree,
    /// As text in a string, as decoding with a schema leaves them.
    AsText,
}

impl FieldsForm {
    fn read(self, value: &Value) -> FieldsV1 {
        match (self, value) {
            (Self::AsText, Value::String(text)) => FieldsV1::of_canonical(text.clone()),
            _ => FieldsV1::from(value),
        }
    }
}

/// Removes the entries from a tree of metadata. What is no list of entries stays, and `None` is returned.
pub(super) fn take(
    metadata: &mut Map<String, Value>,
    fields: FieldsForm,
) -> Option<Arc<[ManagedFieldsEntry]>> {
    let entries = metadata.get(FIELD)?.as_array()?;
    let read =
        entries.iter().map(|entry| ManagedFieldsEntry::of_value(entry, fields)).collect::<Option<_>>()?;
    metadata.remove(FIELD);
    Some(read)
}

/// Inserts entries into a tree of metadata.
pub(super) fn put(entries: &[ManagedFieldsEntry], metadata: &mut Map<String, Value>) {
    metadata.insert(FIELD.to_owned(), entries.iter().map(ManagedFieldsEntry::to_value).collect());
}

/// Returns the length of an entry's JSON in bytes.
pub(super) fn len(entry: &ManagedFieldsEntry) -> usize {
    let mut text =
        Vec::with_capacity(entry.fields_v1.as_ref().map_or(0, |fields| fields.as_str().len()) + 256);
    // Writing to memory cannot fail.
    let written = entry.write(&mut text);
    debug_assert!(written.is_ok());
    text.len()
}

/// Appends a list of entries as JSON.
///
/// # Errors
/// Never, for text.
pub(super) fn write(entries: &[ManagedFieldsEntry], out: &mut Vec<u8>) -> serde_json::Result<()> {
    out.push(b'[');
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        entry.write(out)?;
    }
    out.push(b']');
    Ok(())
}
