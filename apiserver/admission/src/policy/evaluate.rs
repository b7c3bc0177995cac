//! Evaluates a policy for a request with one set of parameters (k8s.io/apiserver
//! pkg/admission/plugin/policy/validating/validator.go).

use serde_json::Value;

use super::compiled::{CompiledPolicy, FailurePolicy, Validation};
use crate::cel::{Activation, EvaluationResult, Expression};
use crate::input::Input;
use crate::matching;

/// The cost budget of all validations of one request, and separately of all audit annotations.
const BUDGET: i64 = 10_000_000;
/// Longest message from an expression, in bytes.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// The result of a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyVerdict {
    /// For each validation in order: `None`, or the objection to the request.
    pub objections: Vec<Option<Objection>>,
    /// The audit annotations.
    pub annotations: Vec<Annotation>,
}

/// An objection to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Objection {
    /// The message.
    pub message: String,
    /// The reason of the response; empty if the validation could not be evaluated.
    pub reason: String,
}

/// An audit annotation.
#[derive(Clone, Debug, PartialEq)]
pub enum Annotation {
    /// A key and its value.
    Publish(String, String),
    /// The value could not be computed, which denies the request.
    Failed(String),
}

/// Evaluates a policy.
pub fn evaluate(
    policy: &CompiledPolicy,
    input: &Input,
    namespace: &Value,
    params: Option<&Value>,
) -> PolicyVerdict {
    match concerned(policy, input, params) {
        Ok(false) => return PolicyVerdict::default(),
        Ok(true) => {}
        Err(_) if policy.failure == FailurePolicy::Ignore => return PolicyVerdict::default(),
        Err(why) => return failed(policy, why),
    }
    let validated = validated(policy, input, namespace, params);
    let objections = match validated {
        Ok(objections) => objections,
        Err(why) => return failed(policy, why),
    };
    match annotations(policy, input, namespace, params) {
        Ok(annotations) => PolicyVerdict { objections, annotations },
        Err(why) => failed(policy, why),
    }
}

/// The match conditions have no access to the namespace.
fn concerned(policy: &CompiledPolicy, input: &Input, params: Option<&Value>) -> Result<bool, String> {
    if policy.conditions.is_empty() {
        return Ok(true);
    }
    let composed = policy.composed.clone();
    let mut activation = input.activation(&Value::Null, params, composed, matching::CONDITIONS_BUDGET)?;
    matching::all_conditions_true(&policy.conditions, &mut activation)
}

/// The verdict of a policy that could not be evaluated at all.
fn failed(policy: &CompiledPolicy, why: String) -> PolicyVerdict {
    PolicyVerdict { objections: vec![policy.failed(why)], annotations: Vec::new() }
}

impl CompiledPolicy {
    fn failed(&self, message: String) -> Option<Objection> {
        match self.failure {
            FailurePolicy::Fail => Some(Objection { message, reason: String::new() }),
            FailurePolicy::Ignore => {
                tracing::debug!(
                    policy = self.name,
                    message,
                    "a policy could not be evaluated, which it says to ignore"
                );
                None
            }
        }
    }
}

fn validated(
    policy: &CompiledPolicy,
    input: &Input,
    namespace: &Value,
    params: Option<&Value>,
) -> Result<Vec<Option<Objection>>, String> {
    let mut activation = input.activation(namespace, params, policy.composed.clone(), BUDGET)?;
    let mut answers = Vec::with_capacity(policy.validations.len());
    for validation in &policy.validations {
        answers.push(ask(&validation.expression, &mut activation)?);
    }
    let mut objections = Vec::with_capacity(answers.len());
    for (validation, answer) in policy.validations.iter().zip(answers) {
        objections.push(match answer {
            Ok(EvaluationResult::Bool(true)) => None,
            Ok(_) => match message(validation, &mut activation) {
                Ok(message) => {
                    let reason = validation.reason.clone().unwrap_or_else(|| "Invalid".to_owned());
                    Some(Objection { message, reason })
                }
                Err(why) => policy.failed(format!("failed messageExpression: {why}")),
            },
            Err(why) => policy.failed(why),
        });
    }
    Ok(objections)
}

/// Evaluates an expression; fails with the compilation error of one that did not compile.
fn ask(
    expression: &Result<Expression, String>,
    activation: &mut Activation,
) -> Result<Result<EvaluationResult, String>, String> {
    match expression {
        Ok(expression) => activation.evaluate(expression),
        Err(why) => Ok(Err(format!("compilation error: {why}"))),
    }
}

/// Returns the message: from the messageExpression, or the fixed one, or one with the validation's text.
fn message(validation: &Validation, activation: &mut Activation) -> Result<String, String> {
    if let Some(expression) = &validation.message_expression {
        match ask(expression, activation)? {
            Ok(EvaluationResult::Text(text)) => {
                let text = text.trim();
                if !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n') {
                    return Ok(text.to_owned());
                }
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(error, "a policy's messageExpression failed"),
        }
    }
    let fixed = validation.message.as_deref().map(str::trim).filter(|text| !text.is_empty());
    Ok(fixed.map_or_else(|| format!("failed expression: {}", validation.source.trim()), str::to_owned))
}

fn annotations(
    policy: &CompiledPolicy,
    input: &Input,
    namespace: &Value,
    params: Option<&Value>,
) -> Result<Vec<Annotation>, String> {
    if policy.annotations.is_empty() {
        return Ok(Vec::new());
    }
    let mut activation = input.activation(namespace, params, policy.composed.clone(), BUDGET)?;
    let mut annotations = Vec::new();
    for (key, expression) in &policy.annotations {
        match ask(expression, &mut activation)? {
            Ok(EvaluationResult::Text(text)) if text.trim().is_empty() => {}
            Ok(EvaluationResult::Text(text)) => {
                annotations.push(Annotation::Publish(key.clone(), text.trim().to_owned()))
            }
            Ok(EvaluationResult::Null) => {}
            Ok(other) => {
                let type_ = match other {
                    EvaluationResult::Bool(_) => "bool".to_owned(),
                    EvaluationResult::Other(name) => name,
                    EvaluationResult::Text(_) | EvaluationResult::Null => continue,
                };
                let source = expression.as_ref().map(Expression::source).unwrap_or_default();
                annotations.push(Annotation::Failed(format!(
                    "valueExpression '{source}' resulted in unsupported return type: {type_}. Return type must be either string or null."
                )));
            }
            Err(_) if policy.failure == FailurePolicy::Ignore => {}
            Err(why) => annotations.push(Annotation::Failed(why)),
        }
    }
    Ok(annotations)
}
