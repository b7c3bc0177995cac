//! Path elements as text: the keys of FieldsV1 (structured-merge-diff fieldpath/serialize-pe.go).

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::path::PathElement;
use super::value::number_text;

/// Parses `f:name`, `k:{...}`, `v:...` or `i:0`. Returns `None` for an unknown element type.
///
/// # Errors
/// If the text is no element: a description.
pub(super) fn parse(text: &str) -> Result<Option<PathElement>, String> {
    let (kind, rest) = match text.as_bytes() {
        [kind, b':', ..] => (*kind, &text[2..]),
        [_, _, ..] => return Err(format!("missing colon: {text}")),
        _ => return Err("key must be 2 characters long:".to_owned()),
    };
    let element = match kind {
        b'f' => PathElement::entry(rest),
        b'k' => {
            let fields: Map<String, Value> = serde_json::from_str(rest).map_err(|e| e.to_string())?;
            let mut fields: Vec<(Cow<'static, str>, Value)> =
                fields.into_iter().map(|(k, v)| (Cow::from(k), v)).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            PathElement::Key(fields)
        }
        b'v' => PathElement::Value(serde_json::from_str(rest).map_err(|e| e.to_string())?),
        b'i' => PathElement::Index(rest.parse().map_err(|_| format!("invalid index: {rest}"))?),
        _ => return Ok(None),
    };
    Ok(Some(element))
}

/// Returns the text of an element, byte for byte as structured-merge-diff writes it.
pub(super) fn serialize(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => ["f:", name].concat(),
        PathElement::Index(index) => format!("i:{index}"),
        PathElement::Value(value) => {
            let mut out = String::from("v:");
            write_value(value, &mut out);
            out
        }
        PathElement::Key(fields) => {
            let mut out = String::from("k:{");
            for (i, (name, value)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(name, false, &mut out);
                out.push(':');
                write_value(value, &mut out);
            }
            out.push('}');
            out
        }
    }
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::String(s) => write_string(s, true, out),
        Value::Number(n) => out.push_str(&number_text(n)),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, item)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(key, true, out);
                out.push(':');
                write_value(item, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// Writes a JSON string as Go's encoders escape it; with `html`, also escapes `<`, `>`, `&` and the line separators.
pub(super) fn write_string(text: &str, html: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0}'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if html => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)))
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}
