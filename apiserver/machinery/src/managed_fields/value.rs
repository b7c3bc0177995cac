//! The order of JSON values within path elements (structured-merge-diff value.Compare).

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Numbers, strings, booleans, lists, maps, null; integers and floats of one value are equal.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            lexical(a.iter().zip(b).map(|(a, b)| compare(a, b)), a.len(), b.len())
        }
        (Value::Object(a), Value::Object(b)) => {
            let pairs = a.iter().zip(b).map(|((ka, va), (kb, vb))| ka.cmp(kb).then_with(|| compare(va, vb)));
            lexical(pairs, a.len(), b.len())
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// A number as Go prints it: a whole one without a fraction.
pub(super) fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|f| number.is_f64() && f.fract() == 0.0 && f.abs() < 1e15) {
        Some(whole) => format!("{whole:.0}"),
        None => number.to_string(),
    }
}

fn lexical(mut pairs: impl Iterator<Item = Ordering>, a: usize, b: usize) -> Ordering {
    pairs.find(|o| o.is_ne()).unwrap_or_else(|| a.cmp(&b))
}

fn numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    let (a, b) = (a.as_f64().unwrap_or_default(), b.as_f64().unwrap_or_default());
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
