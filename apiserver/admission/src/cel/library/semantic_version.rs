//! Semantic versions (k8s.io/apiserver pkg/cel/library/semverlib.go).

use std::cmp::Ordering;

use cel::common::types::{BOOL_TYPE, CelBool, CelInt, CelString, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use semver::Version;

use super::{argument, opaque};

/// A semantic version. Versions that differ in their build metadata alone are equal, as on the host.
#[derive(Clone, Debug)]
struct Semver(Version);

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.0.cmp_precedence(&other.0).is_eq()
    }
}

opaque!(Semver, SEMVER_TYPE, "kubernetes.Semver");

/// Declares the functions of this library.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let semver = || Semver::cel_type().to_owned();
    for normalizes in [false, true] {
        let args = || if normalizes { vec![STRING_TYPE, BOOL_TYPE] } else { vec![STRING_TYPE] };
        env.add_overload("semver", &format!("string_to_semver_{normalizes}"), args(), |args| {
            let parsed = parse(&args)?.map_err(|why| ExecutionError::function_error("semver", why))?;
            Ok(CowVal::owned(Semver(parsed)))
        })?;
        env.add_overload("isSemver", &format!("is_semver_string_{normalizes}"), args(), |args| {
            Ok(CowVal::owned(CelBool::from(parse(&args)?.is_ok())))
        })?;
    }
    env.add_member_overload("isGreaterThan", "semver_is_greater_than", semver(), vec![semver()], |args| {
        Ok(CowVal::owned(CelBool::from(compare(&args)? == Ordering::Greater)))
    })?;
    env.add_member_overload("isLessThan", "semver_is_less_than", semver(), vec![semver()], |args| {
        Ok(CowVal::owned(CelBool::from(compare(&args)? == Ordering::Less)))
    })?;
    env.add_member_overload("compareTo", "semver_compare_to", semver(), vec![semver()], |args| {
        Ok(CowVal::owned(CelInt::from(compare(&args)? as i64)))
    })?;
    env.add_member_overload("major", "semver_major", semver(), vec![], |args| part(&args, |v| v.major))?;
    env.add_member_overload("minor", "semver_minor", semver(), vec![], |args| part(&args, |v| v.minor))?;
    env.add_member_overload("patch", "semver_patch", semver(), vec![], |args| part(&args, |v| v.patch))
}

fn compare(args: &[CowVal<'_, '_>]) -> Result<Ordering, ExecutionError> {
    Ok(argument::<Semver>(args, 0)?.0.cmp_precedence(&argument::<Semver>(args, 1)?.0))
}

fn part<'b, 'v>(
    args: &[CowVal<'_, '_>],
    part: fn(&Version) -> u64,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let part = part(&argument::<Semver>(args, 0)?.0);
    Ok(CowVal::owned(CelInt::from(i64::try_from(part).unwrap_or(i64::MAX))))
}

fn parse(args: &[CowVal<'_, '_>]) -> Result<Result<Version, String>, ExecutionError> {
    let text = argument::<CelString>(args, 0)?.inner();
    let normalize = args.len() > 1 && *argument::<CelBool>(args, 1)?.inner();
    let text = if normalize { normalized(text) } else { Ok(text.to_owned()) };
    Ok(text.and_then(|text| Version::parse(&text).map_err(|error| error.to_string())))
}

/// Returns the version without a leading `v` and leading zeros, with all three numbers.
fn normalized(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
}

fn without_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|c: char| c.is_ascii_digit()) { rest.to_owned() } else { format!("0{rest}") }
}
