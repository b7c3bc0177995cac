//! URLs (k8s.io/apiserver pkg/cel/library/urls.go), split as by Go's net/url.

use std::collections::{BTreeMap, HashMap};

use cel::common::types::{CelBool, CelMap, CelMapKey, CelString, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use drydock_machinery::quote::go_quote;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::{argument, opaque, texts};

/// Characters that Go escapes in a path, besides control characters and non-ASCII ones; `%` stays as it was sent.
const PATH: AsciiSet = CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// An absolute URL, or a path that begins at the root.
#[derive(Clone, Debug, PartialEq)]
struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

opaque!(Url, URL_TYPE, "kubernetes.URL");

/// Declares the functions of this library.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let url = || Url::cel_type().to_owned();
    env.add_overload("url", "string_to_url", vec![STRING_TYPE], |args| {
        let parsed = parse(argument::<CelString>(&args, 0)?.inner());
        parsed.map(CowVal::owned).map_err(|why| {
            ExecutionError::function_error(
                "url",
                format!("URL parse error during conversion from string: {why}"),
            )
        })
    })?;
    env.add_overload("isURL", "is_url_string", vec![STRING_TYPE], |args| {
        Ok(CowVal::owned(CelBool::from(is_url(argument::<CelString>(&args, 0)?.inner()))))
    })?;
    env.add_member_overload("getScheme", "url_get_scheme", url(), vec![], |args| {
        part(&args, |it| it.scheme.clone())
    })?;
    env.add_member_overload("getHost", "url_get_host", url(), vec![], |args| {
        part(&args, |it| it.host.clone())
    })?;
    env.add_member_overload("getHostname", "url_get_hostname", url(), vec![], |args| {
        part(&args, Url::hostname)
    })?;
    env.add_member_overload("getPort", "url_get_port", url(), vec![], |args| part(&args, Url::port))?;
    env.add_member_overload("getEscapedPath", "url_get_escaped_path", url(), vec![], |args| {
        part(&args, |it| utf8_percent_encode(&it.path, &PATH).to_string())
    })?;
    env.add_member_overload("getQuery", "url_get_query", url(), vec![], |args| {
        Ok(CowVal::owned(query(argument::<Url>(&args, 0)?)))
    })
}

/// Whether the text is a URL in the sense of the OpenAPI format `uri`.
pub fn is_url(text: &str) -> bool {
    parse(text).is_ok()
}

fn parse(text: &str) -> Result<Url, String> {
    let refused = |why: &str| format!("parse {}: {why}", go_quote(text));
    if text.is_empty() {
        return Err(refused("empty url"));
    }
    if text.chars().any(|c| c.is_ascii_control()) {
        return Err(refused("net/url: invalid control character in URL"));
    }
    let (scheme, rest) = scheme(text).map_err(refused)?;
    if scheme.is_empty() && !rest.starts_with('/') {
        return Err(refused("invalid URI for request"));
    }
    let rest = rest.split('#').next().unwrap_or_default();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    if !scheme.is_empty() && !rest.starts_with('/') {
        return Err(refused("invalid URI for request"));
    }
    let host = host.rsplit('@').next().unwrap_or_default();
    check_host(host).map_err(|why| refused(&why))?;
    Ok(Url {
        scheme: scheme.to_lowercase(),
        host: host.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
    })
}

/// Returns the scheme, empty if there is none, and the rest.
fn scheme(text: &str) -> Result<(&str, &str), &'static str> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(text.len());
    if !text[end..].starts_with(':') {
        return Ok(("", text));
    }
    match text.as_bytes().first() {
        Some(first) if first.is_ascii_alphabetic() => Ok((&text[..end], &text[end + 1..])),
        Some(b':') => Err("missing protocol scheme"),
        _ => Ok(("", text)),
    }
}

fn check_host(host: &str) -> Result<(), String> {
    let port = match host.rfind(']') {
        Some(end) => &host[end + 1..],
        None if host.starts_with('[') => return Err("missing ']' in host".to_owned()),
        None => host.rfind(':').map_or("", |colon| &host[colon..]),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if (!port.is_empty() && !port.starts_with(':')) || !digits.chars().all(|c| c.is_ascii_digit()) {
        return Err(format!("invalid port {} after host", go_quote(port)));
    }
    match host.chars().find(|c| " \"<>\\^`{|}".contains(*c)) {
        Some(bad) => Err(format!("invalid character {} in host name", go_quote(&bad.to_string()))),
        None => Ok(()),
    }
}

impl Url {
    fn hostname(&self) -> String {
        match self.host.rfind(']') {
            Some(end) => self.host[..end].trim_start_matches('[').to_owned(),
            None => self.host.split(':').next().unwrap_or_default().to_owned(),
        }
    }

    fn port(&self) -> String {
        let after = self.host.rfind(']').map_or(0, |end| end + 1);
        self.host[after..].split_once(':').map_or("", |(_, port)| port).to_owned()
    }
}

fn part<'b, 'v>(args: &[CowVal<'_, '_>], part: fn(&Url) -> String) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::owned(CelString::from(part(argument::<Url>(args, 0)?))))
}

fn query<'v>(url: &Url) -> CelMap<'v> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        all.entry(decoded(key)).or_default().push(decoded(value));
    }
    let entries = all.into_iter().map(|(key, values)| {
        let values: Box<dyn Val + 'v> = Box::new(texts(values));
        (CelMapKey::from(key), values)
    });
    CelMap::from(entries.collect::<HashMap<_, _>>())
}
