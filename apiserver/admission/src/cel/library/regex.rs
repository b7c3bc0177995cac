//! `find` and `findAll` (k8s.io/apiserver pkg/cel/library/regex.go). The crate's expressions take time in proportion to
//! the text, as Go's do.

use ::regex::{Regex, RegexBuilder};
use cel::common::types::{CelInt, CelString, INT_TYPE, STRING_TYPE};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env, ExecutionError};

use super::{argument, texts};

/// Largest compiled pattern, in bytes.
const LARGEST: usize = 1 << 20;

/// Declares them.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload("find", "string_find_string", STRING_TYPE, vec![STRING_TYPE], find)?;
    env.add_member_overload("findAll", "string_find_all_string", STRING_TYPE, vec![STRING_TYPE], find_all)?;
    let limited = vec![STRING_TYPE, INT_TYPE];
    env.add_member_overload("findAll", "string_find_all_string_int", STRING_TYPE, limited, find_all)
}

fn find<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let text = argument::<CelString>(&args, 0)?.inner();
    let found = pattern(&args)?.find(text).map_or("", |found| found.as_str());
    Ok(CowVal::owned(CelString::from(found.to_owned())))
}

fn find_all<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let text = argument::<CelString>(&args, 0)?.inner();
    let most = if args.len() > 2 { *argument::<CelInt>(&args, 2)?.inner() } else { -1 };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let pattern = pattern(&args)?;
    Ok(CowVal::owned(texts(pattern.find_iter(text).take(most).map(|found| found.as_str().to_owned()))))
}

fn pattern(args: &[CowVal<'_, '_>]) -> Result<Regex, ExecutionError> {
    let pattern = argument::<CelString>(args, 1)?.inner();
    let built = RegexBuilder::new(pattern).size_limit(LARGEST).build();
    built.map_err(|error| ExecutionError::function_error("find", format!("Illegal regex: {error}")))
}
