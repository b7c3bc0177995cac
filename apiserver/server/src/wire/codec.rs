//! Objects from and to bytes, through the machinery.

use bytes::Bytes;
use drydock_machinery::decode::{self, Decoded};
use drydock_machinery::kind::Kind;
use drydock_machinery::{ApiError, Object, protobuf};
use drydock_serving::wire::negotiate::WireFormat;
use serde_json::Value;

use crate::request::warnings::Warnings;
use crate::request::write_options::FieldValidation;

/// Decodes an object of `kind` from a body, with defaults.
pub fn decode(
    body: &[u8],
    format: WireFormat,
    kind: &dyn Kind,
    validation: FieldValidation,
    warnings: &Warnings,
) -> Result<Object, ApiError> {
    let decoded = match format {
        WireFormat::Json => decode::decode(body, decode::Format::Json, kind.names(), kind.schema())?,
        WireFormat::Yaml => decode::decode(body, decode::Format::Yaml, kind.names(), kind.schema())?,
        WireFormat::Protobuf => protobuf_object(body, kind)?,
    };
    match (validation, decoded.strict_error(kind.names())) {
        (FieldValidation::Strict, Some(error)) => return Err(error),
        (FieldValidation::Warn, _) => decoded.strict_errors.into_iter().for_each(|e| warnings.add(e)),
        _ => {}
    }
    let mut object = decoded.object;
    kind.set_defaults(&mut object);
    Ok(object)
}

/// Protobuf has no strict mode: what is unknown is skipped.
fn protobuf_object(body: &[u8], kind: &dyn Kind) -> Result<Decoded, ApiError> {
    let unrecognized = |why: &str| {
        let (kind, body) = (kind.names().kind, decode::summary(body));
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({body})"
        ))
    };
    if body == protobuf::MAGIC {
        return Err(unrecognized("empty body"));
    }
    let object = protobuf::decode(body, kind.schema()).map_err(|error| match error.code() {
        400 => unrecognized(&error.status.message),
        _ => error,
    })?;
    decode::decode(&object.to_json(), decode::Format::Json, kind.names(), kind.schema())
}

/// A body of free form as a JSON tree.
pub fn value(body: &[u8], format: WireFormat) -> Result<Value, ApiError> {
    match format {
        WireFormat::Json => decode::decode_value(body, decode::Format::Json),
        WireFormat::Yaml => decode::decode_value(body, decode::Format::Yaml),
        // The only message of free form that clients send is DeleteOptions.
        WireFormat::Protobuf => protobuf::decode_delete_options(body).map(Object::into_value),
    }
}

/// An object in its protobuf envelope.
pub fn object_protobuf(kind: &dyn Kind, object: &Object) -> Bytes {
    protobuf::encode(object, kind.schema())
}

/// An object's metadata as a bare protobuf message.
pub fn metadata_protobuf(kind: &dyn Kind, object: &Object) -> Bytes {
    protobuf::encode_metadata(object, kind.schema()).into()
}
