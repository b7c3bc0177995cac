//! Lists as sets (cel-go ext.Sets).

use cel::common::types::{CelBool, CelList, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::argument;

type SetItems<'a, 'v> = &'a [Box<dyn Val + 'v>];

/// Declares the functions of this library.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let lists = || vec![LIST_TYPE, LIST_TYPE];
    env.add_overload("sets.contains", "list_sets_contains_list", lists(), |args| {
        compare(&args, |a, b| has_all(a, b))
    })?;
    env.add_overload("sets.equivalent", "list_sets_equivalent_list", lists(), |args| {
        compare(&args, |a, b| has_all(a, b) && has_all(b, a))
    })?;
    env.add_overload("sets.intersects", "list_sets_intersects_list", lists(), |args| {
        compare(&args, |a, b| a.iter().any(|item| has(b, item.as_ref())))
    })
}

fn compare<'b, 'v>(
    args: &[CowVal<'_, 'v>],
    holds: fn(SetItems<'_, 'v>, SetItems<'_, 'v>) -> bool,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (a, b) = (argument::<CelList>(args, 0)?.inner(), argument::<CelList>(args, 1)?.inner());
    Ok(CowVal::owned(CelBool::from(holds(a, b))))
}

fn has_all(all: SetItems<'_, '_>, wanted: SetItems<'_, '_>) -> bool {
    wanted.iter().all(|item| has(all, item.as_ref()))
}

fn has(all: SetItems<'_, '_>, wanted: &dyn Val) -> bool {
    all.iter().any(|item| item.equals(wanted))
}
