//! The host's admission webhooks (k8s.io/apiserver pkg/admission/plugin/webhook).

mod call;
mod configuration;
mod endpoint;
mod error;
mod mutating;
mod patch;
pub mod review;
mod source;
#[cfg(test)]
mod tests;
mod validating;

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{AdmissionAttributes, VersionedWrite};
use drydock_serving::clock;
use kube::Client;
use serde_json::Value;

pub use mutating::MutatingWebhooks;
pub use validating::ValidatingWebhooks;

use crate::cel::stack;
use crate::input::{AuthorizerFactory, Input};
use crate::matching;
use crate::metrics::Metrics;
use crate::namespaces::NamespaceSource;
use crate::policy::FailurePolicy;
use crate::reflectors::ReflectorReadiness;
use configuration::Webhook;
use error::WebhookError;
use review::WebhookResponse;

/// What mutating and validating webhooks have in common.
struct Webhooks {
    hooks: Arc<ArcSwapOption<Vec<Arc<Webhook>>>>,
    readiness: ReflectorReadiness,
    host: Client,
    namespaces: Arc<dyn NamespaceSource>,
    authorizer_factory: AuthorizerFactory,
    metrics: Metrics,
}

impl Webhooks {
    /// Returns the webhooks that can apply to our kinds. Waits for the first list from the host.
    async fn snapshot(&self, request: &AdmissionAttributes<'_>) -> Result<Arc<Vec<Arc<Webhook>>>, ApiError> {
        if let Some(hooks) = self.hooks.load_full() {
            return Ok(hooks);
        }
        self.readiness.wait().await;
        self.hooks.load_full().ok_or_else(|| request.forbidden("not yet ready to handle request"))
    }

    /// Returns the write in the version in which a webhook has to be called about it; `None` if it has not to be
    /// called (generic/webhook.go, ShouldCallHook).
    async fn applies<'a>(
        &self,
        hook: &Arc<Webhook>,
        request: &AdmissionAttributes<'a>,
    ) -> Result<Option<VersionedWrite<'a>>, ApiError> {
        let Some(kind) = hook.criteria.matches(request, self.namespaces.as_ref()).await? else {
            return Ok(None);
        };
        let write = request.convert(kind)?;
        let meets = self.meets_conditions(hook, &request.in_version(&write)).await?;
        Ok(meets.then_some(write))
    }

    async fn meets_conditions(
        &self,
        hook: &Arc<Webhook>,
        request: &AdmissionAttributes<'_>,
    ) -> Result<bool, ApiError> {
        if hook.conditions.is_empty() {
            return Ok(true);
        }
        let (input, evaluated) =
            (Input::new(request, (self.authorizer_factory)(request.caller)), hook.clone());
        let held = stack::on_evaluation_thread(request.deadline, move || {
            let mut activation =
                input.activation(&Value::Null, None, Arc::new([]), matching::CONDITIONS_BUDGET)?;
            matching::all_conditions_true(&evaluated.conditions, &mut activation)
        });
        match held.await.and_then(|held| held) {
            Ok(held) => Ok(held),
            Err(_) if hook.failure == FailurePolicy::Ignore => Ok(false),
            Err(why) => {
                let names = request.names;
                Err(ApiError::forbidden(names.group, names.plural, request.name, why))
            }
        }
    }

    /// Records the outcome of a call that started at `began` in the metrics.
    fn count<T>(
        &self,
        hook: &Webhook,
        request: &AdmissionAttributes<'_>,
        mutating: bool,
        began: Instant,
        outcome: &Result<T, WebhookError>,
    ) {
        let type_ = if mutating { "admit" } else { "validating" };
        let ignored = hook.failure == FailurePolicy::Ignore;
        let refused = match outcome {
            Ok(_) => None,
            Err(WebhookError::Refused(error)) => Some(("no_error", error.code())),
            Err(WebhookError::Calling(_, code)) => Some(("calling_webhook_error", *code)),
            Err(WebhookError::Internal(_)) => Some(("apiserver_internal_error", 0)),
        };
        let open = ignored && matches!(outcome, Err(WebhookError::Calling(..)));
        let operation = request.operation.as_str();
        self.metrics.called(&hook.name, type_, operation, refused.is_some() && !open, began.elapsed());
        match refused {
            Some(_) if open => self.metrics.failed_open(&hook.name, type_),
            Some((error, code)) => self.metrics.rejected(&hook.name, type_, operation, error, code),
            None => {}
        }
    }

    /// Calls a webhook about `object`, and adds its warnings and audit annotations to the request.
    async fn call(
        &self,
        hook: &Webhook,
        request: &AdmissionAttributes<'_>,
        object: Option<&Object>,
        mutating: bool,
    ) -> Result<WebhookResponse, WebhookError> {
        let name = hook.name.as_str();
        check_side_effects(hook, request.dry_run)?;
        let version = hook.version.ok_or_else(|| {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            WebhookError::calling(name, 400, why)
        })?;
        let uid = uuid::Uuid::new_v4().to_string();
        let review = review::review(version, &uid, request, object);
        let deadline =
            hook.timeout.map_or(request.deadline, |time| request.deadline.min(clock::now() + time));
        let body = call::post(&self.host, &hook.endpoint, &review, deadline).await;
        let body = body.map_err(|failed| {
            WebhookError::calling(name, failed.code, format_args!("failed to call webhook: {}", failed.why))
        })?;
        let answer = review::verify(version, &uid, mutating, &body);
        let answer = answer.map_err(|why| {
            WebhookError::calling(name, 503, format_args!("received invalid webhook response: {why}"))
        })?;
        for (key, value) in &answer.annotations {
            request.audit.annotate(&format!("{name}/{key}"), value);
        }
        for warning in &answer.warnings {
            request.warnings.add(warning);
        }
        if answer.allowed { Ok(answer) } else { Err(WebhookError::rejection(name, answer.result.as_ref())) }
    }
}

fn check_side_effects(hook: &Webhook, dry_run: bool) -> Result<(), WebhookError> {
    match hook.side_effects.as_deref() {
        _ if !dry_run => Ok(()),
        None => Err(WebhookError::calling(&hook.name, 400, "Webhook SideEffects is nil")),
        Some("None" | "NoneOnDryRun") => Ok(()),
        Some(_) => Err(WebhookError::no_dry_run(&hook.name)),
    }
}
