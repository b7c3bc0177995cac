//! Tokens of the label selector grammar.

/// A token and its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SelectorToken<'a> {
    Identifier(&'a str),
    In(&'a str),
    NotIn(&'a str),
    Symbol(&'a str),
    /// Symbols that are no token.
    Unknown(&'a str),
    End,
}

const SYMBOLS: [&str; 9] = [")", ",", "!", "==", "=", ">", "<", "!=", "("];

/// Returns the tokens of a selector; the last one is `End`.
pub(super) fn tokens(text: &str) -> Vec<SelectorToken<'_>> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start_matches(is_space);
        let (token, length) = next(rest);
        tokens.push(token);
        if token == SelectorToken::End {
            return tokens;
        }
        rest = &rest[length..];
    }
}

fn next(rest: &str) -> (SelectorToken<'_>, usize) {
    match rest.chars().next() {
        // Kubernetes' lexer ends at a zero byte.
        None | Some('\0') => (SelectorToken::End, 0),
        Some(c) if is_symbol(c) => symbol(rest),
        Some(_) => {
            let end = rest.find(|c| is_symbol(c) || is_space(c) || c == '\0').unwrap_or(rest.len());
            let word = &rest[..end];
            match word {
                "in" => (SelectorToken::In(word), end),
                "notin" => (SelectorToken::NotIn(word), end),
                _ => (SelectorToken::Identifier(word), end),
            }
        }
    }
}

/// Returns the longest known symbol at the start.
fn symbol(rest: &str) -> (SelectorToken<'_>, usize) {
    let longest = SYMBOLS.iter().filter(|s| rest.starts_with(**s)).map(|s| s.len()).max();
    match longest {
        Some(length) => (SelectorToken::Symbol(&rest[..length]), length),
        None => (SelectorToken::Unknown(&rest[..1]), 1),
    }
}

impl<'a> SelectorToken<'a> {
    /// Returns the text for an error message.
    pub(super) fn text(self) -> &'a str {
        match self {
            Self::Identifier(t) | Self::In(t) | Self::NotIn(t) | Self::Symbol(t) | Self::Unknown(t) => t,
            Self::End => "",
        }
    }

    /// Returns the text of an identifier; `in` and `notin` may be identifiers too.
    pub(super) fn word(self) -> Option<&'a str> {
        match self {
            Self::Identifier(t) | Self::In(t) | Self::NotIn(t) => Some(t),
            _ => None,
        }
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}
