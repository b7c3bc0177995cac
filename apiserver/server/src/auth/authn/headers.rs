//! Values that headers carry about users: any bytes, as Go reads them, not ASCII alone.

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

/// The first value of a header, unless it is empty.
pub fn first(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(text).filter(|value| !value.is_empty())
}

/// Every value of a header that is not empty.
pub fn all(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().map(text).filter(|value| !value.is_empty()).collect()
}

/// The headers whose names begin with `prefix` in any case, with the key that the rest of the name stands for:
/// lower case, then percent-decoded.
pub fn keys_under(headers: &HeaderMap, prefix: &str) -> Vec<(HeaderName, String)> {
    let keyed = headers.keys().filter_map(|name| Some((name.clone(), unescaped(after(name, prefix)?))));
    keyed.collect()
}

fn after<'a>(name: &'a HeaderName, prefix: &str) -> Option<&'a str> {
    let (start, rest) = name.as_str().split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Malformed escapes leave the whole key as it is (Go: `url.PathUnescape`).
fn unescaped(key: &str) -> String {
    if crate::request::query::escapes_are_whole(key.as_bytes()) {
        percent_decode_str(key).decode_utf8_lossy().into_owned()
    } else {
        key.to_owned()
    }
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}
