//! Query parameters as Go's net/url reads them.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// Parsed query parameters, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a raw query; pairs with a `;`, a bad escape or bytes that are not UTF-8 are left out.
    pub fn parse(raw: &str) -> Self {
        Self(raw.split('&').filter(|p| !p.is_empty() && !p.contains(';')).filter_map(pair).collect())
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }

    /// The first value of a parameter, unless it is empty.
    pub fn non_empty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|v| !v.is_empty())
    }

    /// Every value of a parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == name).map(|(_, v)| v.as_str())
    }

    /// A boolean parameter: present means true, except as `false` or `0`
    /// (k8s.io/apimachinery/pkg/runtime/converter.go, Convert_Slice_string_To_bool).
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(parse_bool)
    }

    /// Like [`Query::flag`], but `None` if the parameter is absent.
    pub fn optional_flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(parse_bool)
    }
}

fn parse_bool(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "false" | "0")
}

fn pair(raw: &str) -> Option<(String, String)> {
    let (key, value) = raw.split_once('=').unwrap_or((raw, ""));
    Some((unescape(key)?, unescape(value)?))
}

fn unescape(text: &str) -> Option<String> {
    if !escapes_are_whole(text.as_bytes()) {
        return None;
    }
    let spaced = text.replace('+', " ");
    percent_decode(spaced.as_bytes()).decode_utf8().ok().map(Cow::into_owned)
}

/// Whether every `%` is followed by two hexadecimal digits.
pub(crate) fn escapes_are_whole(bytes: &[u8]) -> bool {
    let hex = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_hexdigit);
    bytes.iter().enumerate().all(|(i, b)| *b != b'%' || (hex(i + 1) && hex(i + 2)))
}
