//! List functions (k8s.io/apiserver pkg/cel/library/lists.go), in addition to ext.Lists of cel-go.

use std::cmp::Ordering;

use cel::common::types::{CelBool, CelInt, CelList, DYN_TYPE, Kind, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, extensions};

use super::argument;
use crate::cel::value;

/// The items of a list that is read as a set.
type SetItems<'a, 'v> = &'a [Box<dyn Val + 'v>];

/// Finds the index of a value in a list.
type Find<'v> = fn(&[Box<dyn Val + 'v>], &dyn Val) -> Option<usize>;

/// Declares the functions of this library.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_extension(extensions::lists)?;
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], is_sorted)?;
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], sum)?;
    env.add_member_overload("min", "list_min", LIST_TYPE, vec![], |args| {
        extreme(&args, "min", Ordering::Greater)
    })?;
    env.add_member_overload("max", "list_max", LIST_TYPE, vec![], |args| {
        extreme(&args, "max", Ordering::Less)
    })?;
    env.add_overload("@distinct", "charged_distinct", vec![LIST_TYPE], distinct)?;
    env.add_overload("@indexOf", "list_a_index_of_int", vec![LIST_TYPE, DYN_TYPE], |args| {
        position(&args, |items, wanted| items.iter().position(|item| item.equals(wanted)))
    })?;
    env.add_overload("@lastIndexOf", "list_a_last_index_of_int", vec![LIST_TYPE, DYN_TYPE], |args| {
        position(&args, |items, wanted| items.iter().rposition(|item| item.equals(wanted)))
    })
}

fn is_sorted<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let items = argument::<CelList>(&args, 0)?.inner();
    for pair in items.windows(2) {
        if compare(pair[0].as_ref(), pair[1].as_ref())? == Ordering::Greater {
            return Ok(CowVal::owned(CelBool::from(false)));
        }
    }
    Ok(CowVal::owned(CelBool::from(true)))
}

/// Returns the list without duplicates; the first of equal items stays.
fn distinct<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut found: Vec<&Box<dyn Val + 'v>> = Vec::new();
    for item in argument::<CelList>(&args, 0)?.inner() {
        if !found.iter().any(|known| item.equals(known.as_ref())) {
            found.push(item);
        }
    }
    Ok(CowVal::owned(CelList::from(found.into_iter().cloned().collect::<Vec<_>>())))
}

/// An empty list has the sum 0 (an int). Only numbers and durations have a sum: for strings, the intermediate results
/// would be copied once for each string.
fn sum<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut items = argument::<CelList>(&args, 0)?.inner().iter();
    let Some(first) = items.next() else { return Ok(CowVal::owned(CelInt::from(0))) };
    let mut total = first.clone();
    for item in items {
        let adds = !matches!(total.get_type().kind(), Kind::String | Kind::Bytes | Kind::List);
        let adder = total
            .as_adder()
            .filter(|_| adds)
            .ok_or_else(|| ExecutionError::no_such_overload("sum", vec![]))?;
        total = adder.add(item.as_ref())?.into_owned();
    }
    Ok(CowVal::Owned(total))
}

fn extreme<'b, 'v>(
    args: &[CowVal<'_, 'v>],
    name: &str,
    gives_way: Ordering,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut items = argument::<CelList>(args, 0)?.inner().iter();
    let empty = || ExecutionError::function_error(name, format!("{name} called on empty list"));
    let mut best = items.next().ok_or_else(empty)?;
    for item in items {
        if compare(best.as_ref(), item.as_ref())? == gives_way {
            best = item;
        }
    }
    Ok(CowVal::Owned(best.clone()))
}

fn position<'b, 'v>(args: &[CowVal<'_, 'v>], find: Find<'v>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let items = argument::<CelList>(args, 0)?.inner();
    let wanted = args.get(1).ok_or(ExecutionError::MissingArgumentOrTarget)?;
    let found = find(items, wanted.as_ref());
    Ok(CowVal::owned(CelInt::from(found.map_or(-1, value::length))))
}

fn compare(a: &dyn Val, b: &dyn Val) -> Result<Ordering, ExecutionError> {
    let comparer = a.as_comparer().ok_or_else(|| ExecutionError::no_such_overload("compare", vec![]))?;
    comparer.compare(b)
}

/// Declares the functions that treat lists as sets (cel-go ext.Sets).
pub fn declare_sets(env: &mut Env) -> Result<(), DeclarationError> {
    let lists = || vec![LIST_TYPE, LIST_TYPE];
    env.add_overload("sets.contains", "list_sets_contains_list", lists(), |args| {
        compare_sets(&args, |a, b| has_all(a, b))
    })?;
    env.add_overload("sets.equivalent", "list_sets_equivalent_list", lists(), |args| {
        compare_sets(&args, |a, b| has_all(a, b) && has_all(b, a))
    })?;
    env.add_overload("sets.intersects", "list_sets_intersects_list", lists(), |args| {
        compare_sets(&args, |a, b| a.iter().any(|item| has(b, item.as_ref())))
    })
}

fn compare_sets<'b, 'v>(
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
