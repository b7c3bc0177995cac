//! A compiled policy with its bindings.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1 as host;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::cel::{ComposedVariable, Expression};
use crate::input::{AUTHORIZER, COMMON};
use crate::matching::{Criteria, MatchCondition};

use super::param_reflector::ParamReflector;
use super::params::ParamKind;

/// The effect of an evaluation that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request is denied.
    Fail,
    /// The policy is ignored.
    Ignore,
}

impl FailurePolicy {
    /// Parses the value in a configuration, which the host has defaulted and validated.
    pub fn of(text: Option<&str>) -> Self {
        if text == Some("Ignore") { Self::Ignore } else { Self::Fail }
    }
}

/// A compiled policy.
#[derive(Debug)]
pub struct CompiledPolicy {
    /// Its name.
    pub name: String,
    /// Its resourceVersion.
    pub version: String,
    /// The requests that it applies to.
    pub criteria: Criteria,
    /// The effect of an evaluation that fails.
    pub failure: FailurePolicy,
    /// `apiVersion` and `kind` of its parameters.
    pub param_kind: Option<(String, String)>,
    /// Composed variables.
    pub composed: Arc<[ComposedVariable]>,
    /// Conditions, all of which must be true for the policy to apply.
    pub conditions: Vec<MatchCondition>,
    /// The validations.
    pub validations: Vec<Validation>,
    /// The audit annotations.
    pub annotations: Vec<(String, Result<Expression, String>)>,
    /// Whether an expression uses `namespaceObject`.
    pub looks_at_namespace: bool,
}

/// One validation.
#[derive(Debug)]
pub struct Validation {
    /// The text of its expression.
    pub source: String,
    /// The expression that must be true.
    pub expression: Result<Expression, String>,
    /// The fixed message for a failure.
    pub message: Option<String>,
    /// The expression that computes the message for a failure.
    pub message_expression: Option<Result<Expression, String>>,
    /// The reason of the response.
    pub reason: Option<String>,
}

/// A binding of a policy.
pub struct Binding {
    /// Its name.
    pub name: String,
    /// Criteria that restrict the policy further.
    pub criteria: Option<Criteria>,
    /// The reference to its parameters.
    pub param_ref: Option<ParamRef>,
    /// The parameters, or what is wrong with the reference. `None` if there is no reference, or no such kind.
    pub params: Option<Result<Arc<ParamReflector>, String>>,
    /// `Deny`, `Warn`, `Audit`
    pub actions: Vec<String>,
}

/// A reference to parameters.
#[derive(Clone, Debug)]
pub struct ParamRef {
    /// The name of one object.
    pub name: String,
    /// The namespace; that of the request if empty.
    pub namespace: String,
    /// Selects several objects.
    pub selector: Option<LabelSelector>,
    /// Whether a request is denied if there are no parameters.
    pub deny_if_missing: bool,
}

/// A policy with everything that is needed to evaluate a request.
pub struct PolicyHook {
    /// The policy.
    pub policy: Arc<CompiledPolicy>,
    /// Its bindings, by name.
    pub bindings: Vec<Binding>,
    /// The kind of its parameters.
    pub param_kind: Option<ParamKind>,
    /// Why it cannot be evaluated at all.
    pub misconfigured: Option<String>,
}

/// Compiles a policy. An expression that does not compile fails at each evaluation.
pub fn compile(it: &host::ValidatingAdmissionPolicy, criteria: Criteria) -> CompiledPolicy {
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
    let composed: Vec<ComposedVariable> =
        variables.map(|it| (it.name.clone(), compiled(&it.expression))).collect();
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
    CompiledPolicy {
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

/// Converts a binding.
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
        params: None,
        actions: spec.validation_actions.unwrap_or_default(),
    }
}
