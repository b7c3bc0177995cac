//! Inserts the resourceVersion into an object's JSON without decoding it.

use bytes::{BufMut, Bytes, BytesMut};

/// Returns compact JSON with a resourceVersion added; `None` if it has no metadata object.
pub(super) fn with_resource_version(json: &[u8], version: &str) -> Option<Bytes> {
    let parts = parts(json, version)?;
    let mut out = BytesMut::with_capacity(parts.iter().map(|part| part.len()).sum());
    parts.into_iter().for_each(|part| out.put_slice(part));
    Some(out.freeze())
}

/// Whether `spliced` is what [`with_resource_version`] makes of `json`.
pub(super) fn is_with_resource_version(spliced: &[u8], json: &[u8], version: &str) -> bool {
    // Most candidates already differ in length.
    let added = FIELD.len() + version.len() + 1;
    if !(json.len() + added..=json.len() + added + 1).contains(&spliced.len()) {
        return false;
    }
    let rest = parts(json, version)
        .and_then(|parts| parts.into_iter().try_fold(spliced, |rest, part| rest.strip_prefix(part)));
    rest.is_some_and(<[u8]>::is_empty)
}

const FIELD: &str = r#""resourceVersion":""#;

/// The parts of the spliced JSON.
fn parts<'a>(json: &'a [u8], version: &'a str) -> Option<[&'a [u8]; 5]> {
    let (head, tail) = json.split_at_checked(inside_metadata(json)?)?;
    let end: &[u8] = if tail.first() == Some(&b'}') { b"\"" } else { b"\"," };
    Some([head, FIELD.as_bytes(), version.as_bytes(), end, tail])
}

/// Returns the position after the `{` of the top-level `metadata`.
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

/// Returns the length of the rest of a string, including its closing quote.
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

    use super::{is_with_resource_version, with_resource_version};

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
    fn a_spliced_text_is_known_again_and_none_that_differs_in_a_byte() {
        for json in [r#"{"metadata":{}}"#, r#"{"kind":"K","metadata":{"name":"a"},"spec":{"n":1}}"#] {
            let spliced = with_resource_version(json.as_bytes(), "42").unwrap();
            assert!(is_with_resource_version(&spliced, json.as_bytes(), "42"), "{json}");
            assert!(!is_with_resource_version(&spliced, json.as_bytes(), "43"), "{json}");
            for at in 0..spliced.len() {
                let mut other = spliced.to_vec();
                other[at] ^= 1;
                assert!(!is_with_resource_version(&other, json.as_bytes(), "42"), "{json} {at}");
                assert!(!is_with_resource_version(&spliced[..at], json.as_bytes(), "42"), "{json} {at}");
            }
        }
    }

    #[test]
    fn what_has_no_metadata_object_is_left_to_others() {
        for json in [r"{}", r#"{"metadata":null}"#, r#"{"a":{"metadata":{}}}"#, r#"{"metadata"#, "]", "\""] {
            assert_eq!(spliced(json), None, "{json}");
        }
    }
}
