//! Bytes, which JSON has as base64 text.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine};

/// The text as the server writes it: Go leaves out line breaks on reading, and says where it stops.
pub(super) fn base64_text(text: &str) -> Result<String, String> {
    let joined: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let decoded = STANDARD.decode(&joined);
    let bytes = decoded
        .map_err(|error| format!("illegal base64 data at input byte {}", stopped_at(&joined, &error)))?;
    Ok(STANDARD.encode(bytes))
}

/// Where Go's decoder stops: at the first character that is none of base64's, or at the quantum that is cut short.
fn stopped_at(text: &str, error: &DecodeError) -> usize {
    match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. } => *at,
        _ => text.len() / 4 * 4,
    }
}
