//! Field selectors: `metadata.name=x,metadata.namespace!=y`.

use std::fmt;

use serde_json::Value;

use super::{TERMS_MAX, too_many_terms};
use crate::error::ApiError;
use crate::object::Object;
use crate::quote::go_quote;

const KNOWN: [&str; 2] = ["metadata.name", "metadata.namespace"];

/// Terms on fields, all of which must match; a selector without terms selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    pub(super) terms: Vec<FieldTerm>,
}

/// One term on a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// Dotted path.
    pub field: String,
    /// The value that the field must have, or must not have.
    pub value: String,
    /// `!=`
    pub negated: bool,
}

impl FieldSelector {
    /// Parses a selector on `metadata.name`, `metadata.namespace` and the kind's own fields (dotted paths to
    /// strings). Fails with a 400 for anything else.
    pub fn parse(text: &str, own: &[&str]) -> Result<Self, ApiError> {
        parse(text, own).map(|terms| Self { terms }).map_err(ApiError::bad_request)
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.terms.iter().map(|term| size_of::<FieldTerm>() + term.field.len() + term.value.len()).sum()
    }

    /// The terms, sorted by the bytes of their text.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// Returns the only value that a field may have: `metadata.name=x` names the object of the request.
    pub fn required_value(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|t| t.field == field && !t.negated).map(|t| t.value.as_str())
    }

    /// Returns the dotted paths of the fields that the selector reads.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|term| term.field.as_str())
    }

    /// Whether the object matches all terms; an absent field is the empty string.
    pub fn matches(&self, object: &Object) -> bool {
        self.terms.iter().all(|term| (value_at(object, &term.field) == term.value) != term.negated)
    }
}

fn parse(text: &str, own: &[&str]) -> Result<Vec<FieldTerm>, String> {
    let mut parts = split_terms(text);
    parts.sort_unstable();
    parts.retain(|part| !part.is_empty());
    if parts.len() > TERMS_MAX {
        return Err(too_many_terms());
    }
    let mut terms = Vec::with_capacity(parts.len());
    for part in parts {
        let (field, negated, value) = split_term(part)
            .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
        terms.push(FieldTerm { field: field.to_owned(), value: unescape(value)?, negated });
    }
    match terms.iter().find(|t| !KNOWN.contains(&t.field.as_str()) && !own.contains(&t.field.as_str())) {
        None => Ok(terms),
        Some(unknown) => {
            let known: Vec<_> = KNOWN.iter().chain(own).map(|f| go_quote(f)).collect();
            Err(format!(
                "{} is not a known field selector: only {}",
                go_quote(&unknown.field),
                known.join(", ")
            ))
        }
    }
}

/// Splits at commas that are not escaped by a backslash.
fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c: char| {
        let separates = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        separates
    })
    .collect()
}

/// Splits a term into field, whether the operator is `!=`, and value.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.char_indices().find(|(i, c)| *c == '=' || term[*i..].starts_with("!="))?.0;
    let (field, rest) = term.split_at(at);
    for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
        if let Some(value) = rest.strip_prefix(operator) {
            return Some((field, negated, value));
        }
    }
    None
}

/// Replaces `\\`, `\,` and `\=` by the character. Fails for an unescaped `,` or `=`.
fn unescape(value: &str) -> Result<String, String> {
    let invalid = |sequence: &str| format!("invalid field selector: invalid escape sequence: {sequence}");
    let (mut out, mut chars) = (String::with_capacity(value.len()), value.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => return Err(invalid(&format!("\\{c}"))),
                None => return Err(invalid("\\")),
            },
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                ));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

fn value_at<'a>(object: &'a Object, field: &str) -> &'a str {
    let mut steps = field.split('.');
    let first = steps.next().and_then(|step| object.0.get(step));
    steps.fold(first, |value, step| value?.get(step)).and_then(Value::as_str).unwrap_or_default()
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escape = |v: &str| v.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
        let operator = |negated| if negated { "!=" } else { "=" };
        let terms: Vec<_> = self
            .terms
            .iter()
            .map(|t| format!("{}{}{}", t.field, operator(t.negated), escape(&t.value)))
            .collect();
        f.write_str(&terms.join(","))
    }
}
