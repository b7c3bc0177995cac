//! The JSON of an object: fields sorted by name, including the managed fields.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::Object;
use super::managed_fields::{self, FIELD, ManagedFieldsEntry};

/// Appends an object.
///
/// # Errors
/// Never, for a tree of JSON.
pub(super) fn write(object: &Object, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let Object(fields, Some(entries), _) = object else { return serde_json::to_writer(out, &object.0) };
    out.push(b'{');
    for (field, value) in fields {
        write_key(field, out)?;
        match value {
            Value::Object(metadata) if field == "metadata" => write_metadata(metadata, entries, out)?,
            value => serde_json::to_writer(&mut *out, value)?,
        }
    }
    out.push(b'}');
    Ok(())
}

fn write_metadata(
    metadata: &Map<String, Value>,
    entries: &[ManagedFieldsEntry],
    out: &mut Vec<u8>,
) -> serde_json::Result<()> {
    let mut due = Some(entries);
    out.push(b'{');
    for (field, value) in metadata.iter().filter(|(field, _)| *field != FIELD) {
        if let Some(entries) = due.take_if(|_| field.as_str() > FIELD) {
            write_entries(entries, out)?;
        }
        write_key(field, out)?;
        serde_json::to_writer(&mut *out, value)?;
    }
    due.map_or(Ok(()), |entries| write_entries(entries, out))?;
    out.push(b'}');
    Ok(())
}

fn write_entries(entries: &[ManagedFieldsEntry], out: &mut Vec<u8>) -> serde_json::Result<()> {
    write_key(FIELD, out)?;
    managed_fields::write(entries, out)
}

/// Appends a field's name, after a comma unless it is the first.
pub(super) fn write_key(field: &str, out: &mut Vec<u8>) -> serde_json::Result<()> {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    serde_json::to_writer(&mut *out, field)?;
    out.push(b':');
    Ok(())
}

/// Reads an object.
///
/// # Errors
/// If the text is no JSON object, or if metadata or managed fields have another form than the one that is written.
pub(super) fn read(json: &[u8]) -> serde_json::Result<Object> {
    serde_json::from_slice::<ReadObject>(json).map(|read| read.0)
}

struct ReadObject(Object);

impl<'de> Deserialize<'de> for ReadObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor).map(Self)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut object = Object::default();
        while let Some(field) = map.next_key::<String>()? {
            let value = match field.as_str() {
                "metadata" => {
                    let Metadata(fields, entries) = map.next_value()?;
                    object.1 = entries.map(Into::into);
                    Value::Object(fields)
                }
                _ => map.next_value()?,
            };
            object.0.insert(field, value);
        }
        Ok(object)
    }
}

struct Metadata(Map<String, Value>, Option<Vec<ManagedFieldsEntry>>);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataFields)
    }
}

struct MetadataFields;

impl<'de> Visitor<'de> for MetadataFields {
    type Value = Metadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata, A::Error> {
        let mut metadata = Metadata(Map::new(), None);
        while let Some(field) = map.next_key::<String>()? {
            if field == FIELD {
                metadata.1 = Some(map.next_value()?);
            } else {
                metadata.0.insert(field, map.next_value()?);
            }
        }
        Ok(metadata)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    /// Returns an object whose managed fields are entries.
    fn tracked() -> Value {
        let fields = json!({"f:spec": {"f:\"": {}, ".": {}, "k:{\"a\":\"\u{1}\"}": {}}});
        json!({
            "kind": "K",
            "metadata": {
                "labels": {"managedFields": "x"},
                "managedFields": [
                    {
                        "apiVersion": "g/v1", "fieldsType": "FieldsV1", "fieldsV1": fields, "manager": "m\"",
                        "operation": "Update", "subresource": "status", "time": "2020-01-01T00:00:00Z"
                    },
                    {"fieldsV1": 1.5},
                    {},
                ],
                "name": "n",
            },
            "spec": {"metadata": {"managedFields": [1]}},
        })
    }

    /// Returns objects whose managed fields stay in the tree.
    fn untracked() -> Vec<Value> {
        let with = |entries: Value| json!({"metadata": {"managedFields": entries, "name": "n"}, "spec": {}});
        let odd = [json!({}), json!("x"), json!([1]), json!([{"odd": "x"}]), json!([{"time": 1}])];
        odd.map(with)
            .into_iter()
            .chain([json!({}), json!({"metadata": 1}), json!({"metadata": {}})])
            .collect()
    }

    #[test]
    fn what_is_written_is_the_tree_in_its_order() {
        for tree in untracked().into_iter().chain([tracked()]) {
            let object = Object::from(tree.as_object().unwrap().clone());
            assert_eq!(object.to_json(), tree.to_string().as_bytes());
            assert_eq!(object.to_value(), tree);
            assert_eq!(
                Value::Object(object.metadata()),
                *tree.get("metadata").filter(|m| m.is_object()).unwrap_or(&json!({}))
            );
        }
    }

    #[test]
    fn what_is_read_is_what_is_made_of_the_tree() {
        for tree in untracked().into_iter().chain([tracked()]) {
            let object = Object::from_json(tree.to_string().as_bytes()).unwrap();
            assert_eq!(object, Object::from(tree.as_object().unwrap().clone()));
            assert_eq!(object.managed_fields().is_some(), tree == tracked(), "{tree}");
        }
        for text in ["", "null", "[]", "{\"metadata\":{}", "{} {}"] {
            assert!(Object::from_json(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn managed_fields_stand_behind_the_labels_even_if_they_come_last() {
        for metadata in
            [json!({}), json!({"labels": {}}), json!({"name": "n"}), json!({"labels": {}, "name": "n"})]
        {
            let mut tree = json!({"metadata": metadata});
            tree["metadata"]["managedFields"] = json!([{"manager": "m"}]);
            let object = Object::from(tree.as_object().unwrap().clone());
            assert_eq!(object.to_json(), tree.to_string().as_bytes());
        }
    }

    #[test]
    fn null_and_empty_members_of_an_entry_are_as_good_as_none() {
        let entry = json!({"manager": "", "time": null, "fieldsV1": null, "operation": "Update"});
        let tree = json!({"metadata": {"managedFields": [entry]}});
        let object = Object::from_json(tree.to_string().as_bytes()).unwrap();
        assert_eq!(object.to_json(), r#"{"metadata":{"managedFields":[{"operation":"Update"}]}}"#);
    }
}
