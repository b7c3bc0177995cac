//! Decodes bytes as objects. Skips fields that the schema does not have, as Go does.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::envelope::Envelope;
use super::scalar::{read_int_or_string, read_time, text};
use super::wire::{WireReader, WireValue};
use crate::decode::{DecodeError, json_value};
use crate::error::ApiError;
use crate::memory::{self, DecodeMemory};
use crate::object::Object;
use crate::schema::{Field, ListType, ObjectShape, Schema, Shape};

/// Decodes an object from its envelope, with the envelope's `apiVersion` and `kind`; the caller checks that they are
/// the expected ones.
///
/// # Errors
/// 400 if the bytes are no such object, 413 if it takes too much memory.
pub fn decode(body: &[u8], schema: &Schema) -> Result<Object, ApiError> {
    let envelope = Envelope::open(body)?;
    let mut map = decode_message(envelope.raw, schema)?;
    for (field, value) in [("apiVersion", envelope.api_version), ("kind", envelope.kind)] {
        if !value.is_empty() {
            map.insert(field.to_owned(), Value::from(value));
        }
    }
    Ok(Object::from(map))
}

/// Decodes a message of a struct without an envelope.
///
/// # Errors
/// 400 if the bytes are no such message, 413 if it takes too much memory.
pub fn decode_message(bytes: &[u8], schema: &Schema) -> Result<Map<String, Value>, ApiError> {
    let mut memory = DecodeMemory::of_body(bytes.len());
    let read = match &schema.shape {
        Shape::Object(shape) => message(bytes, shape, &mut memory),
        _ => Err("not a message".to_owned()),
    };
    read.map_err(|why| {
        if memory.is_exhausted() {
            return memory.refusal();
        }
        ApiError::bad_request(format!("unable to decode protobuf: {why}"))
    })
}

/// Decodes metav1.DeleteOptions, which Kubernetes' own clients send as protobuf, from their envelope, as the equivalent
/// JSON object.
///
/// # Errors
/// 400 if the bytes are no DeleteOptions.
pub fn decode_delete_options(body: &[u8]) -> Result<Object, ApiError> {
    decode(body, &DELETE_OPTIONS)
}

/// Its depth is bounded by that of the schema.
fn message(
    bytes: &[u8],
    shape: &ObjectShape,
    memory: &mut DecodeMemory,
) -> Result<Map<String, Value>, String> {
    let mut map = Map::new();
    let mut reader = WireReader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        let Some(field) = shape.fields.iter().find(|f| f.number == number) else { continue };
        let named = |why: String| format!("{}: {why}", field.name);
        if !map.contains_key(field.name) {
            take(memory, memory::entry(map.len(), field.name))?;
        }
        match &field.schema.shape {
            Shape::List(items, _) => {
                take(memory, memory::item())?;
                let item = read(wire, items, memory).map_err(named)?.unwrap_or_else(|| zero(items));
                let list = map.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(list) = list {
                    list.push(item);
                }
            }
            Shape::Map(values) => {
                let (key, value) = entry(wire, values, memory).map_err(named)?;
                let entries = map.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(entries) = entries {
                    take(memory, memory::entry(entries.len(), &key))?;
                    entries.insert(key, value);
                }
            }
            Shape::String if field.is_pointer() => {
                let WireValue::Bytes(bytes) = wire else {
                    return Err(named("proto: wrong wireType".to_owned()));
                };
                map.insert(field.name.to_owned(), text(bytes).map_err(named)?.into());
            }
            _ => match read(wire, &field.schema, memory).map_err(named)? {
                Some(value) => {
                    map.insert(field.name.to_owned(), value);
                }
                None => {
                    map.remove(field.name);
                }
            },
        }
    }
    Ok(map)
}

/// Reads a value; `None` for one that Go's JSON would omit.
fn read(wire: WireValue<'_>, schema: &Schema, memory: &mut DecodeMemory) -> Result<Option<Value>, String> {
    if let WireValue::Bytes(bytes) = &wire
        && !matches!(schema.shape, Shape::Object(_) | Shape::Raw)
    {
        take(memory, memory::text(bytes.len()))?;
    }
    let value = match (&schema.shape, wire) {
        (Shape::Boolean, WireValue::Varint(v)) => Value::from(v != 0),
        // Go truncates too.
        (Shape::Int32, WireValue::Varint(v)) => Value::from(v as u32 as i32),
        (Shape::Int64, WireValue::Varint(v)) => Value::from(v.cast_signed()),
        (Shape::String, WireValue::Bytes(b)) => {
            let text = text(b)?;
            return Ok((!text.is_empty()).then(|| Value::from(text)));
        }
        (Shape::Bytes, WireValue::Bytes(b)) => Value::from(STANDARD.encode(b)),
        (Shape::IntOrString, WireValue::Bytes(b)) => read_int_or_string(b)?,
        (Shape::Time, WireValue::Bytes(b)) => return read_time(b, false),
        (Shape::MicroTime, WireValue::Bytes(b)) => return read_time(b, true),
        (Shape::Raw, WireValue::Bytes(b)) => return raw(b, memory),
        (Shape::Object(shape), WireValue::Bytes(b)) => Value::Object(message(b, shape, memory)?),
        _ => return Err("proto: wrong wireType".to_owned()),
    };
    Ok(Some(value))
}

fn entry(wire: WireValue<'_>, values: &Schema, memory: &mut DecodeMemory) -> Result<(String, Value), String> {
    let WireValue::Bytes(bytes) = wire else { return Err("proto: wrong wireType".to_owned()) };
    let (mut key, mut value) = (String::new(), None);
    let mut reader = WireReader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, WireValue::Bytes(b)) => key = text(b)?,
            (2, wire) => value = read(wire, values, memory)?,
            (1, _) => return Err("proto: wrong wireType".to_owned()),
            _ => {}
        }
    }
    Ok((key, value.unwrap_or_else(|| zero(values))))
}

/// Reads JSON text in field 1; serde_json limits its depth.
fn raw(bytes: &[u8], memory: &mut DecodeMemory) -> Result<Option<Value>, String> {
    let mut value = None;
    let mut reader = WireReader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        if let (1, WireValue::Bytes(text)) = (number, wire) {
            value = match text {
                b"" => None,
                text => Some(raw_value(text, memory)?),
            };
        }
    }
    Ok(value)
}

fn raw_value(text: &[u8], memory: &mut DecodeMemory) -> Result<Value, String> {
    match json_value(text) {
        Ok(value) => take(memory, memory::content(&value)).map(|()| value),
        Err(DecodeError::Reason(why)) => Err(why),
        Err(DecodeError::Status(answer)) => Err(answer.status.message),
    }
}

/// Takes memory. The caller that created `memory` turns the error into a 413.
fn take(memory: &mut DecodeMemory, bytes: usize) -> Result<(), String> {
    if memory.take(bytes) { Ok(()) } else { Err("too large".to_owned()) }
}

fn zero(schema: &Schema) -> Value {
    match schema.shape {
        Shape::String | Shape::Bytes => Value::from(""),
        Shape::Object(_) | Shape::Map(_) => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

/// Field numbers of k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.
static DELETE_OPTIONS: LazyLock<Schema> = LazyLock::new(|| {
    let preconditions = vec![field("uid", 1, Shape::String), field("resourceVersion", 2, Shape::String)];
    let strings = Shape::List(Box::new(Schema::new("", Shape::String)), ListType::Atomic);
    structure(vec![
        field("gracePeriodSeconds", 1, Shape::Int64),
        Field { schema: structure(preconditions), ..field("preconditions", 2, Shape::Raw) },
        field("orphanDependents", 3, Shape::Boolean),
        field("propagationPolicy", 4, Shape::String),
        field("dryRun", 5, strings),
        field("ignoreStoreReadErrorWithClusterBreakingPotential", 6, Shape::Boolean),
    ])
});

fn structure(fields: Vec<Field>) -> Schema {
    Schema::new("", Shape::Object(ObjectShape { fields, ..ObjectShape::default() }))
}

fn field(name: &'static str, number: u32, shape: Shape) -> Field {
    Field { name, number, required: false, always: false, pointer: None, schema: Schema::new("", shape) }
}
