//! Go's `%q`, which Kubernetes' messages use.

/// Returns the text in double quotes, escaped like Go's strconv.Quote.
pub fn go_quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        push_escaped(&mut out, c);
    }
    out.push('"');
    out
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        ' '..='~' => out.push(c),
        c if is_printable(c) => out.push(c),
        c if u32::from(c) < 0x80 => out.push_str(&format!("\\x{:02x}", u32::from(c))),
        c if u32::from(c) < 0x1_0000 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
    }
}

/// Whether Go's unicode.IsPrint accepts the character: letters, marks, numbers, punctuation, symbols and the ASCII
/// space.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    // Preceded by a letter, because `escape_debug` escapes a mark only at the start of a string.
    let mut with_letter = String::from("a");
    with_letter.push(c);
    !c.is_whitespace() && with_letter.escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_escapes_as_go_does() {
        assert_eq!(go_quote("a\"b\\c\n\u{0}é\u{85}"), r#""a\"b\\c\n\x00é\u0085""#);
    }

    #[test]
    fn combining_marks_are_printable() {
        assert!(is_printable('\u{301}'));
        assert!(!is_printable('\u{2028}'));
    }
}
