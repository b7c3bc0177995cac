//! Encodes objects as stored bytes, and decodes them when they are asked for.
//!
//! Bytes are checked when they arrive, without decoding them: most of the cost of decoding is allocating a hundred small
//! values. The check is all that decoding checks (UTF-8, the range of numbers, nesting depth), so bytes that pass can be
//! decoded later.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use drydock_machinery::Object;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Error;

use crate::backend::{BackendError, Revision};
use crate::storage::{StorageError, Stored};

/// Returns the bytes to store. They have no resourceVersion, because that is the revision of the write.
pub(super) fn encode(mut object: Object) -> Bytes {
    object.set_resource_version("");
    object.to_json()
}

/// Decodes bytes that [`encode`] made.
pub(super) fn decode_own(bytes: &[u8]) -> Object {
    Object::from_json(bytes).unwrap_or_default()
}

/// Returns the object in `bytes` at `revision`. Checks that the bytes can be decoded; decodes them later. Fails if
/// they are damaged.
pub(crate) fn decode(key: &str, bytes: &[u8], revision: Revision) -> Result<Arc<Stored>, StorageError> {
    not_empty(key, bytes)?;
    match has_metadata(bytes) {
        Err(error) => Err(corrupt(key, &error.to_string())),
        Ok(false) => Err(corrupt(key, "not an object with metadata")),
        Ok(true) => Ok(Arc::new(Stored::of_bytes(key, bytes, revision))),
    }
}

/// Fails for the empty value that a backend returns in place of a damaged one.
fn not_empty(key: &str, bytes: &[u8]) -> Result<(), StorageError> {
    if bytes.is_empty() { Err(corrupt(key, "the stored value is damaged")) } else { Ok(()) }
}

/// The error for a value that this crate did not write, or that is damaged.
pub(super) fn corrupt(key: &str, why: &str) -> StorageError {
    StorageError::Backend(BackendError::Corrupt(format!("the value of {key:?} cannot be read: {why}")))
}

/// Returns whether bytes, which must be one JSON object, have an object as `metadata`. Fails if they cannot be
/// decoded.
fn has_metadata(bytes: &[u8]) -> Result<bool, Error> {
    serde_json::from_slice::<Root>(bytes).map(|root| root.has_metadata)
}

/// The top-level object.
struct Root {
    has_metadata: bool,
}

/// Any value.
struct DecodableValue {
    is_object: bool,
}

/// The name of a field.
struct FieldName {
    is_metadata: bool,
}

impl<'de> Deserialize<'de> for Root {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RootVisitor;
        impl<'de> Visitor<'de> for RootVisitor {
            type Value = Root;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Root, A::Error> {
                let mut root = Root { has_metadata: false };
                while let Some((name, value)) = map.next_entry::<FieldName, DecodableValue>()? {
                    if name.is_metadata {
                        // Decoding keeps the last of several fields of one name.
                        root.has_metadata = value.is_object;
                    }
                }
                Ok(root)
            }
        }
        deserializer.deserialize_map(RootVisitor)
    }
}

impl<'de> Deserialize<'de> for FieldName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldNameVisitor;
        impl Visitor<'_> for FieldNameVisitor {
            type Value = FieldName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<FieldName, E> {
                Ok(FieldName { is_metadata: text == "metadata" })
            }
        }
        deserializer.deserialize_str(FieldNameVisitor)
    }
}

impl<'de> Deserialize<'de> for DecodableValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DecodableVisitor)
    }
}

struct DecodableVisitor;

const OTHER: DecodableValue = DecodableValue { is_object: false };

impl<'de> Visitor<'de> for DecodableVisitor {
    type Value = DecodableValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<DecodableValue, E> {
        Ok(OTHER)
    }

    fn visit_bool<E>(self, _: bool) -> Result<DecodableValue, E> {
        Ok(OTHER)
    }

    fn visit_u64<E>(self, _: u64) -> Result<DecodableValue, E> {
        Ok(OTHER)
    }

    fn visit_i64<E>(self, _: i64) -> Result<DecodableValue, E> {
        Ok(OTHER)
    }

    fn visit_f64<E>(self, _: f64) -> Result<DecodableValue, E> {
        Ok(OTHER)
    }

    fn visit_str<E>(self, _: &str) -> Result<DecodableValue, E> {
        Ok(OTHER)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<DecodableValue, A::Error> {
        while list.next_element::<DecodableValue>()?.is_some() {}
        Ok(OTHER)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DecodableValue, A::Error> {
        while map.next_entry::<FieldName, DecodableValue>()?.is_some() {}
        Ok(DecodableValue { is_object: true })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Map, Value};

    use super::has_metadata;

    /// What decoding finds.
    fn decoded(bytes: &[u8]) -> Result<bool, String> {
        let map = serde_json::from_slice::<Map<String, Value>>(bytes).map_err(|error| error.to_string())?;
        Ok(map.get("metadata").is_some_and(Value::is_object))
    }

    fn looked_at(bytes: &[u8]) -> Result<bool, String> {
        has_metadata(bytes).map_err(|error| error.to_string())
    }

    #[test]
    fn it_finds_what_decoding_finds() {
        let deep = |levels: usize| format!("{{\"metadata\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        let texts = [
            r#"{"metadata":{"name":"a\u00e9","n":[1,-2,3.5e3,true,false,null,{}]},"spec":{}}"#.to_owned(),
            r#"{"metadata":{},"metadata":1}"#.to_owned(),
            r#"{"metadat\u0061":{}}"#.to_owned(),
            r#"{"spec":{"metadata":{}}}"#.to_owned(),
            r#"{"metadata":{"n":1e999}}"#.to_owned(),
            r#"{"metadata":{"n":01}}"#.to_owned(),
            r#"{"metadata":{"n":123456789012345678901234567890}}"#.to_owned(),
            r#"{"metadata":{}} x"#.to_owned(),
            r#"{"metadata":{},}"#.to_owned(),
            r#"{"metadata":{"a":"\ud800"}}"#.to_owned(),
            "{\"metadata\":{\"a\":\"\n\"}}".to_owned(),
            "[]".to_owned(),
            "{}".to_owned(),
            String::new(),
            deep(100),
            deep(126),
            deep(127),
            deep(128),
            deep(1000),
        ];
        for text in texts {
            assert_eq!(looked_at(text.as_bytes()), decoded(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn of_a_damaged_byte_it_says_what_decoding_says() {
        let whole =
            r#"{"apiVersion":"v1","metadata":{"name":"é","x":[1.5,"\u00e9\n",null]},"spec":{"a":true}}"#;
        for (index, byte) in (0..whole.len()).flat_map(|index| (0..=255).map(move |byte| (index, byte))) {
            let mut bytes = whole.as_bytes().to_vec();
            bytes[index] = byte;
            assert_eq!(looked_at(&bytes), decoded(&bytes), "{}", String::from_utf8_lossy(&bytes));
        }
    }
}
