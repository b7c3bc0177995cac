//! A compiled webhook of the host's configurations.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1 as host;

use super::endpoint::Endpoint;
use super::review::ReviewVersion;
use crate::cel::Expression;
use crate::input::{AUTHORIZER, COMMON};
use crate::matching::{Criteria, MatchCondition, ServedKinds};
use crate::policy::FailurePolicy;

/// A webhook.
pub struct Webhook {
    /// Its index among all webhooks of the host, which audit annotations contain.
    pub index: usize,
    /// The name of its configuration.
    pub configuration: String,
    /// Its own name.
    pub name: String,
    /// The requests that it applies to.
    pub criteria: Criteria,
    /// Conditions, all of which must be true for it to be called.
    pub conditions: Vec<MatchCondition>,
    /// The effect of a call that fails.
    pub failure: FailurePolicy,
    /// The side effects that it declares.
    pub side_effects: Option<String>,
    /// The timeout of a call.
    pub timeout: Option<Duration>,
    /// Whether it is called again if a later webhook changed the object.
    pub reinvoked: bool,
    /// The AdmissionReview version for its calls; `None` if it accepts no version that we support.
    pub version: Option<ReviewVersion>,
    /// Its address.
    pub endpoint: Endpoint,
}

/// Compiles the webhooks of mutating configurations that can apply to our kinds, in the order in which they are
/// called.
pub fn mutating(all: &[&host::MutatingWebhookConfiguration], served: &ServedKinds) -> Vec<Webhook> {
    let hooks = all.iter().flat_map(|configuration| {
        let webhooks = configuration.webhooks.iter().flatten().cloned();
        webhooks.map(|webhook| (configuration.metadata.name.as_deref(), webhook))
    });
    compiled(hooks, served)
}

/// As [`mutating`], for validating configurations.
pub fn validating(all: &[&host::ValidatingWebhookConfiguration], served: &ServedKinds) -> Vec<Webhook> {
    let hooks = all.iter().flat_map(|configuration| {
        let webhooks = configuration.webhooks.iter().flatten().cloned();
        webhooks.map(|webhook| (configuration.metadata.name.as_deref(), as_mutating(webhook)))
    });
    compiled(hooks, served)
}

/// Converts a validating webhook; a mutating one only adds the reinvocation policy.
fn as_mutating(webhook: host::ValidatingWebhook) -> host::MutatingWebhook {
    host::MutatingWebhook {
        admission_review_versions: webhook.admission_review_versions,
        client_config: webhook.client_config,
        failure_policy: webhook.failure_policy,
        match_conditions: webhook.match_conditions,
        match_policy: webhook.match_policy,
        name: webhook.name,
        namespace_selector: webhook.namespace_selector,
        object_selector: webhook.object_selector,
        reinvocation_policy: None,
        rules: webhook.rules,
        side_effects: webhook.side_effects,
        timeout_seconds: webhook.timeout_seconds,
    }
}

fn compiled<'a>(
    hooks: impl Iterator<Item = (Option<&'a str>, host::MutatingWebhook)>,
    served: &ServedKinds,
) -> Vec<Webhook> {
    let ours = hooks.enumerate().filter_map(|(index, (of, webhook))| {
        let criteria = criteria(&webhook);
        criteria.can_apply(served).then(|| hook(index, of.unwrap_or_default(), criteria, webhook))
    });
    ours.collect()
}

fn criteria(webhook: &host::MutatingWebhook) -> Criteria {
    let rules = webhook.rules.as_deref();
    let (namespaces, objects) = (webhook.namespace_selector.as_ref(), webhook.object_selector.as_ref());
    Criteria::of_webhook(rules, namespaces, objects, webhook.match_policy.as_deref())
}

fn hook(index: usize, configuration: &str, criteria: Criteria, webhook: host::MutatingWebhook) -> Webhook {
    let known: Vec<&str> = COMMON.into_iter().chain(AUTHORIZER).collect();
    let conditions = webhook.match_conditions.iter().flatten();
    Webhook {
        index,
        configuration: configuration.to_owned(),
        criteria,
        conditions: conditions.map(|it| Expression::compile(&it.expression, &known)).collect(),
        failure: FailurePolicy::of(webhook.failure_policy.as_deref()),
        timeout: webhook.timeout_seconds.and_then(|s| u64::try_from(s).ok()).map(Duration::from_secs),
        reinvoked: webhook.reinvocation_policy.as_deref() == Some("IfNeeded"),
        version: webhook.admission_review_versions.iter().find_map(|version| ReviewVersion::of(version)),
        endpoint: Endpoint::of(&webhook.client_config),
        side_effects: Some(webhook.side_effects).filter(|text| !text.is_empty()),
        name: webhook.name,
    }
}
