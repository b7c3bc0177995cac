//! The order of JSON values within path elements (structured-merge-diff value.Compare).

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Order: numbers, strings, booleans, lists, maps, null; integers and floats of the same value are equal.
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

/// Formats a number like Go: a whole number without a fraction.
pub(super) fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|f| number.is_f64() && f.fract() == 0.0 && f.abs() < 1e15) {
        Some(whole) => format!("{whole:.0}"),
        None => number.to_string(),
    }
}

fn lexical(mut pairs: impl Iterator<Item = Ordering>, a: usize, b: usize) -> Ordering {
    pairs.find(|o| o.is_ne()).unwrap_or_else(|| a.cmp(&b))
}

/// Compares integers as integers: as floats, two integers above 2^53 may both equal a third number, and there would
/// be no order.
fn numbers(a: &Number, b: &Number) -> Ordering {
    let whole = |n: &Number| n.as_i64().map(i128::from).or_else(|| n.as_u64().map(i128::from));
    let float = |n: &Number| n.as_f64().unwrap_or_default();
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => whole_to_float(a, float(b)),
        (None, Some(b)) => whole_to_float(b, float(a)).reverse(),
        (None, None) => float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal),
    }
}

fn whole_to_float(whole: i128, float: f64) -> Ordering {
    // A float that is too large becomes the largest integer, which is above every integer in JSON.
    whole
        .cmp(&(float.trunc() as i128))
        .then_with(|| 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_have_one_order() {
        let sorted = [
            vec![json!(-1e300)],
            vec![json!(i64::MIN), json!(-9_223_372_036_854_775_808.0)],
            vec![json!(-2.5)],
            vec![json!(-2), json!(-2.0)],
            vec![json!(0), json!(0.0), json!(-0.0)],
            vec![json!(0.5)],
            vec![json!(9_007_199_254_740_992_u64), json!(9_007_199_254_740_992.0)],
            vec![json!(9_007_199_254_740_993_u64)],
            vec![json!(u64::MAX)],
            vec![json!(18_446_744_073_709_551_616.0)],
            vec![json!(1e300)],
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                for (a, b) in a.iter().flat_map(|a| b.iter().map(move |b| (a, b))) {
                    assert_eq!(compare(a, b), i.cmp(&j), "{a} {b}");
                }
            }
        }
    }
}
