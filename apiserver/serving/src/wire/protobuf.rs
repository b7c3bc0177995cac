//! The protobuf envelope and the types of meta.k8s.io that are answered in it
//! (k8s.io/apimachinery/pkg/runtime/serializer/protobuf; field numbers from pkg/apis/meta/v1/generated.proto).

use bytes::{BufMut, Bytes, BytesMut};
use drydock_machinery::error::{Status, StatusCause, StatusDetails};

/// What every enveloped object starts with.
pub const MAGIC: [u8; 4] = [0x6b, 0x38, 0x73, 0x00];

/// `raw` as an object of this type: magic and `Unknown{typeMeta, raw}`.
pub fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Bytes {
    let mut out = envelope_head(api_version, kind, raw.len());
    out.extend_from_slice(raw);
    out.put_slice(ENVELOPE_TAIL);
    out.freeze()
}

/// Empty `contentEncoding` and `contentType`.
pub const ENVELOPE_TAIL: &[u8] = &[0x1a, 0x00, 0x22, 0x00];

/// An envelope up to its raw bytes, of which there are `length`.
pub fn envelope_head(api_version: &str, kind: &str, length: usize) -> BytesMut {
    let mut type_meta = BytesMut::new();
    text(&mut type_meta, 1, api_version);
    text(&mut type_meta, 2, kind);
    let mut out = BytesMut::with_capacity(MAGIC.len() + type_meta.len() + 16);
    out.put_slice(&MAGIC);
    message(&mut out, 1, &type_meta);
    tag(&mut out, 2, 2);
    varint(&mut out, length as u64);
    out
}

/// The raw bytes within an envelope that [`envelope`] or the machinery made.
pub fn raw(enveloped: &Bytes) -> Option<Bytes> {
    let mut at = MAGIC.len();
    if enveloped.get(..at)? != MAGIC {
        return None;
    }
    loop {
        let key = read_varint(enveloped, &mut at)?;
        if key & 7 != 2 {
            return None;
        }
        let length = usize::try_from(read_varint(enveloped, &mut at)?).ok()?;
        let end = at.checked_add(length).filter(|end| *end <= enveloped.len())?;
        if key >> 3 == 2 {
            return Some(enveloped.slice(at..end));
        }
        at = end;
    }
}

fn read_varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// `PartialObjectMetadata` around encoded metadata.
pub fn partial(metadata: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(metadata.len() + 8);
    message(&mut out, 1, metadata);
    out.freeze()
}

/// A list's `ListMeta`, as its field 1.
pub fn list_meta(version: &str, continue_: &str, remaining: Option<u64>) -> Bytes {
    let mut meta = BytesMut::new();
    text(&mut meta, 1, "");
    text(&mut meta, 2, version);
    text(&mut meta, 3, continue_);
    if let Some(remaining) = remaining {
        tag(&mut meta, 4, 0);
        varint(&mut meta, remaining);
    }
    let mut out = BytesMut::new();
    message(&mut out, 1, &meta);
    out.freeze()
}

/// What stands before each item of a list (field 2).
pub fn item_head(length: usize) -> Bytes {
    let mut out = BytesMut::with_capacity(12);
    tag(&mut out, 2, 2);
    varint(&mut out, length as u64);
    out.freeze()
}

/// One event of a watch: its length in four bytes, then a bare `WatchEvent{type, object{raw}}`.
pub fn watch_frame(out: &mut BytesMut, type_: &str, object: &[u8]) {
    let mut extension = BytesMut::with_capacity(12);
    tag(&mut extension, 1, 2);
    varint(&mut extension, object.len() as u64);
    let mut head = BytesMut::with_capacity(40);
    text(&mut head, 1, type_);
    tag(&mut head, 2, 2);
    varint(&mut head, (extension.len() + object.len()) as u64);
    let length = head.len() + extension.len() + object.len();
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    out.extend_from_slice(&head);
    out.extend_from_slice(&extension);
    out.extend_from_slice(object);
}

/// A Status in its envelope.
pub fn status(status: &Status) -> Bytes {
    let mut out = BytesMut::new();
    message(&mut out, 1, &list_meta_of_status(status));
    text(&mut out, 2, &status.status);
    text(&mut out, 3, &status.message);
    text(&mut out, 4, &status.reason);
    if let Some(details) = &status.details {
        message(&mut out, 5, &status_details(details));
    }
    tag(&mut out, 6, 0);
    varint(&mut out, u64::from(status.code));
    envelope("v1", "Status", &out)
}

fn list_meta_of_status(status: &Status) -> BytesMut {
    let mut meta = BytesMut::new();
    text(&mut meta, 1, "");
    text(&mut meta, 2, "");
    text(&mut meta, 3, &status.continue_token);
    meta
}

fn status_details(details: &StatusDetails) -> BytesMut {
    let mut out = BytesMut::new();
    text(&mut out, 1, &details.name);
    text(&mut out, 2, &details.group);
    text(&mut out, 3, &details.kind);
    for cause in &details.causes {
        message(&mut out, 4, &status_cause(cause));
    }
    tag(&mut out, 5, 0);
    varint(&mut out, u64::from(details.retry_after_seconds));
    text(&mut out, 6, &details.uid);
    out
}

fn status_cause(cause: &StatusCause) -> BytesMut {
    let mut out = BytesMut::new();
    text(&mut out, 1, &cause.reason);
    text(&mut out, 2, &cause.message);
    text(&mut out, 3, &cause.field);
    out
}

fn text(out: &mut BytesMut, number: u64, value: &str) {
    message(out, number, value.as_bytes());
}

fn message(out: &mut BytesMut, number: u64, value: &[u8]) {
    tag(out, number, 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn tag(out: &mut BytesMut, number: u64, wire_type: u64) {
    varint(out, number << 3 | wire_type);
}

fn varint(out: &mut BytesMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_goes_into_an_envelope_comes_out() {
        let wrapped = envelope("g/v1", "Thing", b"payload");
        assert_eq!(&wrapped[..4], MAGIC);
        assert_eq!(raw(&wrapped).unwrap(), "payload");
        for cut in 0..wrapped.len() - ENVELOPE_TAIL.len() {
            assert_eq!(raw(&wrapped.slice(..cut)), None);
        }
    }

    #[test]
    fn a_watch_frame_is_length_then_a_bare_event() {
        let mut out = BytesMut::new();
        watch_frame(&mut out, "ADDED", b"obj");
        let event = [&[0x0a, 5][..], b"ADDED", &[0x12, 5, 0x0a, 3], b"obj"].concat();
        assert_eq!(out[..4], u32::try_from(event.len()).unwrap().to_be_bytes());
        assert_eq!(out[4..], event);
    }
}
