//! Field selection on values without fields. For cel-go such a field is missing, for example `oldObject.spec` on a
//! create; the interpreter does not support the selection at all.

use cel::common::traits::Indexer;
use cel::common::types::{CelOptional, CelString, DYN_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::library::opaque;

/// `@selectable(value)`: returns the value if it may have fields, otherwise a value that lacks every field.
pub const SELECTABLE: &str = "@selectable";

/// A value without fields.
#[derive(Clone, Debug, PartialEq)]
struct Fieldless;

opaque!(Fieldless, FIELDLESS_TYPE, "@fieldless", indexed);

/// Declares the function.
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
