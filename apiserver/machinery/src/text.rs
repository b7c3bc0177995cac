//! Makes texts of others safe and short enough for a message: truncates them with an ellipsis, and puts them in one
//! line.

use std::fmt::Display;

/// Replaces the truncated part.
pub const ELLIPSIS: &str = "\u{2026}";

/// Truncates a text to at most `most` characters, with the ellipsis. Empty if `most` is 0.
pub fn cut(text: &str, most: usize) -> String {
    let Some(kept) = most.checked_sub(1) else { return String::new() };
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(kept).collect::<String>() + ELLIPSIS,
    }
}

/// Like [`cut`], but truncates between two words, unless that would remove half of the text or more.
pub fn cut_at_word(text: &str, most: usize) -> String {
    let short = cut(text, most);
    if short == text {
        return short;
    }
    let kept = short.trim_end_matches(ELLIPSIS);
    // If the next character is a space, the last word is complete.
    let is_whole = text.get(kept.len()..).is_some_and(|rest| rest.starts_with(char::is_whitespace));
    let end = if is_whole { Some(kept.len()) } else { kept.rfind(char::is_whitespace) };
    match end.and_then(|end| kept.get(..end)).map(str::trim_end) {
        Some(whole) if whole.len() * 2 > kept.len() => [whole, ELLIPSIS].concat(),
        _ => short,
    }
}

/// Truncates a text to at most `most` bytes, with the ellipsis. Empty if the ellipsis does not fit.
pub fn cut_bytes(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let Some(kept) = most.checked_sub(ELLIPSIS.len()) else { return String::new() };
    let end = text.floor_char_boundary(kept);
    // Allocates exactly this length, because callers keep many such texts.
    [text.get(..end).unwrap_or_default(), ELLIPSIS].concat()
}

/// The text in one line: each control character (also a line break) becomes a space, and characters that hide or
/// reorder the text next to them are removed.
pub fn one_line(text: &str) -> String {
    let seen = text.chars().filter(|c| !is_hidden(*c));
    seen.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A text of others in quotes and in one line. Quotes in it are replaced, so that it cannot seem to end early.
pub fn quoted(words: &str) -> String {
    format!("\"{}\"", one_line(words).replace('"', "'"))
}

fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A count as an int32 of the API, saturating.
pub fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The first `max` items, and `...` if there are more: `a, b, ...`.
pub fn first_of<T: Display>(items: impl IntoIterator<Item = T>, max: usize) -> String {
    let mut items = items.into_iter();
    let mut shown: Vec<String> = items.by_ref().take(max).map(|item| item.to_string()).collect();
    shown.extend(items.next().map(|_| "...".to_owned()));
    shown.join(", ")
}

/// A count with its noun: `1 pod`, `2 pods`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, one: &str, many: &str) -> String {
    let noun = if count == N::from(1) { one } else { many };
    format!("{count} {noun}")
}

/// The beginning of a sentence about all items: `The selected node`, `All 2 selected nodes`.
pub fn all(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("The {one}") } else { format!("All {count} {many}") }
}

/// The form of "to be" for this count.
pub fn are<N: PartialEq + From<u8>>(count: N) -> &'static str {
    if count == N::from(1) { "is" } else { "are" }
}

/// How often, in words: `once`, `2 times`.
pub fn times<N: Display + PartialEq + From<u8>>(count: N) -> String {
    if count == N::from(1) { "once".to_owned() } else { format!("{count} times") }
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
    fn a_text_is_cut_between_words_unless_one_of_them_is_most_of_it() {
        assert_eq!(cut_at_word("one two three", 13), "one two three");
        let ends = [12, 9, 8, 6].map(|most| cut_at_word("one two three", most));
        assert_eq!(ends, ["one two\u{2026}", "one two\u{2026}", "one two\u{2026}", "one\u{2026}"]);
        assert_eq!(cut_at_word("a bcdefghij", 6), "a bcd\u{2026}");
        assert_eq!(cut_at_word("\u{e9}\u{e9}\u{e9}\u{e9}", 3), "\u{e9}\u{e9}\u{2026}");
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

    #[test]
    fn a_quotation_has_no_quotes_within() {
        assert_eq!(quoted("webhook \"w\"\nsays no."), "\"webhook 'w' says no.\"");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([counted(1, "pod", "pods"), counted(2, "pod", "pods")], ["1 pod", "2 pods"]);
        assert_eq!([all(1, "node", "nodes"), all(3, "node", "nodes")], ["The node", "All 3 nodes"]);
        assert_eq!([are(0), are(1), are(2)], ["are", "is", "are"]);
        assert_eq!(
            [1, 2, 3].map(|count| first_of(&["a", "b"][..count.min(2)], 1)),
            ["a", "a, ...", "a, ..."]
        );
        assert_eq!([times(1u32), times(2u32)], ["once", "2 times"]);
    }
}
