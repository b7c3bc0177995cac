//! Path elements: one step from a value to a value within it (structured-merge-diff fieldpath.PathElement).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use super::value;
use crate::quote::go_quote;

/// One step of a path. Elements sort fields first, then keys, values and indices.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A struct's field or a map's entry: `f:name`.
    Field(Cow<'static, str>),
    /// A list item identified by some of its fields, sorted by name: `k:{"name":"x"}`.
    Key(Vec<(Cow<'static, str>, Value)>),
    /// An item of a set: `v:"x"`.
    Value(Value),
    /// A list item at an index: `i:0`.
    Index(i64),
}

impl PathElement {
    /// A struct field.
    pub const fn field(name: &'static str) -> Self {
        Self::Field(Cow::Borrowed(name))
    }

    /// A map entry.
    pub fn entry(name: &str) -> Self {
        Self::Field(Cow::Owned(name.to_owned()))
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => keys(a, b),
            (Self::Value(a), Self::Value(b)) => value::compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// As conflicts and errors print it: `.name`, `[name="x"]`, `[="x"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<_> = fields.iter().map(|(n, v)| format!("{n}={}", text(v))).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", text(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn keys(a: &[(Cow<'static, str>, Value)], b: &[(Cow<'static, str>, Value)]) -> Ordering {
    let pairs = a.iter().zip(b).map(|(a, b)| a.0.cmp(&b.0).then_with(|| value::compare(&a.1, &b.1)));
    pairs.fold(Ordering::Equal, Ordering::then).then_with(|| a.len().cmp(&b.len()))
}

fn text(of: &Value) -> String {
    match of {
        Value::String(s) => go_quote(s),
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(",")),
        Value::Object(map) => map.iter().map(|(k, v)| format!("{k}={}", text(v))).collect(),
        Value::Number(number) => value::number_text(number),
        other => other.to_string(),
    }
}
