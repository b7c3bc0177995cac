//! Encodes objects as bytes.

use bytes::Bytes;
use serde_json::{Map, Value};

use super::envelope::Envelope;
use super::scalar::{base64_bytes, int_or_string, write_time};
use super::wire;
use crate::object::managed_fields::FIELD;
use crate::object::{ManagedFieldsEntry, Object};
use crate::schema::{Field, ObjectShape, Schema, Shape};

/// Returns an object in its envelope.
pub fn encode(object: &Object, schema: &Schema) -> Bytes {
    let text = |field: &str| object.0.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut out = Vec::with_capacity(USUAL_SIZE);
    if let Shape::Object(shape) = &schema.shape {
        message(&mut out, Some(&object.0), shape, object.managed_fields());
    }
    Envelope::seal(text("apiVersion"), text("kind"), &out)
}

/// Returns an object's metadata as a message without an envelope; empty if it has none.
pub fn encode_metadata(object: &Object, schema: &Schema) -> Vec<u8> {
    let mut out = Vec::with_capacity(USUAL_SIZE);
    let metadata = schema.field("metadata").map(|metadata| &metadata.shape);
    if let (Some(fields), Some(Shape::Object(shape))) = (object.meta(), metadata) {
        message(&mut out, Some(fields), shape, object.managed_fields());
    }
    out
}

/// Initial capacity of the buffer; most objects fit.
const USUAL_SIZE: usize = 2048;

/// Returns a struct as a message without an envelope; empty if the schema is not that of a struct.
pub fn encode_message(value: &Map<String, Value>, schema: &Schema) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    if let Shape::Object(shape) = &schema.shape {
        message(&mut out, Some(value), shape, None);
    }
    out
}

/// `managed` are the entries of the value's metadata, or of the value if it is the metadata.
fn message(
    out: &mut Vec<u8>,
    value: Option<&Map<String, Value>>,
    shape: &ObjectShape,
    managed: Option<&[ManagedFieldsEntry]>,
) {
    let mut fields: Vec<&Field> = shape.fields.iter().filter(|f| f.number > 0).collect();
    fields.sort_unstable_by_key(|f| f.number);
    for field in fields {
        match (field.name, managed) {
            ("metadata", Some(_)) => {
                let metadata = value.and_then(|map| map.get(field.name)).and_then(Value::as_object);
                if let Shape::Object(shape) = &field.schema.shape {
                    nested(out, field.number, |out| message(out, metadata, shape, managed));
                }
                continue;
            }
            (FIELD, Some(entries)) => {
                entries.iter().for_each(|entry| nested(out, field.number, |out| managed_fields(out, entry)));
                continue;
            }
            _ => {}
        }
        let value = value.and_then(|map| map.get(field.name)).filter(|v| !v.is_null());
        let by_value = !field.is_pointer() && is_scalar(&field.schema.shape);
        if value.is_none() && field.pointer == Some(false) && matches!(field.schema.shape, Shape::Time) {
            // A zero time is an empty message.
            wire::write_bytes(out, field.number, b"");
            continue;
        }
        if value.is_some() || field.always || by_value {
            write(out, field.number, value, &field.schema);
        }
    }
}

/// Types that Go writes even if they are zero, unless they are pointers.
fn is_scalar(shape: &Shape) -> bool {
    matches!(shape, Shape::Boolean | Shape::Int32 | Shape::Int64 | Shape::String)
}

/// Writes a field with its value, or with its zero value.
fn write(out: &mut Vec<u8>, number: u32, value: Option<&Value>, schema: &Schema) {
    match &schema.shape {
        Shape::Boolean => {
            wire::write_integer(out, number, i64::from(value.is_some_and(|v| v == &Value::Bool(true))))
        }
        Shape::Int32 | Shape::Int64 => {
            wire::write_integer(out, number, value.and_then(Value::as_i64).unwrap_or_default());
        }
        Shape::String => {
            wire::write_bytes(out, number, value.and_then(Value::as_str).unwrap_or_default().as_bytes())
        }
        Shape::Bytes => wire::write_bytes(
            out,
            number,
            &value.and_then(Value::as_str).map(base64_bytes).unwrap_or_default(),
        ),
        Shape::IntOrString => nested(out, number, |out| int_or_string(out, value)),
        Shape::Time => write_time(out, number, value, false),
        Shape::MicroTime => write_time(out, number, value, true),
        Shape::Raw => {
            // RawExtension and FieldsV1 hold JSON text in their field 1.
            let text = value.map(Value::to_string).unwrap_or_default();
            nested(out, number, |out| wire::write_bytes(out, 1, text.as_bytes()));
        }
        Shape::Object(shape) => {
            nested(out, number, |out| message(out, value.and_then(Value::as_object), shape, None));
        }
        Shape::Map(values) => {
            for (key, value) in value.and_then(Value::as_object).into_iter().flatten() {
                nested(out, number, |out| {
                    wire::write_bytes(out, 1, key.as_bytes());
                    write(out, 2, Some(value), values);
                });
            }
        }
        Shape::List(items, _) => {
            for item in value.and_then(Value::as_array).into_iter().flatten() {
                write(out, number, Some(item), items);
            }
        }
    }
}

/// k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto
fn managed_fields(out: &mut Vec<u8>, entry: &ManagedFieldsEntry) {
    wire::write_bytes(out, 1, entry.manager.as_bytes());
    wire::write_bytes(out, 2, entry.operation.as_bytes());
    wire::write_bytes(out, 3, entry.api_version.as_bytes());
    if !entry.time.is_empty() {
        write_time(out, 4, Some(&entry.time.as_str().into()), false);
    }
    wire::write_bytes(out, 6, entry.fields_type.as_bytes());
    if let Some(fields) = &entry.fields_v1 {
        nested(out, 7, |out| wire::write_bytes(out, 1, fields.as_str().as_bytes()));
    }
    wire::write_bytes(out, 8, entry.subresource.as_bytes());
}

fn nested(out: &mut Vec<u8>, number: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::with_capacity(64);
    body(&mut inner);
    wire::write_bytes(out, number, &inner);
}
