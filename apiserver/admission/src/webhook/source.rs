//! Reads and compiles the host's webhook configurations (k8s.io/apiserver pkg/admission/configuration).

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};

use super::Webhooks;
use super::configuration::{self, Webhook};
use crate::AdmissionHost;
use crate::cel::stack;
use crate::matching::ServedKinds;
use crate::reflectors::{HostReflector, ReflectorReadiness};

/// Pause before the next attempt if no thread for compiling could be started.
const RETRY: Duration = Duration::from_secs(1);

/// Compiles the webhooks of configurations of one kind.
type Compile<K> = fn(&[&K], &ServedKinds) -> Vec<Webhook>;

/// Starts the reflector of mutating configurations.
pub fn mutating(host: &AdmissionHost) -> Webhooks {
    follow::<MutatingWebhookConfiguration>(host, "mutating webhooks", configuration::mutating)
}

/// Starts the reflector of validating configurations.
pub fn validating(host: &AdmissionHost) -> Webhooks {
    follow::<ValidatingWebhookConfiguration>(host, "validating webhooks", configuration::validating)
}

fn follow<K>(host: &AdmissionHost, what: &'static str, compile: Compile<K>) -> Webhooks
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let changed = Arc::new(Notify::new());
    let reflector: HostReflector<K> =
        HostReflector::start(what, Api::all(host.client.clone()), changed.clone(), &host.tasks);
    let (ready_tx, ready_rx) = watch::channel(false);
    let hooks: Arc<ArcSwapOption<Vec<Arc<Webhook>>>> = Arc::new(ArcSwapOption::empty());
    let (served, kept) = (host.served.clone(), hooks.clone());
    host.tasks.spawn_endless(format!("compilation of {what}"), async move {
        let mut known = CompiledWebhooks::default();
        loop {
            let mut again = Duration::MAX;
            if reflector.is_ready() {
                let mut all = reflector.known.state();
                all.sort_by_key(|configuration| configuration.name_any());
                let version = versions(&all);
                if known.version.as_ref() != Some(&version) {
                    let served = served.clone();
                    let compiling = tokio::task::spawn_blocking(move || {
                        stack::on_large_stack(|| {
                            compile(&all.iter().map(AsRef::as_ref).collect::<Vec<_>>(), &served)
                        })
                    });
                    match compiling.await.map_err(|error| error.to_string()).flatten() {
                        Ok(compiled) => {
                            kept.store(Some(Arc::new(known.take(version, compiled))));
                            ready_tx.send_replace(true);
                        }
                        // The known webhooks stay in force.
                        Err(error) => {
                            tracing::error!(error, "cannot compile {what}, trying again");
                            again = RETRY;
                        }
                    }
                }
            }
            tokio::select! {
                () = changed.notified() => {}
                () = tokio::time::sleep(again) => {}
                () = ready_tx.closed() => return,
            }
        }
    });
    Webhooks {
        hooks,
        readiness: ReflectorReadiness::new(ready_rx),
        host: host.client.clone(),
        namespaces: host.namespaces.clone(),
        authorizer_factory: host.authorizer_factory.clone(),
        metrics: host.metrics.clone(),
    }
}

/// Returns the names and resourceVersions of configurations.
fn versions<K: Resource>(all: &[Arc<K>]) -> Vec<(String, String)> {
    all.iter().map(|it| (it.name_any(), it.resource_version().unwrap_or_default())).collect()
}

/// The webhooks compiled last: those of an unchanged configuration are reused, with their connections.
#[derive(Default)]
struct CompiledWebhooks {
    version: Option<Vec<(String, String)>>,
    hooks: HashMap<(usize, String, String), Arc<Webhook>>,
}

impl CompiledWebhooks {
    fn take(&mut self, version: Vec<(String, String)>, compiled: Vec<Webhook>) -> Vec<Arc<Webhook>> {
        let before = self.version.take().unwrap_or_default();
        let versioned = |hook: &Webhook, all: &[(String, String)]| {
            all.iter().find(|(name, _)| *name == hook.configuration).map(|(_, version)| version.clone())
        };
        let hooks = compiled.into_iter().map(|hook| {
            let key = (hook.index, hook.configuration.clone(), hook.name.clone());
            let known =
                self.hooks.get(&key).filter(|_| versioned(&hook, &before) == versioned(&hook, &version));
            (key, known.cloned().unwrap_or_else(|| Arc::new(hook)))
        });
        let hooks: Vec<_> = hooks.collect();
        self.version = Some(version);
        self.hooks = hooks.iter().cloned().collect();
        hooks.into_iter().map(|(_, hook)| hook).collect()
    }
}
