//! Audit annotations with JSON values, byte for byte as Go writes them: fields in the order of the struct, and HTML
//! characters escaped.

use serde::Serialize;

/// Returns the value as JSON text.
pub fn json(value: &impl Serialize) -> String {
    // A struct of strings and numbers always serializes.
    let text = serde_json::to_string(value).unwrap_or_default();
    text.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_html_reads_is_escaped() {
        assert_eq!(super::json(&"a < b && c > d"), r#""a \u003c b \u0026\u0026 c \u003e d""#);
    }
}
