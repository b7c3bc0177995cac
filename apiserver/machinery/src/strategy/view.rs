//! Decodes the server's untyped objects into the structs of kinds.

use crate::Object;
use crate::field::{Error, ErrorList, Path};
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// Decodes the object without its managed fields, which no validation rule of a kind reads and which may be larger
/// than everything else. If decoding fails, returns one error for the whole object.
pub fn decode<T: DeserializeOwned>(object: &Object) -> Result<T, ErrorList> {
    decode_fields(object, |_| true)
}

/// Decodes only what the rules on a status may read: the status, and the metadata fields that the server sets.
pub fn decode_status<T: DeserializeOwned>(object: &Object) -> Result<T, ErrorList> {
    decode_fields(object, |field| {
        !matches!(field, "spec" | "labels" | "annotations" | "finalizers" | "ownerReferences")
    })
}

/// Decodes only the spec.
pub fn decode_spec<T: DeserializeOwned>(object: &Object) -> Result<T, ErrorList> {
    decode_fields(object, |field| field == "spec")
}

/// Decodes without the fields of the object, and of its metadata, that are not `wanted`.
fn decode_fields<T: DeserializeOwned>(object: &Object, wanted: fn(&str) -> bool) -> Result<T, ErrorList> {
    let fields = || object.0.iter().filter(move |(name, _)| wanted(name));
    let read = if fields().any(|(name, value)| TopLevelField::of(name, value, wanted).holds_null()) {
        serde_json::from_value(without_nulls(Value::Object(
            fields().map(|(k, v)| (k.clone(), v.clone())).collect(),
        )))
    } else {
        let parts = fields().map(|(name, value)| (name.as_str(), TopLevelField::of(name, value, wanted)));
        T::deserialize(MapDeserializer::new(parts))
    };
    read.map_err(|e| {
        let path = Path::new("object");
        vec![Error { kind: crate::field::ErrorType::TypeInvalid, path, value: None, detail: e.to_string() }]
    })
}

/// A top-level field of an object.
enum TopLevelField<'a> {
    /// The metadata, of which only the wanted fields are decoded.
    Metadata(&'a Map<String, Value>, fn(&str) -> bool),
    Other(&'a Value),
}

impl<'a> TopLevelField<'a> {
    fn of(name: &str, value: &'a Value, wanted: fn(&str) -> bool) -> Self {
        match value {
            Value::Object(map) if name == "metadata" => Self::Metadata(map, wanted),
            other => Self::Other(other),
        }
    }

    fn holds_null(&self) -> bool {
        match self {
            Self::Metadata(map, wanted) => kept_fields(map, *wanted).any(|(_, value)| holds_null(value)),
            Self::Other(value) => holds_null(value),
        }
    }
}

fn kept_fields(
    metadata: &Map<String, Value>,
    wanted: fn(&str) -> bool,
) -> impl Iterator<Item = (&String, &Value)> {
    metadata.iter().filter(move |(name, _)| *name != "managedFields" && wanted(name))
}

impl<'de> Deserializer<'de> for TopLevelField<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self {
            Self::Other(value) => value.deserialize_any(visitor),
            Self::Metadata(map, wanted) => {
                let kept = kept_fields(map, wanted);
                visitor.visit_map(MapDeserializer::new(kept.map(|(name, value)| (name.as_str(), value))))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self {
            Self::Other(value) => value.deserialize_option(visitor),
            Self::Metadata(..) => visitor.visit_some(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match self {
            Self::Other(value) => value.deserialize_enum(name, variants, visitor),
            Self::Metadata(..) => self.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, serde_json::Error> for TopLevelField<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().any(holds_null),
        Value::Array(list) => list.iter().any(holds_null),
        _ => false,
    }
}

/// Removes null fields: null means the same as absent.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect(),
        ),
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::metav1::ObjectMeta;

    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Thing {
        api_version: String,
        metadata: ObjectMeta,
        spec: Value,
        status: Status,
    }

    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Status {
        observed_generation: i64,
        names: Vec<String>,
    }

    #[test]
    fn all_but_the_managed_fields_is_read() {
        let given = json!({
            "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "Thing",
            "metadata": {
                "name": "a", "uid": "u", "labels": {"l": "v"}, "generation": 3,
                "managedFields": [{"manager": "m", "operation": "Update"}],
            },
        });
        let whole: Thing = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(whole.metadata.managed_fields.len(), 1);
        let Value::Object(map) = given else { unreachable!() };
        let mut read: Thing = decode(&Object::from(map)).unwrap();
        assert!(read.metadata.managed_fields.is_empty());
        read.metadata.managed_fields = whole.metadata.managed_fields.clone();
        assert_eq!(read, whole);
    }

    #[test]
    fn of_a_status_what_its_rules_are_about_is_read_whatever_stands_elsewhere() {
        let given = json!({
            "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "Thing",
            "metadata": {
                "name": "a", "uid": "u", "labels": {"l": "v"}, "annotations": null, "generation": 3,
                "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": null,
            },
            "spec": {"names": null},
            "status": {"observedGeneration": 2, "names": ["x"], "others": null},
        });
        let Value::Object(map) = given else { unreachable!() };
        let whole: Thing = decode(&Object::from(map.clone())).unwrap();
        let read: Thing = decode_status(&Object::from(map)).unwrap();
        assert_eq!((&read.status, read.status.observed_generation), (&whole.status, 2));
        let (read, whole) = (read.metadata, whole.metadata);
        assert_eq!(read.generation, whole.generation);
        assert_eq!(read.creation_timestamp, whole.creation_timestamp);
    }
}
