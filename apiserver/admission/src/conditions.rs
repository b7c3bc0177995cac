//! Match conditions: a policy or a webhook applies to a request only if all of its conditions are true
//! (k8s.io/apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go).

use crate::cel::{Activation, EvaluationResult, Expression};

/// The cost budget of all conditions for one request.
pub const BUDGET: i64 = 2_500_000;

/// A compiled condition, or its compilation error.
pub type MatchCondition = Result<Expression, String>;

/// Whether all conditions are true. If one is false the result is `false`, even if others fail; otherwise the
/// failures are returned as an error.
pub fn all_true(conditions: &[MatchCondition], activation: &mut Activation) -> Result<bool, String> {
    let mut errors = Vec::new();
    for condition in conditions {
        let outcome = match condition {
            Ok(expression) => activation.evaluate(expression)?,
            Err(why) => Err(format!("compilation error: {why}")),
        };
        match outcome {
            Ok(EvaluationResult::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(why) => errors.push(why),
        }
    }
    match errors.as_slice() {
        [] => Ok(true),
        [only] => Err(only.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}
