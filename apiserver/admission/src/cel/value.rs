//! CEL values: converts JSON to them, measures their size, and selects fields of those without fields.

use std::collections::HashMap;

use cel::common::traits::Indexer;
use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional, CelString,
    DYN_TYPE,
};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use serde_json::Value;

use super::library::opaque;

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

/// `@selectable(value)`: returns the value if it may have fields, otherwise a value that lacks every field.
pub const SELECTABLE: &str = "@selectable";

/// A value without fields. For cel-go a field of it is missing, for example `oldObject.spec` on a create; the
/// interpreter does not support the selection at all.
#[derive(Clone, Debug, PartialEq)]
struct Fieldless;

opaque!(Fieldless, FIELDLESS_TYPE, "@fieldless", indexed);

/// Declares the function `@selectable`.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(SELECTABLE, "selectable", vec![DYN_TYPE], selectable)
}

fn selectable<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = args.pop().ok_or(ExecutionError::MissingArgumentOrTarget)?;
    let has_fields = value.as_indexer().is_some() || value.as_ref().downcast_ref::<CelOptional>().is_some();
    Ok(if has_fields { value } else { CowVal::owned(Fieldless) })
}

impl Indexer for Fieldless {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let field = index.downcast_ref::<CelString>().map(CelString::inner).unwrap_or_default();
        Err(ExecutionError::no_such_key(field))
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}
