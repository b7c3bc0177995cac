//! Runs the host's admission, ValidatingAdmissionPolicies and webhooks, for kinds that this server serves.
//!
//! kube-apiserver runs no admission for an aggregated API. A server built on k8s.io/apiserver runs it itself, with
//! the configurations that it reads from the host. This crate does the same for any kind.
//!
//! ```text
//!   reflectors  reflectors of the host's configurations
//!     │ policy::source, webhook::source    compiled when they change; only those that can apply to our kinds
//!     ▼
//!   ArcSwap<snapshot>
//!     │ policy, webhook                    run for each write; nothing is done if the snapshot is empty
//!     ├── matching      which requests a policy or webhook applies to, with match conditions
//!     └── cel           expressions
//! ```

pub mod cel;
mod input;
mod matching;
mod metrics;
mod namespaces;
mod policy;
mod reflectors;
#[cfg(test)]
mod testing;
pub mod webhook;

use std::sync::Arc;

use drydock_server::generic::Server;
use drydock_serving::tasks::ProgramTasks;
use kube::Client;

use input::AuthorizerFactory;
use metrics::Metrics;
use namespaces::NamespaceSource;
use policy::Policies;
use webhook::{MutatingWebhooks, ValidatingWebhooks};

/// What admission needs of the host and of this server.
pub struct AdmissionHost {
    client: Client,
    namespaces: Arc<dyn NamespaceSource>,
    authorizer_factory: AuthorizerFactory,
    metrics: Metrics,
    tasks: ProgramTasks,
    /// The kinds that this server serves, as group, version and plural.
    served: Vec<(String, String, String)>,
}

/// Adds the host's admission to every write of the kinds that `server` has installed, in the order of
/// k8s.io/apiserver: mutating webhooks, then policies, then validating webhooks. (MutatingAdmissionPolicies are not
/// run.)
pub fn install(server: &mut Server) {
    let authorizer_factory = input::authorizer_factory(server.authorizer());
    let (client, namespaces) = (server.host(), server.namespaces());
    let metrics = Metrics::default();
    metrics.register(server.metrics().registry());
    let (tasks, served) = (server.tasks().clone(), server.served());
    let host = AdmissionHost { client, namespaces, authorizer_factory, metrics, tasks, served };
    let mutating = MutatingWebhooks::follow(&host);
    let policies = Policies::follow(&host);
    let validating = ValidatingWebhooks::follow(&host);
    for (name, readiness) in [
        ("mutating-webhooks", mutating.readiness()),
        ("admission-policies", policies.readiness()),
        ("validating-webhooks", validating.readiness()),
    ] {
        server.ready_when(name, "not read from the host", move || readiness.is_ready());
    }
    server.admit_all(vec![Arc::new(mutating), Arc::new(policies), Arc::new(validating)]);
}
