//! runtime.Unknown: the envelope of an object of any type.

use bytes::Bytes;

use super::scalar::text;
use super::wire::{self, WireReader, WireValue};
use crate::error::ApiError;

/// The first bytes of every envelope.
pub const MAGIC: [u8; 4] = [0x6b, 0x38, 0x73, 0x00];

/// An opened envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `group/version`
    pub api_version: String,
    /// CamelCase kind.
    pub kind: String,
    /// The message.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Opens an envelope.
    ///
    /// # Errors
    /// 400 if the bytes are no envelope, or hold something other than plain protobuf.
    pub fn open(body: &'a [u8]) -> Result<Self, ApiError> {
        let rest = body.strip_prefix(&MAGIC).ok_or_else(|| {
            let expected = format!("{MAGIC:?}").replace(',', "");
            let why =
                format!("provided data does not appear to be a protobuf message, expected prefix {expected}");
            ApiError::bad_request(why)
        })?;
        Self::read(rest).map_err(|why| ApiError::bad_request(format!("unable to decode protobuf: {why}")))
    }

    /// Wraps `raw` in the envelope of this type.
    pub fn seal(api_version: &str, kind: &str, raw: &[u8]) -> Bytes {
        let mut type_meta = Vec::with_capacity(api_version.len() + kind.len() + 8);
        wire::write_bytes(&mut type_meta, 1, api_version.as_bytes());
        wire::write_bytes(&mut type_meta, 2, kind.as_bytes());
        let mut out = Vec::with_capacity(raw.len() + type_meta.len() + 24);
        out.extend_from_slice(&MAGIC);
        wire::write_bytes(&mut out, 1, &type_meta);
        wire::write_bytes(&mut out, 2, raw);
        wire::write_bytes(&mut out, 3, b"");
        wire::write_bytes(&mut out, 4, b"");
        Bytes::from(out)
    }

    fn read(unknown: &'a [u8]) -> Result<Self, String> {
        let mut envelope = Self { api_version: String::new(), kind: String::new(), raw: &[] };
        let mut reader = WireReader::new(unknown);
        while let Some((number, wire)) = reader.next()? {
            match (number, wire) {
                (1, WireValue::Bytes(type_meta)) => envelope.read_type(type_meta)?,
                (2, WireValue::Bytes(raw)) => envelope.raw = raw,
                (3, WireValue::Bytes(encoding)) if !encoding.is_empty() => {
                    return Err("a content encoding is not supported".to_owned());
                }
                (4, WireValue::Bytes(kind))
                    if !matches!(kind, b"" | b"application/vnd.kubernetes.protobuf") =>
                {
                    return Err("the content is not protobuf".to_owned());
                }
                (3 | 4, WireValue::Bytes(_)) | (5.., _) => {}
                (field, _) => return Err(format!("proto: wrong wireType for field {field}")),
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, type_meta: &[u8]) -> Result<(), String> {
        let mut reader = WireReader::new(type_meta);
        while let Some((number, wire)) = reader.next()? {
            match (number, wire) {
                (1, WireValue::Bytes(value)) => self.api_version = text(value)?,
                (2, WireValue::Bytes(value)) => self.kind = text(value)?,
                _ => {}
            }
        }
        Ok(())
    }
}
