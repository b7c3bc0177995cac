//! A policy with its bindings, compiled.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1 as host;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::cel::{Composed, Expression};
use crate::conditions::Condition;
use crate::input::{AUTHORIZER, COMMON};
use crate::matching::Criteria;

use super::params::Params;

/// What failing to evaluate means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request is denied.
    Fail,
    /// As if there were no policy.
    Ignore,
}

impl FailurePolicy {
    /// As a configuration spells it; the host has defaulted and validated it.
    pub fn of(text: Option<&str>) -> Self {
        if text == Some("Ignore") { Self::Ignore } else { Self::Fail }
    }
}

/// A policy.
#[derive(Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Which state of it this is.
    pub version: String,
    /// Which requests it concerns.
    pub criteria: Criteria,
    /// What failing to evaluate means.
    pub failure: FailurePolicy,
    /// `apiVersion` and `kind` of its parameters.
    pub param_kind: Option<(String, String)>,
    /// Variables composed of others.
    pub composed: Arc<[Composed]>,
    /// All must hold for the rest to be looked at.
    pub conditions: Vec<Condition>,
    /// What must hold.
    pub validations: Vec<Validation>,
    /// Notes for the audit log.
    pub annotations: Vec<(String, Result<Expression, String>)>,
    /// Whether an expression uses `namespaceObject`.
    pub looks_at_namespace: bool,
}

/// One rule.
#[derive(Debug)]
pub struct Validation {
    /// Its text.
    pub source: String,
    /// What must be true.
    pub expression: Result<Expression, String>,
    /// Why it is not, in fixed words.
    pub message: Option<String>,
    /// Why it is not, in words of this request.
    pub message_expression: Option<Result<Expression, String>>,
    /// The reason of the answer.
    pub reason: Option<String>,
}

/// A binding.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Its name.
    pub name: String,
    /// What narrows the policy down.
    pub criteria: Option<Criteria>,
    /// Where its parameters are.
    pub param_ref: Option<ParamRef>,
    /// `Deny`, `Warn`, `Audit`
    pub actions: Vec<String>,
}

/// Where parameters are.
#[derive(Clone, Debug)]
pub struct ParamRef {
    /// One object.
    pub name: String,
    /// Its namespace, the request's if empty.
    pub namespace: String,
    /// All objects that it selects.
    pub selector: Option<LabelSelector>,
    /// Whether it is denied when there are none.
    pub deny_if_missing: bool,
}

/// A policy with everything that one request needs.
pub struct Hook {
    /// The policy.
    pub policy: Arc<Policy>,
    /// Its bindings, by name.
    pub bindings: Vec<Binding>,
    /// Its parameters.
    pub params: Option<Arc<Params>>,
    /// Why it cannot be evaluated at all.
    pub misconfigured: Option<String>,
}

/// Compiles a policy. What fails to compile fails each time that it would be evaluated.
pub fn compile(it: &host::ValidatingAdmissionPolicy, criteria: Criteria) -> Policy {
    let spec = it.spec.clone().unwrap_or_default();
    let mut known: Vec<&str> = COMMON.to_vec();
    known.push("variables");
    if spec.param_kind.is_some() {
        known.push("params");
    }
    let without_authorizer = known.clone();
    known.extend(AUTHORIZER);
    let compiled = |text: &str| Expression::compile(text, &known);
    let looks_at_namespace = serde_json::to_string(&spec).is_ok_and(|text| text.contains("namespaceObject"));
    let variables = spec.variables.iter().flatten();
    let composed: Vec<Composed> = variables.map(|it| (it.name.clone(), compiled(&it.expression))).collect();
    let validations = spec.validations.iter().flatten().map(|it| Validation {
        source: it.expression.clone(),
        expression: compiled(&it.expression),
        message: it.message.clone(),
        message_expression: it
            .message_expression
            .as_deref()
            .filter(|text| !text.is_empty())
            .map(|text| Expression::compile(text, &without_authorizer)),
        reason: it.reason.clone(),
    });
    let annotations = spec.audit_annotations.iter().flatten();
    Policy {
        name: it.metadata.name.clone().unwrap_or_default(),
        version: it.metadata.resource_version.clone().unwrap_or_default(),
        criteria,
        failure: FailurePolicy::of(spec.failure_policy.as_deref()),
        param_kind: spec.param_kind.as_ref().map(|kind| {
            (kind.api_version.clone().unwrap_or_default(), kind.kind.clone().unwrap_or_default())
        }),
        composed: composed.into(),
        conditions: spec.match_conditions.iter().flatten().map(|it| compiled(&it.expression)).collect(),
        validations: validations.collect(),
        annotations: annotations.map(|it| (it.key.clone(), compiled(&it.value_expression))).collect(),
        looks_at_namespace,
    }
}

/// Reads a binding.
pub fn binding(it: &host::ValidatingAdmissionPolicyBinding) -> Binding {
    let spec = it.spec.clone().unwrap_or_default();
    Binding {
        name: it.metadata.name.clone().unwrap_or_default(),
        criteria: spec.match_resources.as_ref().map(Criteria::of_policy),
        param_ref: spec.param_ref.map(|it| ParamRef {
            name: it.name.unwrap_or_default(),
            namespace: it.namespace.unwrap_or_default(),
            selector: it.selector,
            deny_if_missing: it.parameter_not_found_action.as_deref() == Some("Deny"),
        }),
        actions: spec.validation_actions.unwrap_or_default(),
    }
}
