//! Text that others wrote, made safe and short enough for a message: cut with an ellipsis, and put in one line.

/// What stands in the place of what was cut.
pub const ELLIPSIS: &str = "\u{2026}";

/// The text, or its first characters and an ellipsis: at most `most` characters in all. Empty if `most` is 0.
pub fn cut(text: &str, most: usize) -> String {
    let Some(kept) = most.checked_sub(1) else { return String::new() };
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(kept).collect::<String>() + ELLIPSIS,
    }
}

/// The text, or its first characters and an ellipsis: at most `most` bytes in all. Empty if not even the ellipsis fits.
pub fn cut_bytes(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let Some(kept) = most.checked_sub(ELLIPSIS.len()) else { return String::new() };
    let end = text.floor_char_boundary(kept);
    // Of exactly this length: callers keep many.
    [text.get(..end).unwrap_or_default(), ELLIPSIS].concat()
}

/// The text in one line: each control character (a line break too) is a space, and characters that hide or reorder what
/// stands beside them are left out.
pub fn one_line(text: &str) -> String {
    let seen = text.chars().filter(|c| !is_hidden(*c));
    seen.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fits_stays_and_one_that_does_not_ends_in_an_ellipsis() {
        assert_eq!(["", "abc"].map(|text| cut(text, 3)), ["", "abc"]);
        assert_eq!([3, 2, 1, 0].map(|most| cut("abcd", most)), ["ab\u{2026}", "a\u{2026}", "\u{2026}", ""]);
        assert_eq!(cut("\u{e9}\u{e9}\u{e9}", 2), "\u{e9}\u{2026}");
    }

    #[test]
    fn a_text_is_cut_to_bytes_at_the_boundary_of_a_character() {
        assert_eq!(cut_bytes("\u{e9}\u{e9}", 4), "\u{e9}\u{e9}");
        assert_eq!(cut_bytes("\u{e9}\u{e9}\u{e9}", 5), "\u{e9}\u{2026}");
        assert_eq!(cut_bytes("\u{e9}\u{e9}\u{e9}", 4), "\u{2026}", "no half of a character");
        assert_eq!((cut_bytes("abcd", 3), cut_bytes("abcd", 2)), ("\u{2026}".into(), String::new()));
    }

    #[test]
    fn a_text_is_one_line_in_the_order_in_which_it_stands() {
        assert_eq!(one_line("a\nb\t\u{1b}[1mc"), "a b  [1mc");
        assert_eq!(one_line("a\u{202e}b\u{200b}c\u{2028}d"), "abcd");
    }
}
