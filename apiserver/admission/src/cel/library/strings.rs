//! ext.Strings of cel-go. Reimplements those functions whose result may be far larger than their operands, or whose
//! time is the product of two lengths.

use cel::common::types::{CelInt, CelList, CelString, INT_TYPE, LIST_TYPE, STRING_TYPE};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env, ExecutionError, extensions};

use super::{argument, texts};
use crate::cel::value;

type Operands<'a, 'b, 'v> = &'a [CowVal<'b, 'v>];

/// Declares the functions of this library.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_extension(extensions::strings)?;
    let (two, three) = (|| vec![STRING_TYPE, STRING_TYPE], || vec![STRING_TYPE, STRING_TYPE, STRING_TYPE]);
    let limited = |mut types: Vec<_>| {
        types.push(INT_TYPE);
        types
    };
    env.add_overload("@join", "charged_join", vec![LIST_TYPE], join)?;
    env.add_overload("@join", "charged_join_string", vec![LIST_TYPE, STRING_TYPE], join)?;
    env.add_overload("@replace", "charged_replace", three(), replace)?;
    env.add_overload("@replace", "charged_replace_int", limited(three()), replace)?;
    env.add_overload("@split", "charged_split", two(), split)?;
    env.add_overload("@split", "charged_split_int", limited(two()), split)?;
    env.add_overload("@indexOf", "string_index_of", two(), index_of)?;
    env.add_overload("@indexOf", "string_index_of_int", limited(two()), index_of)?;
    env.add_overload("@lastIndexOf", "string_last_index_of", two(), last_index_of)?;
    env.add_overload("@lastIndexOf", "string_last_index_of_int", limited(two()), last_index_of)
}

/// Returns the length of the result of `join` in bytes.
pub fn joined(args: Operands<'_, '_, '_>) -> i64 {
    let items = argument::<CelList>(args, 0).map(CelList::inner).unwrap_or_default();
    let separator = text(args, 1).unwrap_or_default().len().saturating_mul(items.len());
    let parts = items.iter().filter_map(|item| item.downcast_ref::<CelString>());
    value::length(parts.map(|part| part.inner().len()).sum::<usize>().saturating_add(separator))
}

/// Returns the length of the result of `replace` in bytes.
pub fn replaced(args: Operands<'_, '_, '_>) -> i64 {
    let (Ok(whole), Ok(old), Ok(new)) = (text(args, 0), text(args, 1), text(args, 2)) else { return 0 };
    let found = whole.matches(old).take(limit(args, 3)).count();
    value::length(found.saturating_mul(new.len()).saturating_add(whole.len()))
}

/// Returns the number of strings in the result of `split`.
pub fn pieces(args: Operands<'_, '_, '_>) -> i64 {
    let (Ok(whole), Ok(separator)) = (text(args, 0), text(args, 1)) else { return 0 };
    value::length(whole.matches(separator).take(limit(args, 2)).count()).saturating_add(1)
}

fn join<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let separator = if args.len() > 1 { text(&args, 1)? } else { "" };
    let items = argument::<CelList>(&args, 0)?.inner();
    let parts = items.iter().map(|item| item.downcast_ref::<CelString>().map(CelString::inner));
    let parts: Option<Vec<&str>> = parts.collect();
    let parts = parts.ok_or_else(|| ExecutionError::no_such_overload("join", vec![]))?;
    Ok(CowVal::owned(CelString::from(parts.join(separator))))
}

fn replace<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let made = text(&args, 0)?.replacen(text(&args, 1)?, text(&args, 2)?, limit(&args, 3));
    Ok(CowVal::owned(CelString::from(made)))
}

/// An empty separator splits between all characters, but not before the first and after the last.
fn split<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (whole, separator, most) = (text(&args, 0)?, text(&args, 1)?, limit(&args, 2));
    if !separator.is_empty() {
        return Ok(CowVal::owned(texts(whole.splitn(most, separator).map(str::to_owned))));
    }
    let starts: Vec<usize> = whole.char_indices().map(|(start, _)| start).take(most).collect();
    let ends = starts.iter().skip(1).copied().chain([whole.len()]);
    let parts = starts.iter().zip(ends).map(|(start, end)| whole[*start..end].to_owned());
    Ok(CowVal::owned(texts(parts)))
}

/// Returns the index of the text in characters, at or after the offset.
fn index_of<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (whole, wanted) = (text(&args, 0)?, text(&args, 1)?);
    let found = match offset(&args, "indexOf")? {
        None => whole.find(wanted),
        Some(past) if wanted.is_empty() => Some(past),
        Some(start) => whole[start..].find(wanted).map(|at| start + at),
    };
    Ok(position(whole, found))
}

/// Returns the index of the text in characters, at or before the offset.
fn last_index_of<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (whole, wanted) = (text(&args, 0)?, text(&args, 1)?);
    let found = match offset(&args, "lastIndexOf")? {
        None => whole.rfind(wanted),
        Some(past) if wanted.is_empty() => Some(past),
        // A text that begins at the offset ends this much later.
        Some(start) => {
            let end = start.saturating_add(wanted.len()).min(whole.len());
            whole[..whole.floor_char_boundary(end)].rfind(wanted)
        }
    };
    Ok(position(whole, found))
}

/// Returns the byte position of the character at the offset, if there is an offset. Fails if it is out of range.
fn offset(args: Operands<'_, '_, '_>, function: &str) -> Result<Option<usize>, ExecutionError> {
    if args.len() < 3 {
        return Ok(None);
    }
    let (whole, offset) = (text(args, 0)?, *argument::<CelInt>(args, 2)?.inner());
    let refused = || ExecutionError::function_error(function, format!("index out of range: {offset}"));
    let wanted = usize::try_from(offset).map_err(|_| refused())?;
    let start = whole.char_indices().nth(wanted).map(|(start, _)| start);
    match start {
        Some(start) => Ok(Some(start)),
        None if text(args, 1)?.is_empty() => Ok(Some(whole.len())),
        None => Err(refused()),
    }
}

fn position<'b, 'v>(whole: &str, found: Option<usize>) -> CowVal<'b, 'v> {
    CowVal::owned(CelInt::from(found.map_or(-1, |at| value::length(whole[..at].chars().count()))))
}

fn text<'a>(args: Operands<'a, '_, '_>, index: usize) -> Result<&'a str, ExecutionError> {
    Ok(argument::<CelString>(args, index)?.inner())
}

/// Returns the limit on replacements or parts; `usize::MAX` if it is negative or absent.
fn limit(args: Operands<'_, '_, '_>, index: usize) -> usize {
    argument::<CelInt>(args, index)
        .ok()
        .and_then(|it| usize::try_from(*it.inner()).ok())
        .unwrap_or(usize::MAX)
}
