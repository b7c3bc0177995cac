//! ext.Strings of cel-go, whose `replace` and `join` may build something far larger than what they are given: those two
//! are bounded here, and expressions are rewritten to call them.

use cel::common::types::{CelInt, CelList, CelString, LIST_TYPE, STRING_TYPE};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env, ExecutionError, extensions};

use super::argument;

/// What `join` is rewritten to.
pub const JOIN: &str = "@join";
/// What `replace` is rewritten to.
pub const REPLACE: &str = "@replace";
/// Longest text that one call makes: what one expression may pay for.
const LONGEST: usize = 10 << 20;

/// Declares them.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_extension(extensions::strings)?;
    env.add_member_overload(JOIN, "bounded_join", LIST_TYPE, vec![], join)?;
    env.add_member_overload(JOIN, "bounded_join_string", LIST_TYPE, vec![STRING_TYPE], join)?;
    env.add_member_overload(
        REPLACE,
        "bounded_replace",
        STRING_TYPE,
        vec![STRING_TYPE, STRING_TYPE],
        replace,
    )?;
    let limited = vec![STRING_TYPE, STRING_TYPE, cel::common::types::INT_TYPE];
    env.add_member_overload(REPLACE, "bounded_replace_int", STRING_TYPE, limited, replace)
}

fn join<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let list: &CelList = argument(&args, 0)?;
    let separator = if args.len() > 1 { argument::<CelString>(&args, 1)?.inner() } else { "" };
    let mut parts = Vec::with_capacity(list.inner().len());
    for item in list.inner() {
        let part = item.downcast_ref::<CelString>();
        parts.push(part.ok_or_else(|| ExecutionError::no_such_overload("join", vec![]))?.inner());
    }
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    bounded(length.saturating_add(separator.len().saturating_mul(parts.len())))?;
    Ok(CowVal::owned(CelString::from(parts.join(separator))))
}

fn replace<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (text, old, new) = (
        argument::<CelString>(&args, 0)?,
        argument::<CelString>(&args, 1)?,
        argument::<CelString>(&args, 2)?,
    );
    let times = if args.len() > 3 { *argument::<CelInt>(&args, 3)?.inner() } else { -1 };
    let times = usize::try_from(times).unwrap_or(usize::MAX);
    let found = text.inner().matches(old.inner()).take(times).count();
    bounded(found.saturating_mul(new.inner().len()).saturating_add(text.inner().len()))?;
    Ok(CowVal::owned(CelString::from(text.inner().replacen(old.inner(), new.inner(), found))))
}

fn bounded(length: usize) -> Result<(), ExecutionError> {
    if length <= LONGEST {
        return Ok(());
    }
    Err(ExecutionError::InternalError("operation cancelled: actual cost limit exceeded".to_owned()))
}
