//! Bytes to trees, without knowledge of any schema: what two servers wrote is compared field by field, unknown
//! fields and their order with it.

use std::io::Read;

use serde_json::{Value, json};

/// What a gzip stream holds; empty if it is none.
pub fn gunzip(body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match flate2::read::MultiGzDecoder::new(body).read_to_end(&mut plain) {
        Ok(_) => plain,
        Err(_) => Vec::new(),
    }
}

/// The envelope's prefix, and its message.
pub fn protobuf(body: &[u8]) -> Value {
    match body.strip_prefix(b"k8s\0") {
        Some(message) => json!({"k8s": tree(message).unwrap_or_else(|| hex(message))}),
        None => tree(body).unwrap_or_else(|| hex(body)),
    }
}

/// A message as the list of its fields, `[number, value]`; None for bytes that are none.
fn tree(mut bytes: &[u8]) -> Option<Value> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => json!(varint(&mut bytes)?),
            1 => hex(take(&mut bytes, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                content(take(&mut bytes, length)?)
            }
            5 => hex(take(&mut bytes, 4)?),
            _ => return None,
        };
        fields.push(json!([tag >> 3, value]));
    }
    Some(fields.into())
}

/// Text if it can be printed, an envelope, a message, or bytes.
fn content(bytes: &[u8]) -> Value {
    if let Ok(text) = std::str::from_utf8(bytes)
        && text.chars().all(|c| !c.is_control())
    {
        // FieldsV1 is JSON within protobuf: it is compared as such.
        return serde_json::from_str(text).ok().filter(Value::is_object).unwrap_or_else(|| text.into());
    }
    if bytes.starts_with(b"k8s\0") {
        return protobuf(bytes);
    }
    tree(bytes).unwrap_or_else(|| hex(bytes))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *take(bytes, 1)?.first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn hex(bytes: &[u8]) -> Value {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_list_of_its_fields() {
        // {1: "x", 2: {1: 300}, 3: ""}
        let bytes = [&b"k8s\0"[..], &[0x0a, 1, b'x', 0x12, 3, 0x08, 0xac, 0x02, 0x1a, 0]].concat();
        assert_eq!(protobuf(&bytes), json!({"k8s": [[1, "x"], [2, [[1, 300]]], [3, ""]]}));
    }
}
