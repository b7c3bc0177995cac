//! Converts a tree of values to the types of a schema, as Kubernetes' converter does: integers are truncated to their
//! width, floats without a fraction are integers, and unknown fields are dropped and reported in alphabetical order.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use super::context::{NAME_SHOWN, STRICT_ERRORS_MAX};
use super::go_values::base64_text;
use crate::field::beginning;
use crate::go_format::type_name;
use crate::schema::{ObjectShape, Schema, Shape};

/// Converts a value in place. Returns `unknown field "spec.foo"` for each unknown field. Fails if a value has the
/// wrong type.
pub(super) fn from_unstructured(value: &mut Value, schema: &Schema) -> Result<Vec<String>, String> {
    let mut walk = Walk { path: String::new(), unknown: BTreeSet::new() };
    walk.value(value, schema)?;
    Ok(walk.unknown.into_iter().collect())
}

struct Walk {
    path: String,
    /// The first errors in alphabetical order, at most [`STRICT_ERRORS_MAX`].
    unknown: BTreeSet<String>,
}

impl Walk {
    fn value(&mut self, value: &mut Value, schema: &Schema) -> Result<(), String> {
        match (&schema.shape, value) {
            (_, Value::Null) | (Shape::Raw, _) => Ok(()),
            // These types have JSON decoders of their own.
            (Shape::Time | Shape::MicroTime, Value::String(_)) => Ok(()),
            (Shape::Time | Shape::MicroTime, other) => Err(not_json(other, "string")),
            (Shape::IntOrString, value) => int_or_string(value),
            (Shape::Bytes, Value::String(text)) => bytes(text),
            (Shape::Bytes, other) => Err(format!("cannot restore slice from {}", kind(other))),
            (Shape::Object(shape), Value::Object(map)) => self.fields(map, shape),
            (Shape::Object(_), other) => Err(format!("cannot restore struct from: {}", kind(other))),
            (Shape::Map(values), Value::Object(map)) => {
                map.values_mut().try_for_each(|value| self.value(value, values))
            }
            (Shape::Map(_), other) => Err(format!("cannot restore map from {}", kind(other))),
            (Shape::List(items, _), Value::Array(list)) => self.items(list, items),
            (Shape::List(..), other) => Err(format!("cannot restore slice from {}", kind(other))),
            (shape, value) => scalar(value, shape),
        }
    }

    fn fields(&mut self, map: &mut Map<String, Value>, shape: &ObjectShape) -> Result<(), String> {
        for field in &shape.fields {
            if let Some(value) = map.get_mut(field.name) {
                let dot = if self.path.is_empty() { "" } else { "." };
                self.at(&format!("{dot}{}", field.name), |walk| walk.value(value, &field.schema))?;
            }
        }
        map.retain(|key, _| {
            let known = shape.fields.iter().any(|field| field.name == key);
            if !known {
                let dot = if self.path.is_empty() { "" } else { "." };
                let key = beginning(key, NAME_SHOWN);
                self.unknown.insert(format!("unknown field \"{}{dot}{key}\"", self.path));
                if self.unknown.len() > STRICT_ERRORS_MAX {
                    self.unknown.pop_last();
                }
            }
            known
        });
        Ok(())
    }

    fn items(&mut self, list: &mut [Value], items: &Schema) -> Result<(), String> {
        for (index, item) in list.iter_mut().enumerate() {
            self.at(&format!("[{index}]"), |walk| walk.value(item, items))?;
        }
        Ok(())
    }

    fn at<T>(&mut self, step: &str, inside: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        self.path.push_str(step);
        let result = inside(self);
        self.path.truncate(length);
        result
    }
}

fn scalar(value: &mut Value, shape: &Shape) -> Result<(), String> {
    let wanted = match shape {
        Shape::Boolean => "bool",
        Shape::Int32 => "int32",
        Shape::Int64 => "int64",
        _ => "string",
    };
    match (shape, &*value) {
        (Shape::Boolean, Value::Bool(_)) | (Shape::String, Value::String(_)) => Ok(()),
        (Shape::Int32 | Shape::Int64, Value::Number(number)) => {
            let whole = integer(number).ok_or_else(|| format!("cannot convert float64 to {wanted}"))?;
            *value = if wanted == "int32" { cut(whole).into() } else { whole.into() };
            Ok(())
        }
        // In Go, an integer can be converted to a string, the character with that number; the converter refuses it.
        (Shape::String, Value::Number(number)) if number.is_i64() => {
            Err(format!("cannot convert int64 to {wanted}"))
        }
        _ => Err(format!("unrecognized type: {wanted}")),
    }
}

fn int_or_string(value: &mut Value) -> Result<(), String> {
    let whole = match value {
        Value::String(_) => return Ok(()),
        Value::Number(number) => integer(number).and_then(|whole| i32::try_from(whole).ok()),
        _ => None,
    };
    *value = whole.ok_or_else(|| not_json(value, "int32"))?.into();
    Ok(())
}

/// Checks base64 text. The converter uses the JSON decoder here, and its error says so.
fn bytes(text: &mut String) -> Result<(), String> {
    *text = base64_text(text).map_err(|why| format!("error decoding from json: {why}"))?;
    Ok(())
}

/// The error of Go's JSON decoder for a value of the wrong type.
fn not_json(value: &Value, wanted: &str) -> String {
    let given = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(_) if wanted == "string" => "number".to_owned(),
        Value::Number(number) => format!("number {number}"),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    format!("json: cannot unmarshal {given} into Go value of type {wanted}")
}

/// Returns the number as an integer; `None` if it has a fraction. A number outside the range becomes the least
/// integer, as on amd64.
fn integer(number: &Number) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if let Some(integer) = number.as_i64() {
        return Some(integer);
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    #[allow(clippy::cast_possible_truncation, reason = "it is whole and in range")]
    Some(if (-LIMIT..LIMIT).contains(&float) { float as i64 } else { i64::MIN })
}

/// Returns the lower 32 bits of an integer.
fn cut(integer: i64) -> i32 {
    let [a, b, c, d, ..] = integer.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// reflect.Kind
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        scalar => type_name(scalar),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::decode;
    use crate::schema::ListType;
    use crate::schema::common::{list, object, optional, string, strings_map, text};

    fn schema() -> Schema {
        let item = object(
            "",
            "x.Item",
            vec![text("name", 1, ""), optional("on", 2, Schema::new("", Shape::Boolean))],
        );
        let fields = vec![
            optional("small", 1, Schema::new("", Shape::Int32)),
            optional("large", 2, Schema::new("", Shape::Int64)),
            optional("items", 3, list("", item, ListType::Atomic)),
            optional("words", 4, list("", string(), ListType::Atomic)),
            optional("map", 5, strings_map("")),
            optional("time", 6, Schema::new("", Shape::Time)),
            optional("amount", 7, Schema::new("", Shape::IntOrString)),
            optional("bytes", 8, Schema::new("", Shape::Bytes)),
        ];
        object("", "x.Thing", fields)
    }

    fn restored(value: Value) -> Result<(Value, Vec<String>), String> {
        let restored = decode::from_unstructured(value, &crate::testing::NAMES, &schema());
        restored.map(|(object, unknown)| (object.into_value(), unknown)).map_err(|refusal| match refusal {
            decode::DecodeError::Reason(why) => why,
            decode::DecodeError::Status(answer) => answer.status.message,
        })
    }

    #[test]
    fn numbers_become_what_the_field_holds() {
        let given = json!({"small": 4_294_967_301_i64, "large": 2.0, "words": null, "map": {"a": null}});
        let want = json!({"small": 5, "large": 2, "map": {"a": ""}});
        assert_eq!(restored(given), Ok((want, Vec::new())));
        assert_eq!(restored(json!({"small": 1e300})), Ok((json!({"small": 0}), Vec::new())));
    }

    #[test]
    fn what_is_unknown_is_dropped_and_told_by_name() {
        let given = json!({"z": 1, "items": [{"name": "a"}, {"odd": {}, "name": "b"}], "a": [1]});
        let unknown = [r#"unknown field "a""#, r#"unknown field "items[1].odd""#, r#"unknown field "z""#];
        let want = json!({"items": [{"name": "a"}, {"name": "b"}]});
        assert_eq!(restored(given), Ok((want, unknown.map(str::to_owned).to_vec())));
    }

    #[test]
    fn refusals_are_those_of_the_converter() {
        let cases = [
            (json!([]), "cannot restore struct from: slice"),
            (json!({"items": [1]}), "cannot restore struct from: int64"),
            (json!({"items": {}}), "cannot restore slice from map"),
            (json!({"map": "x"}), "cannot restore map from string"),
            (json!({"small": 1.5}), "cannot convert float64 to int32"),
            (json!({"large": "1"}), "unrecognized type: int64"),
            (json!({"words": [1]}), "cannot convert int64 to string"),
            (json!({"words": [1.5]}), "unrecognized type: string"),
            (json!({"items": [{"on": 1}]}), "unrecognized type: bool"),
            (json!({"amount": true}), "json: cannot unmarshal bool into Go value of type int32"),
            (json!({"amount": 1.5}), "json: cannot unmarshal number 1.5 into Go value of type int32"),
            (json!({"bytes": "odd!"}), "error decoding from json: illegal base64 data at input byte 3"),
            (json!({"time": 5}), "json: cannot unmarshal number into Go value of type string"),
        ];
        for (given, why) in cases {
            assert_eq!(restored(given), Err(why.to_owned()));
        }
    }
}
