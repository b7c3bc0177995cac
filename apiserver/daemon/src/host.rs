//! What the server knows of the host: how to reach it, its namespaces and its nodes.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use async_trait::async_trait;
use drydock_machinery::ApiError;
use drydock_server::admission::namespace_lifecycle::{NamespacePhase, Namespaces};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::PartialObjectMeta;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Config, ResourceExt};

type Metadata<K> = Store<PartialObjectMeta<K>>;

/// A client by `kubeconfig`, or by the in-cluster configuration.
pub async fn client(flag: &str, kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    let config = match kubeconfig {
        Some(file) => {
            let read = Kubeconfig::read_from(file).with_context(|| format!("{flag}: {}", file.display()))?;
            Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("{flag}: {}", file.display()))?
        }
        None => Config::incluster()
            .with_context(|| format!("no {flag} given and not running in a cluster; give {flag}"))?,
    };
    Ok(Client::try_from(config)?)
}

/// The host's namespaces, followed.
pub struct HostNamespaces {
    known: Metadata<Namespace>,
    api: Api<Namespace>,
}

/// The host's nodes, followed: names and labels.
pub struct HostNodes {
    known: Metadata<Node>,
}

impl HostNamespaces {
    /// Starts following.
    pub fn follow(client: Client) -> Self {
        let api: Api<Namespace> = Api::all(client.clone());
        Self { known: follow("namespaces", Api::all(client)), api }
    }
}

impl HostNodes {
    /// Starts following.
    pub fn follow(client: Client) -> Self {
        Self { known: follow("nodes", Api::all(client)) }
    }

    /// Whether the nodes are known.
    pub fn ready(&self) -> bool {
        is_filled(&self.known)
    }

    /// Name and labels of every node, by name.
    pub fn all(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        self.known.state().iter().map(|node| (node.name_any(), node.labels().clone())).collect()
    }
}

#[async_trait]
impl Namespaces for HostNamespaces {
    fn ready(&self) -> bool {
        is_filled(&self.known)
    }

    fn cached(&self, name: &str) -> Option<NamespacePhase> {
        let found = self.known.get(&ObjectRef::new(name));
        found.map(|n| phase(n.metadata.deletion_timestamp.is_some()))
    }

    async fn live(&self, name: &str) -> Result<Option<NamespacePhase>, ApiError> {
        match self.api.get_metadata_opt(name).await {
            Ok(found) => Ok(found.map(|n| phase(n.metadata.deletion_timestamp.is_some()))),
            Err(error) => Err(ApiError::internal(format!("cannot ask the host for the namespace: {error}"))),
        }
    }
}

fn phase(deleting: bool) -> NamespacePhase {
    if deleting { NamespacePhase::Terminating } else { NamespacePhase::Active }
}

/// Follows metadata in a task of its own, with backoff, saying so while the host cannot be reached.
fn follow<K>(what: &'static str, api: Api<PartialObjectMeta<K>>) -> Metadata<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    let (reader, writer) = store();
    let events = watcher(api, watcher::Config::default()).default_backoff();
    let mut events = reflector(writer, events).boxed();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if let Err(error) = event {
                tracing::warn!(%error, "cannot follow the host's {what}; trying again");
            }
        }
    });
    reader
}

fn is_filled<K>(store: &Metadata<K>) -> bool
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    use futures::FutureExt;
    store.wait_until_ready().now_or_never().is_some_and(|r| r.is_ok())
}
