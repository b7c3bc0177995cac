//! Byte fields, which are base64 text in JSON.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine};

/// Returns the text as the server writes it. Like Go, ignores line breaks, and names the offset of an error.
pub(super) fn base64_text(text: &str) -> Result<String, String> {
    let joined: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let decoded = STANDARD.decode(&joined);
    let bytes = decoded
        .map_err(|error| format!("illegal base64 data at input byte {}", stopped_at(&joined, &error)))?;
    Ok(STANDARD.encode(bytes))
}

/// Returns the offset at which Go's decoder stops: the first character outside the base64 alphabet, or the start of
/// an incomplete quantum.
fn stopped_at(text: &str, error: &DecodeError) -> usize {
    match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. } => *at,
        _ => text.len() / 4 * 4,
    }
}
