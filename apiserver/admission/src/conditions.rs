//! Match conditions: all must hold for a policy or a webhook to concern a request
//! (k8s.io/apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go).

use crate::cel::{Activation, Answer, Expression};

/// What all conditions of one request may spend.
pub const BUDGET: i64 = 2_500_000;

/// One condition, and what compiling it came to.
pub type Condition = Result<Expression, String>;

/// Whether they hold. One that is false decides, whatever else failed; otherwise the failures are the error.
pub fn hold(conditions: &[Condition], activation: &mut Activation) -> Result<bool, String> {
    let mut errors = Vec::new();
    for condition in conditions {
        let outcome = match condition {
            Ok(expression) => activation.evaluate(expression)?,
            Err(why) => Err(format!("compilation error: {why}")),
        };
        match outcome {
            Ok(Answer::Bool(false)) => return Ok(false),
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
