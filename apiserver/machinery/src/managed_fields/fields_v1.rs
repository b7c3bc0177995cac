//! FieldsV1: a set of paths as JSON (structured-merge-diff fieldpath serialization).
//!
//! ```text
//! {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:list":{"k:{\"name\":\"x\"}":{".":{}}}}
//! ```

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::path::PathElement;
use super::set::Set;
use super::value::number_text;

/// Levels that are read; what serde_json reads from text is not deeper.
const MAX_DEPTH: usize = 128;

impl Set {
    /// Reads FieldsV1. Kinds of elements that nobody knows yet are dropped.
    ///
    /// # Errors
    /// A description of what is not FieldsV1.
    pub fn from_json(text: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        Self::from_value(&value)
    }

    /// Reads FieldsV1 that is already a JSON tree.
    ///
    /// # Errors
    /// A description of what is not FieldsV1.
    pub fn from_value(value: &Value) -> Result<Self, String> {
        Ok(read(value, MAX_DEPTH)?.0)
    }

    /// FieldsV1 as a JSON tree.
    pub fn to_value(&self) -> Value {
        self.write(false)
    }

    /// FieldsV1 as text, byte for byte as structured-merge-diff writes it.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(256);
        self.write_json(false, &mut out);
        out
    }

    fn write(&self, include_self: bool) -> Value {
        let mut map = Map::new();
        if include_self {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        self.entries(|element, member, child| {
            let below = child.map_or_else(|| Value::Object(Map::new()), |set| set.write(member));
            map.insert(serialize(element), below);
        });
        Value::Object(map)
    }

    fn write_json(&self, include_self: bool, out: &mut String) {
        out.push('{');
        if include_self {
            out.push_str("\".\":{}");
        }
        self.entries(|element, member, child| {
            if !out.ends_with('{') {
                out.push(',');
            }
            write_string(&serialize(element), false, out);
            out.push(':');
            match child {
                Some(set) => set.write_json(member, out),
                None => out.push_str("{}"),
            }
        });
        out.push('}');
    }

    /// Members and children in one order: the element, whether it is a member, what is below.
    fn entries<'a>(&'a self, mut f: impl FnMut(&'a PathElement, bool, Option<&'a Set>)) {
        let mut members = self.members.iter().peekable();
        for (element, set) in &self.children {
            while let Some(member) = members.next_if(|m| *m < element) {
                f(member, true, None);
            }
            f(element, members.next_if_eq(&element).is_some(), Some(set));
        }
        members.for_each(|member| f(member, true, None));
    }
}

/// The paths below, and whether the value itself is a member.
fn read(value: &Value, depth: usize) -> Result<(Set, bool), String> {
    let map = match value {
        Value::Object(map) => map,
        Value::Null => return Ok((Set::default(), true)),
        _ => return Err("expected an object".to_owned()),
    };
    let depth = depth.checked_sub(1).ok_or("nested too deep")?;
    let (mut members, mut children, mut member) = (Vec::new(), Vec::new(), false);
    for (key, below) in map {
        if key == "." {
            member = true;
            continue;
        }
        let Some(element) = parse(key)? else { continue };
        let (child, is_member) = read(below, depth)?;
        match (child.is_empty(), is_member) {
            (true, true) => members.push(element),
            (true, false) => {}
            (false, false) => children.push((element, child)),
            (false, true) => {
                members.push(element.clone());
                children.push((element, child));
            }
        }
    }
    let set = Set::from_unsorted(members, children);
    // A leaf stands for itself.
    let leaf = set.members.is_empty() && set.children.is_empty();
    Ok((set, member || leaf))
}

/// `f:name`, `k:{...}`, `v:...`, `i:0`; None for a kind that nobody knows yet.
fn parse(text: &str) -> Result<Option<PathElement>, String> {
    let (kind, rest) = match text.as_bytes() {
        [kind, b':', ..] => (*kind, &text[2..]),
        [_, _, ..] => return Err(format!("missing colon: {text}")),
        _ => return Err("key must be 2 characters long:".to_owned()),
    };
    let element = match kind {
        b'f' => PathElement::entry(rest),
        b'k' => {
            let fields: Map<String, Value> = serde_json::from_str(rest).map_err(|e| e.to_string())?;
            let mut fields: Vec<(Cow<'static, str>, Value)> =
                fields.into_iter().map(|(k, v)| (Cow::from(k), v)).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            PathElement::Key(fields)
        }
        b'v' => PathElement::Value(serde_json::from_str(rest).map_err(|e| e.to_string())?),
        b'i' => PathElement::Index(rest.parse().map_err(|_| format!("invalid index: {rest}"))?),
        _ => return Ok(None),
    };
    Ok(Some(element))
}

fn serialize(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => ["f:", name].concat(),
        PathElement::Index(index) => format!("i:{index}"),
        PathElement::Value(value) => {
            let mut out = String::from("v:");
            write_value(value, &mut out);
            out
        }
        PathElement::Key(fields) => {
            let mut out = String::from("k:{");
            for (i, (name, value)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(name, false, &mut out);
                out.push(':');
                write_value(value, &mut out);
            }
            out.push('}');
            out
        }
    }
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::String(s) => write_string(s, true, out),
        Value::Number(n) => out.push_str(&number_text(n)),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, item)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(key, true, out);
                out.push(':');
                write_value(item, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// A JSON string as Go's encoders escape it; `html` escapes `<`, `>`, `&` and the line separators too.
fn write_string(text: &str, html: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0}'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if html => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)))
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}
