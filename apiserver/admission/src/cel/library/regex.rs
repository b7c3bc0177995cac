//! `matches`, `find` and `findAll` (k8s.io/apiserver pkg/cel/library/regex.go). A search with the crate's expressions
//! takes time proportional to the text, as Go's does. Compiling a pattern takes longer, so each pattern is compiled
//! once in an evaluation, and its cost is charged.

use std::cell::RefCell;
use std::collections::HashMap;

use ::regex::{Regex, RegexBuilder};
use cel::common::types::{CelBool, CelInt, CelString, INT_TYPE, STRING_TYPE};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env, ExecutionError};

use super::{argument, re2, texts};
use crate::cel::value;

/// Largest compiled pattern, in bytes.
const LARGEST: usize = 256 << 10;
/// Largest memory of a search, in bytes; a search that would need more is slower.
const SEARCHING: usize = 256 << 10;
/// Maximum number of compiled patterns that are kept.
const KEPT: usize = 64;
/// The cost of compiling a pattern, in addition to that of its length.
const COST: i64 = 2_000;

thread_local! {
    /// The compiled patterns of one evaluation, which has a thread of its own.
    static COMPILED: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// Returns the cost of a search (cel-go checker/cost.go, MatchesString), plus that of compiling the pattern if it is
/// not compiled yet.
pub fn cost(args: &[CowVal<'_, '_>]) -> i64 {
    let length = |index| argument::<CelString>(args, index).map_or(0, |it| value::length(it.inner().len()));
    let search = (length(0) / 10 + 1).saturating_mul(length(1) / 4 + 1);
    let known = argument::<CelString>(args, 1)
        .is_ok_and(|it| COMPILED.with_borrow(|made| made.contains_key(it.inner())));
    if known { search } else { search.saturating_add(COST).saturating_add(length(1).saturating_mul(10)) }
}

/// Declares the functions of this library.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let two = || vec![STRING_TYPE, STRING_TYPE];
    env.add_overload("@matches", "charged_matches", two(), |args| {
        let found = pattern(&args)?.is_match(argument::<CelString>(&args, 0)?.inner());
        Ok(CowVal::owned(CelBool::from(found)))
    })?;
    env.add_overload("@find", "charged_find", two(), |args| {
        let pattern = pattern(&args)?;
        let found = pattern.find(argument::<CelString>(&args, 0)?.inner()).map_or("", |found| found.as_str());
        Ok(CowVal::owned(CelString::from(found.to_owned())))
    })?;
    env.add_overload("@findAll", "charged_find_all", two(), find_all)?;
    env.add_overload("@findAll", "charged_find_all_int", vec![STRING_TYPE, STRING_TYPE, INT_TYPE], find_all)
}

fn find_all<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let text = argument::<CelString>(&args, 0)?.inner();
    let most = if args.len() > 2 { *argument::<CelInt>(&args, 2)?.inner() } else { -1 };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let pattern = pattern(&args)?;
    Ok(CowVal::owned(texts(pattern.find_iter(text).take(most).map(|found| found.as_str().to_owned()))))
}

/// Returns the compiled pattern. Clones share the compiled expression.
fn pattern(args: &[CowVal<'_, '_>]) -> Result<Regex, ExecutionError> {
    let pattern = argument::<CelString>(args, 1)?.inner();
    if let Some(made) = COMPILED.with_borrow(|made| made.get(pattern).cloned()) {
        return Ok(made);
    }
    let illegal =
        |why: &dyn std::fmt::Display| ExecutionError::function_error("find", format!("Illegal regex: {why}"));
    let translated = re2::translate(pattern).map_err(|why| illegal(&why))?;
    let builder = RegexBuilder::new(&translated).size_limit(LARGEST).dfa_size_limit(SEARCHING).build();
    let made = builder.map_err(|why| illegal(&why))?;
    COMPILED.with_borrow_mut(|all| {
        if all.len() >= KEPT {
            all.clear();
        }
        all.insert(pattern.to_owned(), made.clone());
    });
    Ok(made)
}
