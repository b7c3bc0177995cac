//! The host's namespaces, for the admission that looks at them.

use std::sync::Arc;

use async_trait::async_trait;
use drydock_logging::with_causes;
use drydock_machinery::ApiError;
use drydock_serving::host::Reflector;
use drydock_serving::tasks::ProgramTasks;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client};

use super::namespace_lifecycle::{NamespacePhase, Namespaces};

/// A reflector of the host's namespaces.
pub struct HostNamespaces {
    known: Reflector<Namespace>,
    api: Api<Namespace>,
}

impl HostNamespaces {
    /// Starts following.
    pub fn follow(client: Client, tasks: &ProgramTasks) -> Self {
        let known = Reflector::start("namespaces", Api::all(client.clone()), tasks);
        Self { known, api: Api::all(client) }
    }

    /// What is known of a namespace.
    pub fn metadata(&self, name: &str) -> Option<Arc<PartialObjectMeta<Namespace>>> {
        self.known.known().get(&ObjectRef::new(name))
    }

    /// The namespace as the host has it now; 404 if it has none.
    pub async fn fetch(&self, name: &str) -> Result<Namespace, ApiError> {
        match self.api.get_opt(name).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(ApiError::not_found("", "namespaces", name)),
            Err(error) => Err(cannot_ask(&error)),
        }
    }
}

#[async_trait]
impl Namespaces for HostNamespaces {
    fn ready(&self) -> bool {
        self.known.ready()
    }

    fn cached(&self, name: &str) -> Option<NamespacePhase> {
        let found = self.known.known().get(&ObjectRef::new(name));
        found.map(|n| phase(n.metadata.deletion_timestamp.is_some()))
    }

    async fn live(&self, name: &str) -> Result<Option<NamespacePhase>, ApiError> {
        match self.api.get_metadata_opt(name).await {
            Ok(found) => Ok(found.map(|n| phase(n.metadata.deletion_timestamp.is_some()))),
            Err(error) => Err(cannot_ask(&error)),
        }
    }
}

fn cannot_ask(error: &kube::Error) -> ApiError {
    ApiError::internal(format!("cannot ask the host for the namespace: {}", with_causes(error)))
}

fn phase(deleting: bool) -> NamespacePhase {
    if deleting { NamespacePhase::Terminating } else { NamespacePhase::Active }
}
