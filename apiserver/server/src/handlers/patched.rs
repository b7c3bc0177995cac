//! Applies patches to objects, and checks both by fieldValidation.

use drydock_machinery::field::{Error, Path};
use drydock_machinery::go_format::plain;
use drydock_machinery::kind::Kind;
use drydock_machinery::patch::strategic_merge_patch;
use drydock_machinery::{ApiError, Object, decode};
use serde_json::{Map, Value};

use super::context::RequestContext;
use crate::request::write_options::{FieldValidation, WriteOptions};

/// Returns what fieldValidation finds in the body of a merge patch. Returns nothing for a body that cannot be read,
/// which is refused when it is applied.
pub fn merge_patch_errors(patch: &[u8]) -> Vec<String> {
    let read = decode::decode_value_strictly(patch, decode::Format::Json);
    read.map(|(_, errors)| errors).unwrap_or_default()
}

/// Reads the body of an apply. Duplicate fields in it cause a warning or a refusal.
pub fn applied(patch: &[u8], request: &RequestContext, options: &WriteOptions) -> Result<Value, ApiError> {
    let undecodable = |e: ApiError| {
        if e.code() != 400 {
            return e;
        }
        let why = e.status.message;
        // What the YAML reader itself refuses fails in the conversion to JSON.
        let way = if why.starts_with("yaml: ") { "error converting YAML to JSON: " } else { "" };
        ApiError::bad_request(format!("error decoding YAML: {way}{why}"))
    };
    let (value, errors) = decode::decode_yaml_strictly(patch).map_err(undecodable)?;
    if errors.is_empty() || options.field_validation == FieldValidation::Ignore {
        return Ok(value);
    }
    let why = format!("error converting YAML to JSON: yaml: unmarshal errors: {}", errors.join(", "));
    match options.field_validation {
        FieldValidation::Strict => Err(ApiError::bad_request(format!("error strict decoding YAML: {why}"))),
        _ => {
            request.warnings.add(why);
            Ok(value)
        }
    }
}

/// The result of a JSON or merge patch as an object of the request's kind, with defaults; 422 if it is no such
/// object. `of_patch` is what fieldValidation has found in the patch itself.
pub fn patched(
    value: Value,
    of_patch: &[String],
    request: &RequestContext,
    options: &WriteOptions,
) -> Result<Object, ApiError> {
    let Value::Object(map) = value else {
        let shown = value.to_string();
        let detail = "json: cannot unmarshal into Go value of a struct type";
        return Err(invalid_patch(shown, detail));
    };
    let mut object = Object::raw(map);
    if !object.0.contains_key("kind") && options.field_validation == FieldValidation::Warn {
        // Kubernetes reads it as an object without fields.
        object.0.keys().for_each(|field| request.warnings.add(format!("unknown field {field:?}")));
    }
    check_type(&object, request.kind())?;
    let mut strict_errors = of_patch.to_vec();
    let given = (options.field_validation == FieldValidation::Strict).then(|| object.0.clone());
    strict_errors.extend(decode::decode_patched(&mut object, request.names(), request.kind().schema())?);
    apply_field_validation(strict_errors, request, options, || {
        Value::Object(given.unwrap_or_default()).to_string()
    })?;
    request.kind().set_defaults(&mut object);
    Ok(object)
}

/// `present` with a strategic merge patch merged into it, and defaults. A change of the type by the patch has no
/// effect.
pub fn strategically_patched(
    present: &Object,
    patch: &[u8],
    request: &RequestContext,
    options: &WriteOptions,
) -> Result<Object, ApiError> {
    let (names, schema) = (request.names(), request.kind().schema());
    let (mut patch, mut strict_errors) = strategic_patch(patch)?;
    let mut document = present.to_tree();
    strategic_merge_patch(&mut document, &mut patch, schema)?;
    let shown = || plain(&Value::Object(patch.clone()));
    let restored = decode::from_unstructured(Value::Object(document), names, schema);
    let (mut object, unknown) =
        restored.map_err(|refusal| refusal.into_error(|why| invalid_patch(shown(), &why)))?;
    strict_errors.extend(unknown);
    apply_field_validation(strict_errors, request, options, shown)?;
    object.0.insert("apiVersion".to_owned(), names.api_version().into());
    object.0.insert("kind".to_owned(), names.kind.into());
    request.kind().set_defaults(&mut object);
    Ok(object)
}

/// Reads a patch. Returns it, and the errors of duplicate fields; a null patch changes nothing.
fn strategic_patch(patch: &[u8]) -> Result<(Map<String, Value>, Vec<String>), ApiError> {
    let (patch, errors) = decode::decode_value_strictly(patch, decode::Format::Json)?;
    match patch {
        Value::Object(patch) => Ok((patch, errors)),
        Value::Null => Ok((Map::new(), errors)),
        other => {
            let kind = json_kind(&other);
            let target = "Go value of type map[string]interface {}";
            Err(ApiError::bad_request(format!("json: cannot unmarshal {kind} into {target}")))
        }
    }
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        _ => "string",
    }
}

/// Refuses or warns of what fieldValidation found in a patch and its outcome.
fn apply_field_validation(
    errors: Vec<String>,
    request: &RequestContext,
    options: &WriteOptions,
    shown: impl FnOnce() -> String,
) -> Result<(), ApiError> {
    match options.field_validation {
        FieldValidation::Strict if !errors.is_empty() => {
            let detail = format!("strict decoding error: {}", errors.join(", "));
            return Err(invalid_patch(shown(), &detail));
        }
        FieldValidation::Warn => errors.into_iter().for_each(|e| request.warnings.add(e)),
        _ => {}
    }
    Ok(())
}

/// Refuses a patch that makes the object one of another type.
fn check_type(object: &Object, kind: &dyn Kind) -> Result<(), ApiError> {
    let names = kind.names();
    let text = |field: &str| object.0.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, given) = (text("apiVersion"), text("kind"));
    if version == names.api_version() && given == names.kind {
        return Ok(());
    }
    if version.is_empty() && given.is_empty() && object.meta().is_some() {
        let why = format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            object.name()
        );
        return Err(ApiError::bad_request(why));
    }
    let detail = decode::not_registered(given, version);
    Err(invalid_patch(object.to_value().to_string(), &detail))
}

fn invalid_patch(shown: String, detail: &str) -> ApiError {
    let shown: String = shown.chars().take(4096).collect();
    ApiError::invalid("", "", "", vec![Error::invalid(Path::new("patch"), shown, detail)])
}
