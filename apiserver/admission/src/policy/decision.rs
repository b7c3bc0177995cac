//! Combines the results of all policies for a request (k8s.io/apiserver
//! pkg/admission/plugin/policy/validating/dispatcher.go).

use std::collections::BTreeMap;

use drydock_machinery::error::StatusCause;
use drydock_machinery::{ApiError, go_json};
use drydock_server::admission::AdmissionAttributes;
use serde::Serialize;

use super::compiled::{Binding, CompiledPolicy, FailurePolicy};
use super::evaluate::{Annotation, Objection, PolicyVerdict};
use crate::metrics::Metrics;

/// Longest value of an audit annotation, in bytes.
const LONGEST_ANNOTATION: usize = 10 * 1024;
const FAILURE_KEY: &str = "validation.policy.admission.k8s.io/validation_failure";

/// The audit annotation for a failed validation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ValidationFailure<'a> {
    message: &'a str,
    policy: &'a str,
    binding: &'a str,
    expression_index: usize,
    validation_actions: &'a [String],
}

/// The denial that is returned: the first one.
pub struct PolicyDenial {
    message: String,
    reason: String,
}

/// Collects the results of policies.
pub struct PolicyResults<'a> {
    request: &'a AdmissionAttributes<'a>,
    metrics: &'a Metrics,
    denied: Option<PolicyDenial>,
}

impl<'a> PolicyResults<'a> {
    /// Creates the report about one request.
    pub fn new(request: &'a AdmissionAttributes<'a>, metrics: &'a Metrics) -> Self {
        Self { request, metrics, denied: None }
    }

    /// Adds a policy, or a binding of it, that cannot be evaluated.
    pub fn misconfigured(&mut self, policy: &CompiledPolicy, binding: Option<&Binding>, why: &str) {
        if policy.failure == FailurePolicy::Ignore {
            tracing::debug!(policy = policy.name, why, "a policy is misconfigured, which it says to ignore");
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        let message = format!("failed to configure {what}: {why}");
        self.deny(policy, binding, Objection { message, reason: String::new() });
    }

    /// Adds the verdict of a policy with one set of parameters.
    pub fn verdict(
        &mut self,
        policy: &CompiledPolicy,
        binding: &Binding,
        verdict: PolicyVerdict,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) {
        for (index, objection) in verdict.objections.into_iter().enumerate() {
            let Some(objection) = objection else { continue };
            let is_error = objection.reason.is_empty();
            for action in &binding.actions {
                if let Some(action) =
                    ["deny", "warn", "audit"].into_iter().find(|it| it.eq_ignore_ascii_case(action))
                {
                    self.metrics.checked(&policy.name, &binding.name, &objection.message, is_error, action);
                }
                match action.as_str() {
                    "Deny" => self.deny(policy, Some(binding), objection.clone()),
                    "Warn" => self.warn(policy, binding, &objection),
                    "Audit" => self.annotate_failure(policy, binding, index, &objection),
                    _ => {}
                }
            }
        }
        for annotation in verdict.annotations {
            match annotation {
                Annotation::Publish(key, value) => {
                    let value = cut(&value).to_owned();
                    let values = annotations.entry(key).or_default();
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Annotation::Failed(message) => {
                    self.deny(policy, Some(binding), Objection { message, reason: String::new() });
                }
            }
        }
    }

    /// Adds the audit annotations of a policy, for all its bindings.
    pub fn annotate(&self, policy: &CompiledPolicy, annotations: BTreeMap<String, Vec<String>>) {
        for (key, values) in annotations {
            self.request.audit.annotate(&format!("{}/{key}", policy.name), &values.join(", "));
        }
    }

    /// Returns the first denial as an error.
    pub fn outcome(self) -> Result<(), PolicyDenial> {
        self.denied.map_or(Ok(()), Err)
    }

    fn deny(&mut self, policy: &CompiledPolicy, binding: Option<&Binding>, objection: Objection) {
        let with = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        let message = format!(
            "ValidatingAdmissionPolicy '{}'{with} denied request: {}",
            policy.name, objection.message
        );
        self.denied.get_or_insert(PolicyDenial { message, reason: objection.reason });
    }

    fn warn(&self, policy: &CompiledPolicy, binding: &Binding, objection: &Objection) {
        self.request.warnings.add(format!(
            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
            policy.name, binding.name, objection.message
        ));
    }

    fn annotate_failure(
        &self,
        policy: &CompiledPolicy,
        binding: &Binding,
        index: usize,
        objection: &Objection,
    ) {
        let failures = [ValidationFailure {
            message: &objection.message,
            policy: &policy.name,
            binding: &binding.name,
            expression_index: index,
            validation_actions: &binding.actions,
        }];
        self.request.audit.annotate(FAILURE_KEY, &go_json::to_html_escaped(&failures));
    }
}

impl PolicyDenial {
    /// Returns the error for the client.
    pub fn status(self, request: &AdmissionAttributes<'_>) -> ApiError {
        let mut error = request.forbidden(&self.message);
        let (reason, code) = match self.reason.as_str() {
            "" => ("Invalid", 422),
            "Forbidden" => ("Forbidden", 403),
            "Unauthorized" => ("Unauthorized", 401),
            "RequestEntityTooLarge" => ("RequestEntityTooLarge", 413),
            other => (other, 422),
        };
        error.status.reason = reason.to_owned();
        error.status.code = code;
        let cause = StatusCause { message: self.message, ..StatusCause::default() };
        error.status.details.get_or_insert_default().causes.push(cause);
        error
    }
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_ANNOTATION);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
