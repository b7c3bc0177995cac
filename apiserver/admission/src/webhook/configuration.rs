//! A webhook of the host's configurations, compiled.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1 as host;

use super::endpoint::Endpoint;
use super::review::ReviewVersion;
use crate::cel::Expression;
use crate::conditions::Condition;
use crate::input::{AUTHORIZER, COMMON};
use crate::matching::{Criteria, Served};
use crate::policy::FailurePolicy;

/// A webhook.
pub struct Hook {
    /// Its place among all webhooks of the host, which notes for the audit log name.
    pub index: usize,
    /// The configuration that it stands in.
    pub configuration: String,
    /// Its own name.
    pub name: String,
    /// Which requests it concerns.
    pub criteria: Criteria,
    /// All must hold for it to be called.
    pub conditions: Vec<Condition>,
    /// What failing to call it means.
    pub failure: FailurePolicy,
    /// What it says of its side effects.
    pub side_effects: Option<String>,
    /// Longest time of a call.
    pub timeout: Option<Duration>,
    /// Whether it is asked again when a later webhook changed the object.
    pub reinvoked: bool,
    /// The form in which it is asked; `None` if we know none of those that it reads.
    pub version: Option<ReviewVersion>,
    /// Where it is.
    pub endpoint: Endpoint,
}

/// What mutating and validating webhooks have in common.
struct Parts<'a> {
    configuration: &'a str,
    name: &'a str,
    criteria: Criteria,
    conditions: Option<&'a [host::MatchCondition]>,
    failure: Option<&'a str>,
    side_effects: &'a str,
    timeout: Option<i32>,
    reinvocation: Option<&'a str>,
    versions: &'a [String],
    client: &'a host::WebhookClientConfig,
}

/// The webhooks of mutating configurations that may concern a kind that is served, in the order in which they are asked.
pub fn mutating(all: &[&host::MutatingWebhookConfiguration], served: &Served) -> Vec<Hook> {
    let hooks = all.iter().flat_map(|configuration| {
        let name = configuration.metadata.name.as_deref().unwrap_or_default();
        configuration.webhooks.iter().flatten().map(move |it| Parts {
            configuration: name,
            name: &it.name,
            criteria: Criteria::of_webhook(
                it.rules.as_deref(),
                it.namespace_selector.as_ref(),
                it.object_selector.as_ref(),
            ),
            conditions: it.match_conditions.as_deref(),
            failure: it.failure_policy.as_deref(),
            side_effects: &it.side_effects,
            timeout: it.timeout_seconds,
            reinvocation: it.reinvocation_policy.as_deref(),
            versions: &it.admission_review_versions,
            client: &it.client_config,
        })
    });
    compiled(hooks, served)
}

/// The same of validating configurations.
pub fn validating(all: &[&host::ValidatingWebhookConfiguration], served: &Served) -> Vec<Hook> {
    let hooks = all.iter().flat_map(|configuration| {
        let name = configuration.metadata.name.as_deref().unwrap_or_default();
        configuration.webhooks.iter().flatten().map(move |it| Parts {
            configuration: name,
            name: &it.name,
            criteria: Criteria::of_webhook(
                it.rules.as_deref(),
                it.namespace_selector.as_ref(),
                it.object_selector.as_ref(),
            ),
            conditions: it.match_conditions.as_deref(),
            failure: it.failure_policy.as_deref(),
            side_effects: &it.side_effects,
            timeout: it.timeout_seconds,
            reinvocation: None,
            versions: &it.admission_review_versions,
            client: &it.client_config,
        })
    });
    compiled(hooks, served)
}

fn compiled<'a>(hooks: impl Iterator<Item = Parts<'a>>, served: &Served) -> Vec<Hook> {
    let ours = hooks.enumerate().filter(|(_, parts)| parts.criteria.may_concern(served));
    ours.map(|(index, parts)| hook(index, parts)).collect()
}

fn hook(index: usize, parts: Parts<'_>) -> Hook {
    let known: Vec<&str> = COMMON.into_iter().chain(AUTHORIZER).collect();
    let conditions = parts.conditions.unwrap_or_default().iter();
    Hook {
        index,
        configuration: parts.configuration.to_owned(),
        name: parts.name.to_owned(),
        criteria: parts.criteria,
        conditions: conditions.map(|it| Expression::compile(&it.expression, &known)).collect(),
        failure: FailurePolicy::of(parts.failure),
        side_effects: Some(parts.side_effects).filter(|text| !text.is_empty()).map(str::to_owned),
        timeout: parts.timeout.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs),
        reinvoked: parts.reinvocation == Some("IfNeeded"),
        version: parts.versions.iter().find_map(|version| ReviewVersion::of(version)),
        endpoint: Endpoint::of(parts.client),
    }
}
