//! The resourceVersion put into an object's JSON without decoding it.

use bytes::{BufMut, Bytes, BytesMut};

/// Compact JSON of an object without resourceVersion, with one; `None` where it has no metadata object.
pub(super) fn with_resource_version(json: &[u8], version: &str) -> Option<Bytes> {
    let at = inside_metadata(json)?;
    let (head, tail) = json.split_at_checked(at)?;
    let field = r#""resourceVersion":""#;
    let mut out = BytesMut::with_capacity(json.len() + field.len() + version.len() + 2);
    out.put_slice(head);
    out.put_slice(field.as_bytes());
    out.put_slice(version.as_bytes());
    out.put_u8(b'"');
    if tail.first() != Some(&b'}') {
        out.put_u8(b',');
    }
    out.put_slice(tail);
    Some(out.freeze())
}

/// The place right behind the `{` of the top level's `metadata`.
fn inside_metadata(json: &[u8]) -> Option<usize> {
    const KEY: &[u8] = br#""metadata":{"#;
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' if depth == 1 && json.get(at..)?.starts_with(KEY) => return Some(at + KEY.len()),
            b'"' => at += string_length(json.get(at + 1..)?)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Bytes of a string's rest, with its closing quote.
fn string_length(rest: &[u8]) -> Option<usize> {
    let mut escaped = false;
    let end = rest.iter().position(|byte| {
        let closes = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closes
    })?;
    Some(end + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::Value;

    use super::with_resource_version;

    fn spliced(json: &str) -> Option<Value> {
        with_resource_version(json.as_bytes(), "42").map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn the_version_goes_into_the_metadata_of_the_top_level_only() {
        for json in [
            r#"{"metadata":{}}"#,
            r#"{"kind":"K","metadata":{"name":"a"},"spec":{}}"#,
            r#"{"a":{"metadata":{"x":1}},"metadata":{"name":"a"}}"#,
            r#"{"a":[{"metadata":{}},[]],"b":"\"metadata\":{","c":"\\","metadata":{"name":"{\"}"}}"#,
        ] {
            let mut wanted: Value = serde_json::from_str(json).unwrap();
            wanted["metadata"]["resourceVersion"] = "42".into();
            assert_eq!(spliced(json), Some(wanted), "{json}");
        }
    }

    #[test]
    fn what_has_no_metadata_object_is_left_to_others() {
        for json in [r"{}", r#"{"metadata":null}"#, r#"{"a":{"metadata":{}}}"#, r#"{"metadata"#, "]", "\""] {
            assert_eq!(spliced(json), None, "{json}");
        }
    }
}
