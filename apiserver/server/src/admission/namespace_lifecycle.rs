//! Nothing is created in a namespace that is missing or terminating
//! (k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use drydock_machinery::ApiError;
use drydock_machinery::error::StatusCause;

use super::{Admission, AdmissionAttributes, AdmissionOperation, Phase};

/// Time for the watch to deliver a namespace that was created a moment ago.
const MISSING_WAIT: Duration = Duration::from_millis(50);

/// A namespace's phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespacePhase {
    /// Takes new objects.
    Active,
    /// Is being deleted.
    Terminating,
}

/// Where namespaces are looked up.
#[async_trait]
pub trait Namespaces: Send + Sync + 'static {
    /// Whether the cache has been filled.
    fn ready(&self) -> bool;
    /// From the cache; `None` if it holds no such namespace.
    fn cached(&self, name: &str) -> Option<NamespacePhase>;
    /// From the host itself; `None` if it has no such namespace.
    async fn live(&self, name: &str) -> Result<Option<NamespacePhase>, ApiError>;
}

/// The admission.
pub struct NamespaceLifecycle {
    namespaces: Arc<dyn Namespaces>,
}

impl NamespaceLifecycle {
    /// Looks namespaces up in `namespaces`.
    pub fn new(namespaces: Arc<dyn Namespaces>) -> Self {
        Self { namespaces }
    }

    async fn phase_of(&self, attributes: &AdmissionAttributes<'_>) -> Result<NamespacePhase, ApiError> {
        let name = attributes.namespace;
        if let Some(phase) = self.namespaces.cached(name) {
            return Ok(phase);
        }
        if attributes.operation == AdmissionOperation::Create {
            tokio::time::sleep(MISSING_WAIT).await;
            if let Some(phase) = self.namespaces.cached(name) {
                return Ok(phase);
            }
        }
        self.namespaces.live(name).await?.ok_or_else(|| ApiError::not_found("", "namespaces", name))
    }
}

#[async_trait]
impl Admission for NamespaceLifecycle {
    async fn admit(&self, attributes: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        if attributes.namespace.is_empty() || attributes.operation == AdmissionOperation::Delete {
            return Ok(());
        }
        if !self.namespaces.ready() {
            return Err(attributes.forbidden("not yet ready to handle request"));
        }
        let phase = self.phase_of(attributes).await?;
        if attributes.operation == AdmissionOperation::Create && phase == NamespacePhase::Terminating {
            return Err(terminating(attributes));
        }
        Ok(())
    }

    fn phase(&self) -> Phase {
        Phase::BeforeValidation
    }
}

fn terminating(attributes: &AdmissionAttributes<'_>) -> ApiError {
    let namespace = attributes.namespace;
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut error = attributes.forbidden(&why);
    let cause = StatusCause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    };
    error.status.details.get_or_insert_default().causes.push(cause);
    error
}
