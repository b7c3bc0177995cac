//! What an evaluation may spend, in the units of the host (k8s.io/apiserver pkg/apis/cel/config.go).
//!
//! The interpreter has no meter of its own: expressions are rewritten so that they call these functions with the
//! meter, before a loop and around whatever may be large.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use cel::common::traits::Sizer;
use cel::common::types::{CelInt, DYN_TYPE, INT_TYPE};
use cel::common::value::{CowVal, Val};

use cel::{DeclarationError, Env, ExecutionError};

use super::library::opaque;
use super::value;

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
/// `@priced(meter, value, price)`: the value, paid for with the price of what is done with it.
pub const PRICED: &str = "@priced";

/// What is left.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Purse>);

#[derive(Debug, Default)]
struct Purse {
    left: AtomicI64,
    overdrawn: AtomicBool,
}

opaque!(Meter, METER_TYPE, "@meter");

impl PartialEq for Meter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Meter {
    /// Lets so much be spent, whatever was left.
    pub fn fill(&self, amount: i64) {
        self.0.left.store(amount, Ordering::Relaxed);
        self.0.overdrawn.store(false, Ordering::Relaxed);
    }

    /// What is left; `None` if more was asked for than there was.
    pub fn left(&self) -> Option<i64> {
        (!self.0.overdrawn.load(Ordering::Relaxed)).then(|| self.0.left.load(Ordering::Relaxed))
    }

    /// Pays; the error ends what cannot be paid for.
    pub fn spend(&self, amount: i64) -> Result<(), ExecutionError> {
        let left = self.0.left.load(Ordering::Relaxed).saturating_sub(amount);
        self.0.left.store(left, Ordering::Relaxed);
        if left >= 0 && !self.0.overdrawn.load(Ordering::Relaxed) {
            return Ok(());
        }
        // An error alone could be outweighed by the other side of an `||`.
        self.0.overdrawn.store(true, Ordering::Relaxed);
        Err(ExecutionError::InternalError(OUT_OF_BUDGET.to_owned()))
    }
}

/// Declares the functions.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let meter = || Meter::cel_type().to_owned();
    env.add_overload(WALK, "walk", vec![meter(), DYN_TYPE, INT_TYPE], walk)?;
    env.add_overload(PAID, "paid", vec![meter(), DYN_TYPE], paid)?;
    env.add_overload(PRICED, "priced", vec![meter(), DYN_TYPE, INT_TYPE], priced)
}

fn walk<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let weight = args.pop().and_then(|w| w.downcast_ref::<CelInt>().map(|w| *w.inner())).unwrap_or(1);
    let range = taken(&mut args)?;
    let count = range.as_sizer().map_or(1, |sized: &dyn Sizer| *sized.size().inner());
    let cost = count.saturating_mul(weight).saturating_add(value::size(range.as_ref()));
    meter(&args)?.spend(cost)?;
    Ok(range)
}

fn paid<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = taken(&mut args)?;
    meter(&args)?.spend(value::size(value.as_ref()))?;
    Ok(value)
}

fn priced<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let price = args.pop().and_then(|price| price.downcast_ref::<CelInt>().map(|price| *price.inner()));
    let value = taken(&mut args)?;
    meter(&args)?.spend(price.unwrap_or(PER_CALL))?;
    Ok(value)
}

fn taken<'b, 'v>(args: &mut Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    args.pop().ok_or(ExecutionError::MissingArgumentOrTarget)
}

fn meter<'a>(args: &'a [CowVal<'_, '_>]) -> Result<&'a Meter, ExecutionError> {
    let meter = args.first().and_then(|meter| meter.as_ref().downcast_ref::<Meter>());
    meter.ok_or(ExecutionError::MissingArgumentOrTarget)
}
