//! The decoding pass: deserializes each value with its schema.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::context::Context;
use super::go_values::{base64_text, complete_field, zero};
use crate::go_time;
use crate::memory;
use crate::metav1::time::parse_time;
use crate::metav1::time::{format_micros, format_seconds};
use crate::object::canonical::{self, NodeBudget};
use crate::schema::common::MANAGED_FIELDS_ENTRY;
use crate::schema::{ObjectShape, Schema, Shape};

/// Deserializes one value with its schema; null is `None`, as if the field were absent. The fields that an entry of
/// managed fields owns become a string, the text of a [`FieldsV1`](crate::object::FieldsV1), because nothing needs
/// them as a tree.
pub(super) struct SchemaSeed<'c, 's> {
    context: &'c mut Context,
    schema: &'s Schema,
}

impl<'c, 's> SchemaSeed<'c, 's> {
    pub(super) fn new(context: &'c mut Context, schema: &'s Schema) -> Self {
        Self { context, schema }
    }

    fn mismatch<E: Error>(self, value: &str) -> E {
        self.context.mismatch(value, self.schema)
    }

    fn integer<E: Error>(self, value: i128) -> Result<Option<Value>, E> {
        self.context.spend(0)?;
        let fits = match self.schema.shape {
            Shape::Int32 | Shape::IntOrString => i32::try_from(value).ok().map(i64::from),
            Shape::Int64 => i64::try_from(value).ok(),
            Shape::Raw => return Ok(Some(raw_integer(value))),
            _ => return Err(self.mismatch("number")),
        };
        match fits {
            Some(fits) => Ok(Some(fits.into())),
            None => Err(self.mismatch(&format!("number {value}"))),
        }
    }

    fn bytes<E: Error>(self, text: &str) -> Result<Option<Value>, E> {
        match base64_text(text) {
            Ok(text) => Ok(Some(text.into())),
            Err(why) => Err(self.context.fail(why)),
        }
    }

    fn time<E: Error>(self, text: &str) -> Result<Option<Value>, E> {
        let micro = matches!(self.schema.shape, Shape::MicroTime);
        if let Some(why) = go_time::refusal(text, micro) {
            return Err(self.context.fail(why));
        }
        // The rest is outside the range of our time type, though not of Go's.
        let Some(time) = parse_time(text) else {
            let text = crate::quote::go_quote(text);
            return Err(self.context.fail(format!("parsing time {text}: out of range")));
        };
        Ok(Some(if micro { format_micros(time) } else { format_seconds(time) }.into()))
    }
}

impl<'de> DeserializeSeed<'de> for SchemaSeed<'_, '_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Value>, D::Error> {
        if matches!(self.schema.shape, Shape::Raw) && self.context.is_in(MANAGED_FIELDS_ENTRY) {
            let text = canonical::read(deserializer, self.context)?;
            return Ok((text != "null").then(|| text.into()));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SchemaSeed<'_, '_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Option<Value>, E> {
        self.context.spend(0).map(|()| None)
    }

    fn visit_none<E: Error>(self) -> Result<Option<Value>, E> {
        self.visit_unit()
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Option<Value>, E> {
        self.context.spend(0)?;
        match self.schema.shape {
            Shape::Boolean | Shape::Raw => Ok(Some(value.into())),
            _ => Err(self.mismatch("bool")),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Option<Value>, E> {
        self.integer(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Option<Value>, E> {
        self.integer(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Option<Value>, E> {
        self.context.spend(0)?;
        match self.schema.shape {
            Shape::Raw => Ok(Some(value.into())),
            Shape::Int32 | Shape::Int64 | Shape::IntOrString => {
                Err(self.mismatch(&format!("number {value}")))
            }
            _ => Err(self.mismatch("number")),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<Value>, E> {
        self.context.spend(text.len())?;
        match self.schema.shape {
            Shape::String | Shape::Raw | Shape::IntOrString => {
                self.context.take(memory::text(text.len()))?;
                Ok(Some(text.into()))
            }
            Shape::Bytes => self.bytes(text),
            Shape::Time | Shape::MicroTime => self.time(text),
            _ => Err(self.mismatch("string")),
        }
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Option<Value>, E> {
        match self.schema.shape {
            Shape::String | Shape::Raw | Shape::IntOrString => {
                self.context.spend(text.len())?;
                self.context.take(memory::text(text.len()))?;
                Ok(Some(text.into()))
            }
            _ => self.visit_str(&text),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<Value>, A::Error> {
        self.context.spend(0)?;
        let items = match &self.schema.shape {
            Shape::List(items, _) => items,
            Shape::Raw => self.schema,
            _ => return Err(self.mismatch("array")),
        };
        let (mut values, max) = (Vec::new(), self.schema.max_items.unwrap_or(usize::MAX));
        while values.len() < max {
            let read =
                self.context.at_index(values.len(), |c| list.next_element_seed(SchemaSeed::new(c, items)))?;
            let Some(value) = read else { return Ok(Some(values.into())) };
            self.context.take(memory::item())?;
            values.push(or_zero(self.context, value, items)?);
        }
        let mut more = 0;
        while list.next_element::<IgnoredAny>()?.is_some() {
            more += 1;
        }
        if more > 0 {
            self.context.too_many(max.saturating_add(more), max);
        }
        Ok(Some(values.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Value>, A::Error> {
        self.context.spend(0)?;
        match &self.schema.shape {
            Shape::Object(shape) => read_struct(self.context, shape, &mut map),
            Shape::Map(values) => read_map(self.context, values, &mut map),
            Shape::Raw => read_map(self.context, self.schema, &mut map),
            _ => Err(self.mismatch("object")),
        }
        .map(|map| Some(Value::Object(map)))
    }
}

fn read_struct<'de, A: MapAccess<'de>>(
    context: &mut Context,
    shape: &ObjectShape,
    map: &mut A,
) -> Result<Map<String, Value>, A::Error> {
    let (mut result, mut seen) = (Map::new(), vec![false; shape.fields.len()]);
    while let Some(key) = map.next_key_seed(KeySeed)? {
        context.spend(key.len())?;
        let Some(index) = shape.fields.iter().position(|f| f.name == key) else {
            context.unknown(&key);
            map.next_value::<IgnoredAny>()?;
            continue;
        };
        if std::mem::replace(&mut seen[index], true) {
            context.duplicate(&key);
        }
        let field = &shape.fields[index];
        match context
            .at_field(shape, field.name, |c| map.next_value_seed(SchemaSeed::new(c, &field.schema)))?
        {
            Some(value) => {
                context.take(memory::entry(result.len(), &key))?;
                result.insert(key, value)
            }
            None => result.remove(&key),
        };
    }
    for (field, given) in shape.fields.iter().zip(seen) {
        let entries = result.len();
        if let Some(value) = complete_field(&mut result, field, given) {
            context.take(memory::entry(entries, field.name) + memory::content(value))?;
        }
    }
    Ok(result)
}

fn read_map<'de, A: MapAccess<'de>>(
    context: &mut Context,
    values: &Schema,
    map: &mut A,
) -> Result<Map<String, Value>, A::Error> {
    let mut result = Map::new();
    while let Some(key) = map.next_key_seed(KeySeed)? {
        context.spend(key.len())?;
        let value = context.at_key(&key, |c| map.next_value_seed(SchemaSeed::new(c, values)))?;
        if result.contains_key(&key) {
            match values.shape {
                Shape::Raw => context.duplicate_raw(&key),
                _ => context.duplicate(&key),
            }
        }
        context.take(memory::entry(result.len(), &key))?;
        let value = or_zero(context, value, values)?;
        result.insert(key, value);
    }
    Ok(result)
}

/// Returns the value, or the zero value of the schema for null.
fn or_zero<E: Error>(context: &mut Context, value: Option<Value>, schema: &Schema) -> Result<Value, E> {
    if let Some(value) = value {
        return Ok(value);
    }
    let zero = zero(schema);
    context.take(memory::content(&zero)).map(|()| zero)
}

fn raw_integer(value: i128) -> Value {
    match (i64::try_from(value), u64::try_from(value)) {
        (Ok(value), _) => value.into(),
        (_, Ok(value)) => value.into(),
        // The visitors pass at most 64 bits.
        _ => Value::Null,
    }
}

/// Reads a map key as text. YAML allows numbers and booleans as keys, and Kubernetes uses their text.
pub(super) struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_str<E: Error>(self, key: &str) -> Result<String, E> {
        Ok(key.to_owned())
    }
    fn visit_string<E: Error>(self, key: String) -> Result<String, E> {
        Ok(key)
    }
    fn visit_bool<E: Error>(self, key: bool) -> Result<String, E> {
        Ok(key.to_string())
    }
    fn visit_i64<E: Error>(self, key: i64) -> Result<String, E> {
        Ok(key.to_string())
    }
    fn visit_u64<E: Error>(self, key: u64) -> Result<String, E> {
        Ok(key.to_string())
    }
    fn visit_f64<E: Error>(self, key: f64) -> Result<String, E> {
        Ok(key.to_string())
    }
}
