//! A bound on nesting before any parser sees the body.

use super::Format;

/// Where Go's JSON scanner gives up.
const JSON_MAX: usize = 10_000;
/// The YAML scanner looks at each open bracket with each token, so that depth costs time. No object nests so far.
const YAML_MAX: usize = 256;

/// Refuses a body that nests too far. In JSON brackets within strings do not count; in YAML, where a quote may be
/// plain text, every bracket does.
pub(super) fn check(body: &[u8], format: Format) -> Result<(), String> {
    let max = match format {
        Format::Json => JSON_MAX,
        Format::Yaml => YAML_MAX,
    };
    // Hardly any body has so many brackets that it has to be looked at more closely.
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
