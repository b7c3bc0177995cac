//! Decodes bytes as objects of a schema: unknown fields are dropped and reported, values of the wrong type are
//! refused.
//!
//! Outcomes and messages are those of Kubernetes' serializer for compiled-in types (sigs.k8s.io/json and
//! k8s.io/apimachinery/pkg/runtime/serializer/json). Decoding is one pass, driven by the schema; it cannot use more
//! memory than a small multiple of the length of the body, even for YAML aliases.

mod context;
mod depth;
mod from_unstructured;
mod go_values;
mod seed;
#[cfg(test)]
mod tests;
mod type_meta;

use serde::de::{DeserializeSeed, Deserializer};
use serde_json::Value;

use self::context::{Context, LimitExceeded};
use self::seed::SchemaSeed;
pub use self::type_meta::{not_registered, summary};
use crate::error::ApiError;
use crate::field::{self, Error, Path};
use crate::go_json;
use crate::kind::Names;
use crate::object::Object;
use crate::object::managed_fields::FieldsForm;
use crate::quote::go_quote;
use crate::schema::Schema;

/// The encodings of a body that this module decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
}

/// An object that fits its schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object: known fields of the right type; `apiVersion` and `kind` are always set.
    pub object: Object,
    /// `unknown field "spec.foo"`, `duplicate field "spec.bar"`; at most 100.
    pub strict_errors: Vec<String>,
}

impl Decoded {
    /// Returns the 400 of fieldValidation=Strict, if there is an unknown or duplicate field.
    pub fn strict_error(&self, names: &Names) -> Option<ApiError> {
        let why = format!("strict decoding error: {}", self.strict_errors.join(", "));
        (!self.strict_errors.is_empty()).then(|| cannot_be_handled(names, names.kind, names.version, &why))
    }
}

/// Decodes a body that must be an object of this kind. Fills in `apiVersion` and `kind` if they are absent.
pub fn decode(body: &[u8], format: Format, names: &Names, schema: &Schema) -> Result<Decoded, ApiError> {
    let unrecognized = |why: String| {
        let (kind, body) = (names.kind, type_meta::summary(body));
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({body})"
        ))
    };
    depth::check_structural_characters(body, format)?;
    let mut context = Context::new(body.len());
    let value = read(body, format, SchemaSeed::new(&mut context, schema));
    // If the body is of another kind, that error matters more than a decoding error. It is checked only if there is
    // something to refuse.
    if !value.as_ref().is_ok_and(|value| type_meta::is_of(value.as_ref(), names)) {
        type_meta::check(body, format, names, unrecognized)?;
    }
    let limits = context.check_limits();
    if let Err(LimitExceeded::Memory(refusal)) = limits {
        return Err(refusal);
    }
    let value =
        value.map_err(|why| cannot_be_handled(names, names.kind, names.version, &context.fatal(why)))?;
    // A body of null is treated like one without fields.
    let mut object = into_object(value.or_else(|| Some(go_values::zero(schema)))).map_err(unrecognized)?;
    object.0.insert("apiVersion".into(), names.api_version().into());
    object.0.insert("kind".into(), names.kind.into());
    if let Err(LimitExceeded::Items(errors)) = limits {
        return Err(too_many_items(names, &object, errors));
    }
    Ok(Decoded { object, strict_errors: context.into_strict_errors() })
}

/// Decodes a free-form body: a JSON value of bounded size and depth. Of duplicate keys, the last one wins.
pub fn decode_value(body: &[u8], format: Format) -> Result<Value, ApiError> {
    free_form(body, format, Context::new(body.len())).map(|(value, _)| value)
}

/// As [`decode_value`]; also returns the strict errors for duplicate keys, at most 100.
pub fn decode_value_strictly(body: &[u8], format: Format) -> Result<(Value, Vec<String>), ApiError> {
    free_form(body, format, Context::strict(body.len(), format))
}

/// Decodes free-form YAML and returns the strict errors for duplicate keys. Most bodies are JSON, which is read as
/// JSON at a fraction of the cost. YAML reads the escapes `\u` and `\/` differently, so a body with one of those is
/// read as YAML.
pub fn decode_yaml_strictly(body: &[u8]) -> Result<(Value, Vec<String>), ApiError> {
    let context = || Context::strict(body.len(), Format::Yaml);
    let escapes = body.windows(2).any(|pair| pair == b"\\u" || pair == b"\\/");
    if body.trim_ascii_start().starts_with(b"{") && !escapes {
        let json = free_form(body, Format::Json, context());
        if json.is_ok() {
            return json;
        }
    }
    free_form(body, Format::Yaml, context())
}

fn free_form(body: &[u8], format: Format, mut context: Context) -> Result<(Value, Vec<String>), ApiError> {
    let value =
        read_raw(body, format, &mut context).map_err(|refusal| refusal.into_error(ApiError::bad_request))?;
    Ok((value, context.into_strict_errors()))
}

/// Decodes a free-form JSON body of bounded size.
pub(crate) fn json_value(body: &[u8]) -> Result<Value, DecodeError> {
    read_raw(body, Format::Json, &mut Context::new(body.len()))
}

/// Returns the strict errors of a body that `schema` describes: unknown and duplicate fields, at most 100.
pub(crate) fn strict_errors(body: &[u8], schema: &Schema) -> Result<Vec<String>, DecodeError> {
    let mut context = Context::strict(body.len(), Format::Json);
    read_bounded(body, Format::Json, &mut context, schema)?;
    Ok(context.into_strict_errors())
}

fn read_raw(body: &[u8], format: Format, context: &mut Context) -> Result<Value, DecodeError> {
    read_bounded(body, format, context, &Schema::new("", crate::schema::Shape::Raw))
}

fn read_bounded(
    body: &[u8],
    format: Format,
    context: &mut Context,
    schema: &Schema,
) -> Result<Value, DecodeError> {
    depth::check_structural_characters(body, format).map_err(DecodeError::Status)?;
    let value = read(body, format, SchemaSeed::new(context, schema));
    if let Err(LimitExceeded::Memory(refusal)) = context.check_limits() {
        return Err(DecodeError::Status(refusal));
    }
    value.map(Option::unwrap_or_default).map_err(|why| DecodeError::Reason(context.fatal(why)))
}

/// Why a body, or the result of a patch, is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum DecodeError {
    /// The value does not fit the schema; the caller puts the reason into an error.
    Reason(String),
    /// The value fits but is too large: a 413, or a 422 that names the lists that are too long.
    Status(ApiError),
}

impl DecodeError {
    /// Returns the error: the complete one, or the one that `worded` makes from the reason.
    pub fn into_error(self, worded: impl FnOnce(String) -> ApiError) -> ApiError {
        match self {
            Self::Reason(why) => worded(why),
            Self::Status(error) => error,
        }
    }
}

/// The 422 for lists that are too long.
fn too_many_items(names: &Names, object: &Object, errors: field::ErrorList) -> ApiError {
    ApiError::invalid(names.group, names.kind, object.name(), errors)
}

/// Makes the object that a patch produced fit the schema. Returns the strict errors for fieldValidation.
pub fn decode_patched(object: &mut Object, names: &Names, schema: &Schema) -> Result<Vec<String>, ApiError> {
    let patched = std::mem::take(object).into_value();
    let (decoded_patch, strict_errors) = decoded_patch(&patched, names, schema).map_err(|refusal| {
        refusal.into_error(|why| {
            let patched = field::cut(patched.to_string(), PATCHED_SHOWN);
            ApiError::invalid("", "", "", vec![Error::invalid(Path::new("patch"), patched, why)])
        })
    })?;
    *object = decoded_patch;
    Ok(strict_errors)
}

/// Makes the result of a strategic merge patch fit the schema. Rules and messages are those of Kubernetes' conversion
/// from a map to a struct (k8s.io/apimachinery/pkg/runtime/converter.go), which differ from those of its JSON
/// decoder. Returns the strict errors for fieldValidation; fails if the value does not fit.
pub fn from_unstructured(
    mut value: Value,
    names: &Names,
    schema: &Schema,
) -> Result<(Object, Vec<String>), DecodeError> {
    let unknown = from_unstructured::from_unstructured(&mut value, schema).map_err(DecodeError::Reason)?;
    let (object, _) = decoded_patch(value, names, schema)?;
    Ok((object, unknown))
}

fn decoded_patch<'de>(
    value: impl Deserializer<'de, Error = serde_json::Error>,
    names: &Names,
    schema: &Schema,
) -> Result<(Object, Vec<String>), DecodeError> {
    let mut context = Context::of_patched();
    let read = SchemaSeed::new(&mut context, schema).deserialize(value);
    let limits = context.check_limits();
    if let Err(LimitExceeded::Memory(refusal)) = limits {
        return Err(DecodeError::Status(refusal));
    }
    let read = read.map_err(|error| context.fatal(error.to_string()));
    let object = read.and_then(into_object).map_err(DecodeError::Reason)?;
    match limits {
        Err(LimitExceeded::Items(errors)) => Err(DecodeError::Status(too_many_items(names, &object, errors))),
        _ => Ok((object, context.into_strict_errors())),
    }
}

/// Maximum number of bytes of a patch's result that an error shows.
const PATCHED_SHOWN: usize = 4096;

/// Returns the zero value of the object in Go: structs that are not pointers, and fields that are always written.
pub fn zero_object(schema: &Schema) -> Object {
    match go_values::zero(schema) {
        Value::Object(map) => Object::raw(map),
        _ => Object::default(),
    }
}

/// `Lease in version "v1" cannot be handled as a Lease: why`
fn cannot_be_handled(names: &Names, kind: &str, version: &str, why: &str) -> ApiError {
    let version = go_quote(version);
    ApiError::bad_request(format!("{kind} in version {version} cannot be handled as a {}: {why}", names.kind))
}

/// Runs a seed over a whole body. Fails if data follows the value.
fn read<S, T>(body: &[u8], format: Format, seed: S) -> Result<T, String>
where
    S: for<'de> DeserializeSeed<'de, Value = T>,
{
    depth::check(body, format)?;
    match format {
        Format::Json => read_json(body, seed).map_err(|e| go_json::message(body, &e)),
        Format::Yaml => read_yaml(body, seed).map_err(|error| {
            // The message is that of Go's reader, without the position.
            let text = error.to_string();
            let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
            format!("error converting YAML to JSON: yaml: {what}")
        }),
    }
}

fn read_json<S, T>(body: &[u8], seed: S) -> serde_json::Result<T>
where
    S: for<'de> DeserializeSeed<'de, Value = T>,
{
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end().map(|()| value)
}

fn read_yaml<S, T>(body: &[u8], seed: S) -> Result<T, serde_yaml_ng::Error>
where
    S: for<'de> DeserializeSeed<'de, Value = T>,
{
    seed.deserialize(serde_yaml_ng::Deserializer::from_slice(body))
}

fn into_object(value: Option<Value>) -> Result<Object, String> {
    match value {
        Some(Value::Object(map)) => Ok(Object::of_tree(map, FieldsForm::AsText)),
        _ => Err("json: cannot unmarshal into Go value of a struct type".to_owned()),
    }
}
