//! The table of functions that are charged before they are called, because their work may exceed the size of their
//! operands and result.
//!
//! Calls of these functions are rewritten to `@call(meter, name, operands...)`. All other functions do work
//! proportional to their operands, which have been charged, and to their result, which is charged afterwards.

use cel::common::traits::Sizer;
use cel::common::types::{CelInt, CelString, DYN_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::cost_meter::CostMeter;
use super::expression::environment;
use super::library::{argument, regex, strings};
use super::value;

/// The function that such calls are rewritten to.
pub const CALL: &str = "@call";
/// The cost of an authorizer check (k8s.io/apiserver pkg/cel/library/cost.go).
const CHECK: i64 = 350_000;

type CallOperands<'a, 'b, 'v> = &'a [CowVal<'b, 'v>];

struct CostRow {
    /// The name in expressions.
    name: &'static str,
    /// The name of the declared function; its first operand is the receiver of the call.
    function: &'static str,
    cost: fn(CallOperands<'_, '_, '_>) -> i64,
}

const TABLE: [CostRow; 14] = [
    row("check", "@check", |_| CHECK),
    row("distinct", "@distinct", |it| count(it, 0).saturating_mul(size(it, 0))),
    row("find", "@find", regex::cost),
    row("findAll", "@findAll", |it| regex::cost(it).saturating_add(count(it, 0))),
    row("indexOf", "@indexOf", |_| 0),
    row("join", "@join", |it| strings::joined(it) / 10),
    row("lastIndexOf", "@lastIndexOf", |_| 0),
    row("lists.range", "lists.range", whole),
    row("matches", "@matches", regex::cost),
    row("replace", "@replace", |it| strings::replaced(it) / 10),
    // As cel-go ext/sets.go, trackSetsCost; in addition, the compared items may be large.
    row("sets.contains", "sets.contains", product),
    row("sets.equivalent", "sets.equivalent", |it| product(it).saturating_mul(2)),
    row("sets.intersects", "sets.intersects", product),
    row("split", "@split", strings::pieces),
];

const fn row(
    name: &'static str,
    function: &'static str,
    cost: fn(CallOperands<'_, '_, '_>) -> i64,
) -> CostRow {
    CostRow { name, function, cost }
}

/// Whether a function of this name is charged before it is called.
pub fn has(name: &str) -> bool {
    find(name).is_some()
}

fn find(name: &str) -> Option<&'static CostRow> {
    TABLE.iter().find(|row| row.name == name)
}

/// Declares the function.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let operands = |count: usize| {
        let mut types = vec![CostMeter::cel_type().to_owned(), STRING_TYPE];
        types.extend(std::iter::repeat_with(|| DYN_TYPE).take(count));
        types
    };
    env.add_overload(CALL, "call_1", operands(1), call)?;
    env.add_overload(CALL, "call_2", operands(2), call)?;
    env.add_overload(CALL, "call_3", operands(3), call)?;
    env.add_overload(CALL, "call_4", operands(4), call)
}

fn call<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let operands = args.split_off(2.min(args.len()));
    let name = argument::<CelString>(&args, 1)?.inner();
    let unknown = || ExecutionError::no_such_overload(name, vec![]);
    let row = find(name).ok_or_else(unknown)?;
    let env = environment().map_err(ExecutionError::InternalError)?;
    let function = env.find_overload(row.function, &operands).ok_or_else(unknown)?;
    argument::<CostMeter>(&args, 0)?.spend((row.cost)(&operands));
    function(operands)
}

/// Returns the first operand, an integer.
fn whole(operands: CallOperands<'_, '_, '_>) -> i64 {
    argument::<CelInt>(operands, 0).map_or(1, |it| *it.inner())
}

/// The cost of comparing each item of one list with each item of the other.
fn product(operands: CallOperands<'_, '_, '_>) -> i64 {
    let (one, other) = (count(operands, 0), count(operands, 1));
    let each = one.saturating_mul(size(operands, 1)).min(other.saturating_mul(size(operands, 0)));
    one.saturating_mul(other).max(each)
}

fn count(operands: CallOperands<'_, '_, '_>, index: usize) -> i64 {
    let sized = operands.get(index).and_then(|it| it.as_sizer());
    sized.map_or(1, |sized: &dyn Sizer| *sized.size().inner())
}

fn size(operands: CallOperands<'_, '_, '_>, index: usize) -> i64 {
    operands.get(index).map_or(1, |it| value::size(it.as_ref()))
}
