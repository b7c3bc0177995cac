//! Writes JSON values as YAML, like sigs.k8s.io/yaml: block style, keys in Go's natural order, and quotes around
//! texts that a YAML 1.1 reader would take for another type.

mod text;

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// Returns a whole document.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => object(&mut out, map, 0),
        Value::Array(items) if !items.is_empty() => array(&mut out, items, 0),
        scalar_or_empty => {
            scalar(&mut out, scalar_or_empty, 0);
            out.push('\n');
        }
    }
    out
}

/// Writes lines of `key: value`; the first begins at the cursor.
fn object(out: &mut String, map: &Map<String, Value>, indent: usize) {
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort_by(|a, b| natural_order(a, b));
    for (at, key) in keys.into_iter().enumerate() {
        if at > 0 {
            spaces(out, indent);
        }
        text::write_key(out, key);
        out.push(':');
        match &map[key] {
            Value::Object(inner) if !inner.is_empty() => {
                out.push('\n');
                spaces(out, indent + 2);
                object(out, inner, indent + 2);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                spaces(out, indent);
                array(out, items, indent);
            }
            other => {
                out.push(' ');
                scalar(out, other, indent + 2);
                out.push('\n');
            }
        }
    }
}

/// Writes lines of `- item`, with the indentation of the key that they belong to.
fn array(out: &mut String, items: &[Value], indent: usize) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            spaces(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(inner) if !inner.is_empty() => object(out, inner, indent + 2),
            Value::Array(inner) if !inner.is_empty() => array(out, inner, indent + 2),
            other => {
                scalar(out, other, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(text) => text::write(out, text, indent),
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        other => out.push_str(&other.to_string()),
    }
}

fn spaces(out: &mut String, count: usize) {
    out.extend(std::iter::repeat_n(' ', count));
}

/// Compares two keys (go-yaml sorter.go): numbers within texts compare by value, and letters sort after all other
/// characters.
fn natural_order(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    for at in 0..a.len().min(b.len()) {
        if a[at] != b[at] {
            return differ(&a, &b, at);
        }
    }
    a.len().cmp(&b.len())
}

fn differ(a: &[char], b: &[char], at: usize) -> Ordering {
    match (a[at].is_alphabetic(), b[at].is_alphabetic()) {
        (true, true) => return a[at].cmp(&b[at]),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // After a significant digit, a zero is part of a number and not a leading zero.
    let within = (a[at] == '0' || b[at] == '0')
        && a[..at].iter().rev().take_while(|c| c.is_numeric()).any(|c| *c != '0');
    let start = u64::from(within);
    let (of_a, of_b) = (number(&a[at..], start), number(&b[at..], start));
    of_a.0.cmp(&of_b.0).then(of_a.1.cmp(&of_b.1)).then(a[at].cmp(&b[at]))
}

/// Returns the number that begins here, continued from `start`, and its length.
fn number(text: &[char], start: u64) -> (u64, usize) {
    let digits = text.iter().take_while(|c| c.is_ascii_digit());
    let add = |(value, length): (u64, usize), c: &char| {
        (value.wrapping_mul(10).wrapping_add(u64::from(c.to_digit(10).unwrap_or_default())), length + 1)
    };
    digits.fold((start, 0), add)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The output of sigs.k8s.io/yaml 1.6.
    #[test]
    fn a_document_is_written_as_go_writes_it() {
        let value = json!({
            "a10": "x", "a2": [], "b": {"e": {}, "l": [{"k": 1, "m": [1, null]}, [true], "t"]},
            "n": "12", "t": "2020-01-01T00:00:00Z", "e": "", "y": "yes", "c": "a: b", "h": "#x", "s": " x",
            "lines": "one\ntwo\n", "cut": "one\ntwo", "q": "it's", "z": "\u{1}", "u": "ä\u{1F680}", "k:{\"a\":\"b\"}": "-",
            "f": 1.5,
        });
        let text = "a2: []\na10: x\nb:\n  e: {}\n  l:\n  - k: 1\n    m:\n    - 1\n    - null\n  - - true\n  - t\n\
            c: 'a: b'\ncut: |-\n  one\n  two\ne: \"\"\nf: 1.5\nh: '#x'\nk:{\"a\":\"b\"}: '-'\nlines: |\n  one\n  two\n\
            \"n\": \"12\"\nq: it's\ns: ' x'\nt: \"2020-01-01T00:00:00Z\"\nu: ä\u{1F680}\n\"y\": \"yes\"\nz: \"\\x01\"\n";
        assert_eq!(to_yaml(&value), text);
    }
}
