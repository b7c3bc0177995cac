//! The cost limit of an evaluation, in the units of the host (k8s.io/apiserver pkg/apis/cel/config.go).
//!
//! The interpreter has no cost tracking of its own: expressions are rewritten so that they call these functions with
//! the meter, before a loop and around values that may be large. An error would not end an evaluation, because `||`,
//! `&&` and the loops of macros continue after one. So an evaluation that exceeds its limit, or whose caller no
//! longer waits, is ended by unwinding.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cel::common::traits::Sizer;
use cel::common::types::{CelInt, DYN_TYPE, INT_TYPE};
use cel::common::value::{CowVal, Val};

use cel::{DeclarationError, Env, ExecutionError};

use super::library::opaque;
use super::{stack, value};

/// The cost limit of one expression.
pub const PER_CALL: i64 = 1_000_000;
/// The message for an expression that exceeds the budget.
pub const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Name of the variable with the meter. Expressions cannot contain this name.
pub const METER: &str = "@meter";
/// `@charge_range(meter, range, weight)`: returns the range after charging `weight` for each of its elements.
pub const CHARGE_RANGE: &str = "@charge_range";
/// `@charged(meter, value)`: returns the value after charging for its size.
pub const CHARGED: &str = "@charged";

/// The cost that may still be spent; clones share it.
#[derive(Clone, Debug, Default)]
pub struct CostMeter(Arc<AtomicI64>);

/// The panic payload that ends an evaluation over its limit.
struct CostLimitExceeded;
/// The panic payload that ends the thread of an evaluation whose caller no longer waits.
struct EvaluationCanceled;

opaque!(CostMeter, METER_TYPE, "@meter");

impl PartialEq for CostMeter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl CostMeter {
    /// Sets the remaining cost budget.
    pub fn fill(&self, amount: i64) {
        self.0.store(amount, Ordering::Relaxed);
    }

    /// Returns the cost that may still be spent.
    pub fn left(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Charges `amount`. Ends the evaluation by unwinding if the limit is exceeded or the caller no longer waits.
    pub fn spend(&self, amount: i64) {
        let left = self.left().saturating_sub(amount.max(0));
        self.0.store(left, Ordering::Relaxed);
        if left < 0 {
            resume_unwind(Box::new(CostLimitExceeded));
        }
        if stack::is_canceled() {
            resume_unwind(Box::new(EvaluationCanceled));
        }
    }
}

/// Runs an evaluation; `None` if it exceeded its limit.
pub fn with_limit<T>(evaluate: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(evaluate)) {
        Ok(value) => Some(value),
        Err(why) if why.is::<CostLimitExceeded>() => None,
        Err(why) => resume_unwind(why),
    }
}

/// Declares the functions.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let meter = || CostMeter::cel_type().to_owned();
    env.add_overload(CHARGE_RANGE, "charge_range", vec![meter(), DYN_TYPE, INT_TYPE], charge_range)?;
    env.add_overload(CHARGED, "charged", vec![meter(), DYN_TYPE], charged)
}

fn charge_range<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let weight = args.pop().and_then(|w| w.downcast_ref::<CelInt>().map(|w| *w.inner())).unwrap_or(1);
    let range = taken(&mut args)?;
    let count = range.as_sizer().map_or(1, |sized: &dyn Sizer| *sized.size().inner());
    let cost = count.saturating_mul(weight).saturating_add(value::size(range.as_ref()));
    meter(&args)?.spend(cost);
    Ok(range)
}

fn charged<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = taken(&mut args)?;
    meter(&args)?.spend(value::size(value.as_ref()));
    Ok(value)
}

fn taken<'b, 'v>(args: &mut Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    args.pop().ok_or(ExecutionError::MissingArgumentOrTarget)
}

fn meter<'a>(args: &'a [CowVal<'_, '_>]) -> Result<&'a CostMeter, ExecutionError> {
    let meter = args.first().and_then(|meter| meter.as_ref().downcast_ref::<CostMeter>());
    meter.ok_or(ExecutionError::MissingArgumentOrTarget)
}
