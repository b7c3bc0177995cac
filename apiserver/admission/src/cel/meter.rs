//! What an evaluation may spend, in the units of the host (k8s.io/apiserver pkg/apis/cel/config.go).
//!
//! The interpreter has no meter of its own: expressions are rewritten so that they call these functions with the
//! meter, before a loop and around whatever may be large. An error would not end an evaluation, since `||`, `&&` and
//! the loops of macros go on after one; so what overdraws the meter, or is waited for no more, is unwound.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cel::common::traits::Sizer;
use cel::common::types::{CelInt, DYN_TYPE, INT_TYPE};
use cel::common::value::{CowVal, Val};

use cel::{DeclarationError, Env, ExecutionError};

use super::library::opaque;
use super::{stack, value};

/// What one expression may spend.
pub const PER_CALL: i64 = 1_000_000;
/// What is said of an expression that spent more.
pub const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Name of the variable that holds the meter. No expression can write it.
pub const METER: &str = "@meter";
/// `@walk(meter, range, weight)`: the range, paid for with a weight for each of its parts.
pub const WALK: &str = "@walk";
/// `@paid(meter, value)`: the value, paid for by its size.
pub const PAID: &str = "@paid";

/// What is left.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<AtomicI64>);

/// What unwinds an evaluation that cannot pay.
struct Overdrawn;
/// What unwinds the thread of an evaluation that nobody waits for.
struct Abandoned;

opaque!(Meter, METER_TYPE, "@meter");

impl PartialEq for Meter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Meter {
    /// Lets so much be spent, whatever was left.
    pub fn fill(&self, amount: i64) {
        self.0.store(amount, Ordering::Relaxed);
    }

    /// What is left.
    pub fn left(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Pays, or ends the evaluation.
    pub fn spend(&self, amount: i64) {
        let left = self.left().saturating_sub(amount.max(0));
        self.0.store(left, Ordering::Relaxed);
        if left < 0 {
            resume_unwind(Box::new(Overdrawn));
        }
        if stack::is_abandoned() {
            resume_unwind(Box::new(Abandoned));
        }
    }
}

/// Evaluates with a meter; `None` if it was overdrawn.
pub fn within_means<T>(evaluate: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(evaluate)) {
        Ok(value) => Some(value),
        Err(why) if why.is::<Overdrawn>() => None,
        Err(why) => resume_unwind(why),
    }
}

/// Declares the functions.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let meter = || Meter::cel_type().to_owned();
    env.add_overload(WALK, "walk", vec![meter(), DYN_TYPE, INT_TYPE], walk)?;
    env.add_overload(PAID, "paid", vec![meter(), DYN_TYPE], paid)
}

fn walk<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let weight = args.pop().and_then(|w| w.downcast_ref::<CelInt>().map(|w| *w.inner())).unwrap_or(1);
    let range = taken(&mut args)?;
    let count = range.as_sizer().map_or(1, |sized: &dyn Sizer| *sized.size().inner());
    let cost = count.saturating_mul(weight).saturating_add(value::size(range.as_ref()));
    meter(&args)?.spend(cost);
    Ok(range)
}

fn paid<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = taken(&mut args)?;
    meter(&args)?.spend(value::size(value.as_ref()));
    Ok(value)
}

fn taken<'b, 'v>(args: &mut Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    args.pop().ok_or(ExecutionError::MissingArgumentOrTarget)
}

fn meter<'a>(args: &'a [CowVal<'_, '_>]) -> Result<&'a Meter, ExecutionError> {
    let meter = args.first().and_then(|meter| meter.as_ref().downcast_ref::<Meter>());
    meter.ok_or(ExecutionError::MissingArgumentOrTarget)
}
