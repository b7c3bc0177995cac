//! Reads some fields of an object's JSON and skips the rest, so that a check of a label need not decode the whole
//! object.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::object::Object;

/// A set of fields, as a tree of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldMask {
    /// Whether everything below is included.
    whole: bool,
    fields: BTreeMap<String, FieldMask>,
}

impl FieldMask {
    /// The fields at some dotted paths, each with everything below it; no fields without paths.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p str>) -> Self {
        let mut mask = Self::default();
        paths.into_iter().for_each(|path| mask.include(path.split('.')));
        mask
    }

    /// Adds a field, given by the names from the root to it.
    pub fn include<'p>(&mut self, path: impl IntoIterator<Item = &'p str>) {
        let mut at = self;
        for name in path {
            // Everything below is included already.
            if at.whole {
                return;
            }
            at = at.fields.entry(name.to_owned()).or_default();
        }
        *at = Self { whole: true, fields: BTreeMap::new() };
    }

    /// All fields.
    pub fn everything() -> Self {
        Self { whole: true, fields: BTreeMap::new() }
    }

    /// Whether `other` has all fields of this mask.
    pub fn is_within(&self, other: &Self) -> bool {
        let has =
            |(name, below): (&String, &Self)| other.fields.get(name).is_some_and(|o| below.is_within(o));
        other.whole || (!self.whole && self.fields.iter().all(has))
    }

    /// Reads these fields from an object's JSON and skips the rest. Returns an empty object if the JSON is no object.
    pub fn read(&self, json: &[u8]) -> Object {
        let read =
            FieldMaskSeed { wanted: self }.deserialize(&mut serde_json::Deserializer::from_slice(json));
        match read {
            Ok(Value::Object(fields)) => Object::raw(fields),
            _ => Object::default(),
        }
    }
}

/// Reads a value; of an object, only the wanted fields.
struct FieldMaskSeed<'e> {
    wanted: &'e FieldMask,
}

impl<'de> DeserializeSeed<'de> for FieldMaskSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.wanted.whole {
            return serde::Deserialize::deserialize(deserializer);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldMaskSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut found = Map::new();
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match self.wanted.fields.get(&*name) {
                Some(wanted) => {
                    let value = map.next_value_seed(FieldMaskSeed { wanted })?;
                    found.insert(name.into_owned(), value);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Value::Object(found))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    const OBJECT: &str = r#"{"apiVersion":"v1","metadata":{"name":"n","labels":{"a":"1","b":"2"},"x":[{"labels":1}]},
        "spec":{"target":{"pod":{"name":"p","uid":"u"}},"\u006eode":"m","labels":{"c":"3"}}}"#;

    #[track_caller]
    fn reads(paths: &[&str], expected: Value) {
        assert_eq!(Value::Object(FieldMask::of(paths.iter().copied()).read(OBJECT.as_bytes()).0), expected);
    }

    #[test]
    fn an_excerpt_has_the_fields_that_were_asked_for_and_no_others() {
        reads(&[], json!({}));
        reads(&["metadata.labels"], json!({"metadata": {"labels": {"a": "1", "b": "2"}}}));
        reads(&["spec.target.pod.name", "spec.absent"], json!({"spec": {"target": {"pod": {"name": "p"}}}}));
        reads(&["spec.node"], json!({"spec": {"node": "m"}}));
    }

    #[test]
    fn a_field_that_is_wanted_whole_is_whole_whichever_path_came_first() {
        let whole = json!({"metadata": {"labels": {"a": "1", "b": "2"}}});
        reads(&["metadata.labels", "metadata.labels.a"], whole.clone());
        reads(&["metadata.labels.a", "metadata.labels"], whole);
    }

    #[test]
    fn a_mask_is_within_another_one_that_has_all_its_fields() {
        let of = |paths: &[&str]| FieldMask::of(paths.iter().copied());
        let labels = of(&["metadata.labels", "metadata.name"]);
        assert!(of(&[]).is_within(&labels) && of(&["metadata.labels.a"]).is_within(&labels));
        assert!(labels.is_within(&labels) && labels.is_within(&FieldMask::everything()));
        for wider in [of(&["metadata"]), of(&["metadata.name", "spec.node"]), FieldMask::everything()] {
            assert!(!wider.is_within(&labels), "{wider:?}");
        }
    }

    #[test]
    fn what_is_no_object_has_no_fields() {
        let labels = FieldMask::of(["metadata.labels"]);
        for json in ["", "null", "[1]", "7", r#"{"metadata":"#] {
            assert_eq!(labels.read(json.as_bytes()), Object::default());
        }
        let of_text = labels.read(br#"{"metadata":null,"spec":{}}"#);
        assert_eq!(of_text.labels(), None);
    }
}
