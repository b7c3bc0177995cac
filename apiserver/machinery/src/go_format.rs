//! Formats values like Go's fmt package, as some of Kubernetes' messages do.

use std::fmt::Write;

use serde_json::{Number, Value};

use crate::quote::go_quote;

/// `%v` of a decoded JSON value: `map[a:1 b:[x <nil>]]`.
pub fn plain(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value, &|out, scalar| out.push_str(&plain_scalar(scalar)));
    out
}

/// `%s`, which prints an error for everything but text: `%!s(int64=1)`.
pub(crate) fn as_text(value: &Value) -> String {
    if value.is_null() {
        return "%!s(<nil>)".to_owned();
    }
    let mut out = String::new();
    write_value(&mut out, value, &|out, scalar| match scalar {
        Value::String(text) => out.push_str(text),
        Value::Null => out.push_str("<nil>"),
        other => {
            let _ = write!(out, "%!s({}={})", type_name(other), plain_scalar(other));
        }
    });
    out
}

/// `%#v`: `map[string]interface {}{"a":1, "b":interface {}(nil)}`.
pub(crate) fn syntax(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => go_quote(text),
        Value::Array(items) => format!("[]interface {{}}{{{}}}", list(items.iter().map(syntax).collect())),
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| format!("{}:{}", go_quote(key), syntax(value)));
            format!("map[string]interface {{}}{{{}}}", list(fields.collect()))
        }
        scalar => plain_scalar(scalar),
    }
}

/// Returns the Go type that a JSON value is decoded into.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn write_value(out: &mut String, value: &Value, scalar: &impl Fn(&mut String, &Value)) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { " " });
                write_value(out, item, scalar);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("map[");
            for (index, (key, value)) in map.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { " " });
                out.push_str(key);
                out.push(':');
                write_value(out, value, scalar);
            }
            out.push(']');
        }
        other => scalar(out, other),
    }
}

fn plain_scalar(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if !number.is_i64() => float(number),
        other => other.to_string(),
    }
}

/// Formats the shortest digits, with an exponent below -4 and from 6 on.
fn float(number: &Number) -> String {
    let value = number.as_f64().unwrap_or_default();
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_printed_as_go_prints_them() {
        let value = json!({"b": [1, "x", null, 1.5, true], "a": {"c": {}, "d": []}, "e": -0.5});
        assert_eq!(plain(&value), "map[a:map[c:map[] d:[]] b:[1 x <nil> 1.5 true] e:-0.5]");
        let wrong = json!({"a": [1, null, 2.5, true], "b": "x"});
        assert_eq!(as_text(&wrong), "map[a:[%!s(int64=1) <nil> %!s(float64=2.5) %!s(bool=true)] b:x]");
    }

    #[test]
    fn values_are_written_as_go_would_have_them_in_its_source() {
        let value = json!({"b": [1, "x\n", null], "a": {}});
        let map = "map[string]interface {}";
        assert_eq!(
            syntax(&value),
            format!(r#"{map}{{"a":{map}{{}}, "b":[]interface {{}}{{1, "x\n", interface {{}}(nil)}}}}"#)
        );
    }

    #[test]
    fn floats_have_an_exponent_where_go_gives_them_one() {
        let cases = [
            ("2.0", "2"),
            ("1e5", "100000"),
            ("1e6", "1e+06"),
            ("123456789.5", "1.234567895e+08"),
            ("1.25e-5", "1.25e-05"),
            ("0.0001", "0.0001"),
            ("1e300", "1e+300"),
            ("18446744073709551615", "1.8446744073709552e+19"),
        ];
        for (json, printed) in cases {
            let value: Value = serde_json::from_str(json).unwrap_or_default();
            assert_eq!(plain(&value), printed, "{json}");
        }
    }
}
