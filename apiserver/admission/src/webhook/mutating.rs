//! Mutating webhooks, called in order (k8s.io/apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use drydock_machinery::{ApiError, Object, go_json};
use drydock_server::admission::{Admission, AdmissionAttributes, Phase};
use drydock_server::audit::Level;
use drydock_serving::clock;
use serde::Serialize;
use serde_json::Value;

use super::configuration::Webhook;
use super::error::WebhookError;
use super::patch::patched;
use super::{Webhooks, source};
use crate::AdmissionHost;
use crate::policy::FailurePolicy;
use crate::reflectors::ReflectorReadiness;

const MUTATION: &str = "mutation.webhook.admission.k8s.io/";
const PATCH: &str = "patch.webhook.admission.k8s.io/";

/// The admission plugin for the host's mutating webhooks.
pub struct MutatingWebhooks(Webhooks);

impl MutatingWebhooks {
    /// Starts the reflector of the host's configurations.
    pub fn follow(host: &AdmissionHost) -> Self {
        Self(source::mutating(host))
    }

    /// Whether the configurations have been read.
    pub fn readiness(&self) -> ReflectorReadiness {
        self.0.readiness.clone()
    }

    /// Calls one webhook. Returns the object if the webhook changed it.
    async fn ask(
        &self,
        hook: &Arc<Webhook>,
        request: &AdmissionAttributes<'_>,
        round: u32,
    ) -> Result<Option<Object>, ApiError> {
        let annotations = CallAnnotations { hook, request, round };
        let began = Instant::now();
        let outcome = self.outcome(hook, request, &annotations).await;
        self.0.count(hook, request, true, began, &outcome);
        let changed = outcome.as_ref().is_ok_and(|object| object.as_ref() != request.new && object.is_some());
        annotations.mutated(changed);
        match outcome {
            Ok(object) => Ok(object.filter(|_| changed)),
            Err(WebhookError::Refused(error) | WebhookError::Internal(error)) => Err(error),
            Err(WebhookError::Calling(why, _)) if hook.failure == FailurePolicy::Ignore => {
                tracing::warn!(
                    hook = hook.name,
                    why,
                    "failed to call a mutating webhook, which it says to ignore"
                );
                annotations.failed_open();
                if clock::now() >= request.deadline {
                    return Err(ApiError::timeout("request did not complete within requested timeout", 0));
                }
                Ok(None)
            }
            Err(WebhookError::Calling(why, _)) => Err(ApiError::internal(why)),
        }
    }

    async fn outcome(
        &self,
        hook: &Webhook,
        request: &AdmissionAttributes<'_>,
        annotations: &CallAnnotations<'_>,
    ) -> Result<Option<Object>, WebhookError> {
        let answer = self.0.call(hook, request, request.new, true).await?;
        let object = patched(&hook.name, request.kind, request.new, &answer.patch)?;
        if object.is_some() {
            annotations.patch(&answer.patch);
        }
        Ok(object)
    }
}

#[async_trait]
impl Admission for MutatingWebhooks {
    async fn admit(&self, request: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        self.mutate(request).await.map(drop)
    }

    async fn mutate(&self, request: &AdmissionAttributes<'_>) -> Result<Option<Object>, ApiError> {
        let hooks = self.0.snapshot(request).await?;
        if hooks.is_empty() {
            return Ok(None);
        }
        let mut object: Option<Object> = None;
        let mut reinvocation = Reinvocation::default();
        for round in 0..2 {
            for hook in hooks.iter() {
                let seen = request.with_new(object.as_ref().or(request.new));
                let wanted = round == 0 || reinvocation.must_reinvoke(hook.index);
                if wanted && let Some(write) = self.0.applies(hook, &seen).await? {
                    let changed = self.ask(hook, &seen.in_version(&write), round).await?;
                    let changed = changed.map(|object| seen.convert_back(object, &write)).transpose()?;
                    reinvocation.record_call(hook.index, hook.reinvoked, changed.is_some());
                    object = changed.or(object);
                }
            }
        }
        Ok(object)
    }

    fn phase(&self) -> Phase {
        Phase::BeforeValidation
    }
}

#[derive(Serialize)]
struct Mutation<'a> {
    configuration: &'a str,
    webhook: &'a str,
    mutated: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Patch<'a> {
    configuration: &'a str,
    webhook: &'a str,
    patch: Value,
    patch_type: &'a str,
}

/// The audit annotations of one call.
struct CallAnnotations<'a> {
    hook: &'a Webhook,
    request: &'a AdmissionAttributes<'a>,
    round: u32,
}

impl CallAnnotations<'_> {
    fn key(&self, prefix: &str) -> String {
        format!("{prefix}round_{}_index_{}", self.round, self.hook.index)
    }

    fn mutated(&self, mutated: bool) {
        let Webhook { configuration, name, .. } = self.hook;
        let value = go_json::to_html_escaped(&Mutation { configuration, webhook: name, mutated });
        self.request.audit.annotate(&self.key(MUTATION), &value);
    }

    fn patch(&self, patch: &[u8]) {
        let Ok(patch) = serde_json::from_slice::<Value>(patch) else { return };
        let Webhook { configuration, name, .. } = self.hook;
        let value =
            go_json::to_html_escaped(&Patch { configuration, webhook: name, patch, patch_type: "JSONPatch" });
        self.request.audit.annotate_at(Level::Request, &self.key(PATCH), &value);
    }

    fn failed_open(&self) {
        self.request.audit.annotate(&self.key(&format!("failed-open.{MUTATION}")), &self.hook.name);
    }
}

/// Decides which webhooks, by their index, are called again because a later one changed the object (k8s.io/apiserver
/// pkg/admission/plugin/webhook/mutating/reinvocationcontext.go).
#[derive(Debug, Default)]
pub struct Reinvocation {
    called: BTreeSet<usize>,
    to_reinvoke: BTreeSet<usize>,
}

impl Reinvocation {
    /// Records the call of a webhook. If it changed the object, those called before it with reinvocation policy
    /// IfNeeded are called again.
    pub fn record_call(&mut self, hook: usize, reinvoked: bool, changed: bool) {
        if changed {
            self.to_reinvoke.append(&mut self.called);
        }
        if reinvoked {
            self.called.insert(hook);
        }
    }

    /// Whether a webhook is called in the second round.
    pub fn must_reinvoke(&self, hook: usize) -> bool {
        self.to_reinvoke.contains(&hook)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_before_a_change_that_want_it_are_asked_again() {
        let mut round = Reinvocation::default();
        round.record_call(0, true, true);
        round.record_call(1, false, false);
        assert!(!round.must_reinvoke(0));
        round.record_call(2, true, true);
        assert!(round.must_reinvoke(0) && !round.must_reinvoke(1) && !round.must_reinvoke(2));
        // A change in the second round affects the webhooks that are still to be called.
        round.record_call(0, true, true);
        assert!(round.must_reinvoke(2));
    }
}
