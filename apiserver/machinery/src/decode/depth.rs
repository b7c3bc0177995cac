//! Limits on nesting and on YAML's structural characters, checked before a parser sees the body.

use super::Format;
use crate::error::ApiError;

/// The depth at which Go's JSON scanner fails.
const JSON_MAX: usize = 10_000;
/// The YAML scanner checks every open bracket at each token, so depth costs time. No object nests this deep.
const YAML_MAX: usize = 256;

/// Maximum number of structural characters of YAML. Its parser keeps some 400 bytes for each and is the slowest of
/// all: three megabytes of question marks would take 600 MB. An object of 1.5 MB has some 150,000.
const YAML_MARKS_MAX: usize = 200_000;

/// Refuses YAML with too many structural characters for its parser: 413.
pub(super) fn check_structural_characters(body: &[u8], format: Format) -> Result<(), ApiError> {
    if format != Format::Yaml || body.len() <= YAML_MARKS_MAX {
        return Ok(());
    }
    let ends = |next: Option<&u8>| next.is_none_or(u8::is_ascii_whitespace);
    let is_mark = |(at, byte): &(usize, &u8)| match byte {
        b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' => true,
        b'-' | b'?' | b':' => ends(body.get(at + 1)),
        _ => false,
    };
    // A body that nests too deep gets that error instead.
    if body.iter().enumerate().filter(is_mark).count() <= YAML_MARKS_MAX || check(body, format).is_err() {
        return Ok(());
    }
    let why = format!(
        "a YAML document may have at most {YAML_MARKS_MAX} keys, items and brackets; JSON has no such limit"
    );
    Err(ApiError::request_entity_too_large(why))
}

/// Refuses a body that nests too deep. In JSON, brackets within strings do not count; in YAML, where a quote may be
/// plain text, every bracket counts.
pub(super) fn check(body: &[u8], format: Format) -> Result<(), String> {
    let max = match format {
        Format::Json => JSON_MAX,
        Format::Yaml => YAML_MAX,
    };
    // Few bodies have so many brackets that their nesting has to be counted.
    if body.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() < max {
        return Ok(());
    }
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted && format == Format::Json,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => (),
        }
        if depth >= max {
            return Err("exceeded max depth".to_owned());
        }
    }
    Ok(())
}
