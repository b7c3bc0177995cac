//! Quantities (k8s.io/apiserver pkg/cel/library/quantity.go, apimachinery pkg/api/resource), exact to a billionth;
//! smaller parts are rounded up, as on the host. Those beyond about 1.7e29, which the host accepts, are refused.

use std::cmp::Ordering;

use cel::common::types::{CelBool, CelDouble, CelInt, CelString, INT_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::{argument, opaque};

const NANO: i128 = 1_000_000_000;
const FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// The largest amount with a binary suffix, to which larger ones are reduced (apimachinery's maxAllowed).
const MOST_BINARY: i128 = i64::MAX as i128 * NANO;
/// The message for a sum that this server cannot hold.
const OUT_OF_RANGE: &str = "this server computes with no quantity beyond 1.7e29";

/// An amount in billionths.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Quantity(i128);

opaque!(Quantity, QUANTITY_TYPE, "kubernetes.Quantity");

/// Declares the functions of this library.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let quantity = || Quantity::cel_type().to_owned();
    env.add_overload("quantity", "string_to_quantity", vec![STRING_TYPE], |args| {
        let parsed = parse(argument::<CelString>(&args, 0)?.inner());
        parsed.map(CowVal::owned).map_err(|why| ExecutionError::function_error("quantity", why))
    })?;
    env.add_overload("isQuantity", "is_quantity_string", vec![STRING_TYPE], |args| {
        truth(parse(argument::<CelString>(&args, 0)?.inner()).is_ok())
    })?;
    env.add_overload("sign", "quantity_sign", vec![quantity()], |args| {
        number(argument::<Quantity>(&args, 0)?.0.signum() as i64)
    })?;
    for (name, wanted) in [("isGreaterThan", Ordering::Greater), ("isLessThan", Ordering::Less)] {
        let compare: cel::common::functions::Function = match wanted {
            Ordering::Greater => |args| truth(compare(&args)? == Ordering::Greater),
            _ => |args| truth(compare(&args)? == Ordering::Less),
        };
        env.add_member_overload(name, &format!("quantity_{name}"), quantity(), vec![quantity()], compare)?;
    }
    env.add_member_overload("compareTo", "quantity_compare_to", quantity(), vec![quantity()], |args| {
        number(compare(&args)? as i64)
    })?;
    env.add_member_overload("asApproximateFloat", "quantity_get_float", quantity(), vec![], |args| {
        Ok(CowVal::owned(CelDouble::from(argument::<Quantity>(&args, 0)?.0 as f64 / NANO as f64)))
    })?;
    env.add_member_overload("asInteger", "quantity_get_int", quantity(), vec![], |args| {
        let whole = argument::<Quantity>(&args, 0)?.whole();
        number(
            whole.ok_or_else(|| {
                ExecutionError::function_error("asInteger", "cannot convert value to integer")
            })?,
        )
    })?;
    env.add_member_overload("isInteger", "quantity_is_integer", quantity(), vec![], |args| {
        truth(argument::<Quantity>(&args, 0)?.whole().is_some())
    })?;
    env.add_member_overload("add", "quantity_add", quantity(), vec![quantity()], |args| {
        sum(&args, argument::<Quantity>(&args, 1)?.0, i128::checked_add)
    })?;
    env.add_member_overload("add", "quantity_add_int", quantity(), vec![INT_TYPE], |args| {
        sum(&args, i128::from(*argument::<CelInt>(&args, 1)?.inner()) * NANO, i128::checked_add)
    })?;
    env.add_member_overload("sub", "quantity_sub", quantity(), vec![quantity()], |args| {
        sum(&args, argument::<Quantity>(&args, 1)?.0, i128::checked_sub)
    })?;
    env.add_member_overload("sub", "quantity_sub_int", quantity(), vec![INT_TYPE], |args| {
        sum(&args, i128::from(*argument::<CelInt>(&args, 1)?.inner()) * NANO, i128::checked_sub)
    })
}

impl Quantity {
    fn whole(self) -> Option<i64> {
        (self.0 % NANO == 0).then(|| i64::try_from(self.0 / NANO).ok()).flatten()
    }
}

fn parse(text: &str) -> Result<Quantity, String> {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(FORMAT.to_owned());
    }
    let (base, exponent) = scale(suffix).ok_or_else(|| "unable to parse quantity's suffix".to_owned())?;
    let nano = amount(whole, fraction, base, exponent).ok_or_else(|| FORMAT.to_owned())?;
    let nano = if base == 10 { nano } else { nano.min(MOST_BINARY) };
    Ok(Quantity(if negative { -nano } else { nano }))
}

/// Returns the factor of a suffix, as base and exponent.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let decimal = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("", 0),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some((_, exponent)) = decimal.iter().find(|(name, _)| *name == suffix) {
        return Some((10, *exponent));
    }
    if let Some(power) = binary.iter().position(|name| *name == suffix) {
        return Some((1024, i32::try_from(power).ok()? + 1));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
    Some((10, exponent))
}

/// Returns the amount in billionths, rounded up; `None` on overflow.
fn amount(whole: &str, fraction: &str, base: i128, exponent: i32) -> Option<i128> {
    // 26 digits are more than the host keeps.
    let digits: String = whole.chars().chain(fraction.chars()).collect();
    let digits = digits.trim_start_matches('0');
    if digits.len() > 26 {
        return None;
    }
    if digits.is_empty() {
        return Some(0);
    }
    let mantissa = digits.parse::<i128>().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    let (mut value, decimals) = match base {
        // An exponent is as large as its author likes: at the ends of its range the amount is out of ours.
        10 => (mantissa, exponent.saturating_sub(places).saturating_add(9)),
        _ => (mantissa.checked_mul(base.checked_pow(u32::try_from(exponent).ok()?)?)?, 9 - places),
    };
    if decimals >= 0 {
        return value.checked_mul(10_i128.checked_pow(u32::try_from(decimals).ok()?)?);
    }
    let Some(divisor) = 10_i128.checked_pow(decimals.unsigned_abs()) else { return Some(1) };
    let rest = value % divisor;
    value /= divisor;
    Some(if rest > 0 { value + 1 } else { value })
}

fn compare(args: &[CowVal<'_, '_>]) -> Result<Ordering, ExecutionError> {
    Ok(argument::<Quantity>(args, 0)?.0.cmp(&argument::<Quantity>(args, 1)?.0))
}

fn sum<'b, 'v>(
    args: &[CowVal<'_, '_>],
    other: i128,
    operation: fn(i128, i128) -> Option<i128>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let total = operation(argument::<Quantity>(args, 0)?.0, other).map(Quantity);
    total.map(CowVal::owned).ok_or_else(|| ExecutionError::function_error("quantity", OUT_OF_RANGE))
}

fn truth<'b, 'v>(it: bool) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::owned(CelBool::from(it)))
}

fn number<'b, 'v>(it: i64) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::owned(CelInt::from(it)))
}
