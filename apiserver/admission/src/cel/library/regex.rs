//! `matches`, `find` and `findAll` (k8s.io/apiserver pkg/cel/library/regex.go). The crate's expressions take time in
//! proportion to the text, as Go's do; making one of a pattern takes longer, so a pattern is made into one once in an
//! evaluation, and paid for.

use std::cell::RefCell;
use std::collections::HashMap;

use ::regex::{Regex, RegexBuilder};
use cel::common::types::{CelBool, CelInt, CelString, INT_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::{argument, texts};
use crate::cel::meter::Meter;

/// Largest compiled pattern, in bytes.
const LARGEST: usize = 1 << 20;
/// What it costs to make one.
const COST: i64 = 2_000;

/// What calls of the three are rewritten to, the meter being their first argument.
const FUNCTIONS: [(&str, &str); 3] = [("matches", "@matches"), ("find", "@find"), ("findAll", "@findAll")];

thread_local! {
    /// Of one evaluation: each has a thread of its own.
    static MADE: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// The function that a call of `name` is rewritten to.
pub fn metered(name: &str) -> Option<&'static str> {
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, metered)| *metered)
}

/// Declares them.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let meter = || Meter::cel_type().to_owned();
    let two = || vec![meter(), STRING_TYPE, STRING_TYPE];
    env.add_overload("@matches", "metered_matches", two(), |args| {
        let found = pattern(&args)?.is_match(argument::<CelString>(&args, 1)?.inner());
        Ok(CowVal::owned(CelBool::from(found)))
    })?;
    env.add_overload("@find", "metered_find", two(), |args| {
        let pattern = pattern(&args)?;
        let found = pattern.find(argument::<CelString>(&args, 1)?.inner()).map_or("", |found| found.as_str());
        Ok(CowVal::owned(CelString::from(found.to_owned())))
    })?;
    env.add_overload("@findAll", "metered_find_all", two(), find_all)?;
    env.add_overload(
        "@findAll",
        "metered_find_all_int",
        vec![meter(), STRING_TYPE, STRING_TYPE, INT_TYPE],
        find_all,
    )
}

fn find_all<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let text = argument::<CelString>(&args, 1)?.inner();
    let most = if args.len() > 3 { *argument::<CelInt>(&args, 3)?.inner() } else { -1 };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let pattern = pattern(&args)?;
    Ok(CowVal::owned(texts(pattern.find_iter(text).take(most).map(|found| found.as_str().to_owned()))))
}

/// A regular expression is shared where it is copied.
fn pattern(args: &[CowVal<'_, '_>]) -> Result<Regex, ExecutionError> {
    let pattern = argument::<CelString>(args, 2)?.inner();
    if let Some(made) = MADE.with_borrow(|made| made.get(pattern).cloned()) {
        return Ok(made);
    }
    argument::<Meter>(args, 0)?.spend(COST)?;
    let made = RegexBuilder::new(pattern).size_limit(LARGEST).build();
    let made =
        made.map_err(|error| ExecutionError::function_error("find", format!("Illegal regex: {error}")))?;
    MADE.with_borrow_mut(|all| all.insert(pattern.to_owned(), made.clone()));
    Ok(made)
}
