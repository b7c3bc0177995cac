//! Converts JSON to CEL values, and measures their size.

use std::collections::HashMap;

use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional, CelString,
};
use cel::common::value::Val;
use serde_json::Value;

/// The value of a variable.
pub type Variable = Box<dyn Val>;

/// Converts a JSON value as the host does for expressions (unstructured content: whole numbers are `int`, never
/// `uint`).
pub fn of_json(value: &Value) -> Variable {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(it) => Box::new(CelBool::from(*it)),
        Value::Number(it) => match it.as_i64() {
            Some(whole) => Box::new(CelInt::from(whole)),
            None => Box::new(CelDouble::from(it.as_f64().unwrap_or_default())),
        },
        Value::String(it) => Box::new(CelString::from(it.clone())),
        Value::Array(items) => Box::new(CelList::from(items.iter().map(of_json).collect::<Vec<_>>())),
        Value::Object(fields) => {
            let entries = fields.iter().map(|(key, value)| (CelMapKey::from(key.clone()), of_json(value)));
            Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
        }
    }
}

/// Returns the cost of copying a value: one for each part, and one for each ten bytes of text, as in cel-go.
pub fn size(value: &dyn Val) -> i64 {
    if let Some(text) = value.downcast_ref::<CelString>() {
        return 1 + length(text.inner().len()) / 10;
    }
    if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        return 1 + length(bytes.inner().len()) / 10;
    }
    if let Some(list) = value.downcast_ref::<CelList>() {
        return list.inner().iter().fold(1, |sum: i64, item| sum.saturating_add(size(item.as_ref())));
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        let parts = map.inner().iter();
        return parts.fold(1, |sum: i64, (key, value)| {
            sum.saturating_add(size(key.inner())).saturating_add(size(value.as_ref()))
        });
    }
    if let Some(held) = value.downcast_ref::<CelOptional>().and_then(CelOptional::inner) {
        return size(held).saturating_add(1);
    }
    1
}

/// Converts a length to a CEL integer.
pub fn length(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
