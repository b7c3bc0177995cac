//! Times, bytes, text, and IntOrString.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::wire::{self, WireReader, WireValue};
use crate::kind::Now;
use crate::metav1::time::{format_micros, format_seconds, parse_time};

/// Writes Timestamp{seconds = 1, nanos = 2}; no time is the zero of both.
pub(super) fn write_time(out: &mut Vec<u8>, number: u32, value: Option<&Value>, micro: bool) {
    let time = value.and_then(Value::as_str).and_then(parse_time);
    // Nanoseconds count up from the second, which may be before the epoch.
    let nanos = time.map_or(0, |t| t.as_nanosecond());
    let (seconds, fraction) = (nanos.div_euclid(NANOS), nanos.rem_euclid(NANOS));
    let fraction = if micro { fraction / 1000 * 1000 } else { 0 };
    let mut message = Vec::with_capacity(16);
    wire::write_integer(&mut message, 1, i64::try_from(seconds).unwrap_or_default());
    wire::write_integer(&mut message, 2, i64::try_from(fraction).unwrap_or_default());
    wire::write_bytes(out, number, &message);
}

const NANOS: i128 = 1_000_000_000;

/// Reads a time as RFC 3339 text; `None` if both fields are zero, as Go reads it.
pub(super) fn read_time(message: &[u8], micro: bool) -> Result<Option<Value>, String> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = WireReader::new(message);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, WireValue::Varint(v)) => seconds = v.cast_signed(),
            (2, WireValue::Varint(v)) => nanos = v.cast_signed(),
            (1 | 2, _) => return Err("proto: wrong wireType in a time".to_owned()),
            _ => {}
        }
    }
    if seconds == 0 && nanos == 0 {
        return Ok(None);
    }
    let nanos = i32::try_from(nanos).ok().filter(|n| (0..1_000_000_000).contains(n)).ok_or(OUT_OF_RANGE)?;
    let time = Now::new(seconds, nanos).map_err(|_| OUT_OF_RANGE)?;
    let text = if micro { format_micros(time) } else { format_seconds(time) };
    Ok(Some(Value::from(text)))
}

const OUT_OF_RANGE: &str = "a time is out of range";

/// Returns the bytes of base64 text; empty for invalid base64, which decoding refuses.
pub(super) fn base64_bytes(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_default()
}

/// Writes IntOrString{type = 1 (0 number, 1 text), intVal = 2, strVal = 3}, all of them always.
pub(super) fn int_or_string(out: &mut Vec<u8>, value: Option<&Value>) {
    let text = value.and_then(Value::as_str);
    wire::write_integer(out, 1, i64::from(text.is_some()));
    wire::write_integer(out, 2, value.and_then(Value::as_i64).unwrap_or_default());
    wire::write_bytes(out, 3, text.unwrap_or_default().as_bytes());
}

/// Reads the number or the text, depending on the type.
pub(super) fn read_int_or_string(message: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut words) = (false, 0, String::new());
    let mut reader = WireReader::new(message);
    while let Some((field, wire)) = reader.next()? {
        match (field, wire) {
            (1, WireValue::Varint(v)) => is_text = v == 1,
            (2, WireValue::Varint(v)) => number = v as u32 as i32,
            (3, WireValue::Bytes(b)) => words = text(b)?,
            (1..=3, _) => return Err("proto: wrong wireType in an IntOrString".to_owned()),
            _ => {}
        }
    }
    Ok(if is_text { Value::from(words) } else { Value::from(number) })
}

/// Reads UTF-8 text.
pub(super) fn text(bytes: &[u8]) -> Result<String, String> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| "a string is not valid UTF-8".to_owned())
}
