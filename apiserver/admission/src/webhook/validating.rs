//! Validating webhooks, called concurrently (k8s.io/apiserver pkg/admission/plugin/webhook/validating/dispatcher.go).

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use drydock_machinery::ApiError;
use drydock_server::admission::{Admission, AdmissionAttributes};
use drydock_serving::clock;
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::configuration::Webhook;
use super::error::WebhookError;
use super::{Webhooks, source};
use crate::AdmissionHost;
use crate::policy::FailurePolicy;
use crate::reflectors::ReflectorReadiness;

const FAILED_OPEN: &str = "failed-open.validating.webhook.admission.k8s.io/";

/// The admission plugin for the host's validating webhooks.
pub struct ValidatingWebhooks(Webhooks);

impl ValidatingWebhooks {
    /// Starts the reflector of the host's configurations.
    pub fn follow(host: &AdmissionHost) -> Self {
        Self(source::validating(host))
    }

    /// Whether the configurations have been read.
    pub fn readiness(&self) -> ReflectorReadiness {
        self.0.readiness.clone()
    }

    async fn ask(
        &self,
        place: usize,
        hook: &Arc<Webhook>,
        request: &AdmissionAttributes<'_>,
    ) -> Result<(), ApiError> {
        let began = Instant::now();
        let outcome = self.0.call(hook, request, request.new, false).await;
        self.0.count(hook, request, false, began, &outcome);
        match outcome {
            Ok(_) => Ok(()),
            Err(WebhookError::Refused(error) | WebhookError::Internal(error)) => Err(error),
            Err(WebhookError::Calling(why, _)) if hook.failure == FailurePolicy::Ignore => {
                tracing::warn!(
                    hook = hook.name,
                    why,
                    "failed to call a validating webhook, which it says to ignore"
                );
                request.audit.annotate(&format!("{FAILED_OPEN}round_0_index_{place}"), &hook.name);
                Ok(())
            }
            Err(WebhookError::Calling(why, _)) => Err(ApiError::internal(why)),
        }
    }
}

#[async_trait]
impl Admission for ValidatingWebhooks {
    async fn admit(&self, request: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        let hooks = self.0.snapshot(request).await?;
        if hooks.is_empty() {
            return Ok(());
        }
        let mut concerned = Vec::new();
        for hook in hooks.iter() {
            if let Some(write) = self.0.applies(hook, request).await? {
                concerned.push((hook, write));
            }
        }
        if !concerned.is_empty() && clock::now() >= request.deadline {
            return Err(ApiError::timeout("request did not complete within requested timeout", 0));
        }
        let asked = concerned.iter().enumerate().map(|(place, (hook, write))| async move {
            self.ask(place, hook, &request.in_version(write)).await
        });
        let mut asked: FuturesUnordered<_> = asked.collect();
        // The first rejection is returned, but all webhooks are called.
        let mut answer = Ok(());
        while let Some(outcome) = asked.next().await {
            answer = answer.and(outcome);
        }
        answer
    }
}
