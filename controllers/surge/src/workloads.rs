//! The workloads of the cluster as the caches have them: which Deployment a pod is of, what scales it, and which of them
//! have a surge.

use std::collections::BTreeSet;
use std::sync::Arc;

use drydock_runtime::cache::reflect;
use drydock_runtime::{ControllerContext, ObjectChange, ObjectKey, Pod, Store};
use kube::Client;
use parking_lot::RwLock;

use crate::deployment::Deployment;
use crate::owners::{HorizontalPodAutoscaler, ReplicaSet};
use crate::record::FoundRecord;

/// The caches of workloads. Clones share them.
#[derive(Clone, Default)]
pub struct Workloads {
    /// Deployments of all namespaces.
    pub deployments: Store<Deployment>,
    /// ReplicaSets of all namespaces.
    pub replica_sets: Store<ReplicaSet>,
    /// HorizontalPodAutoscalers of all namespaces.
    pub autoscalers: Store<HorizontalPodAutoscaler>,
    /// Deployments with a record.
    recorded: Arc<RwLock<BTreeSet<ObjectKey>>>,
}

/// What is known of the Deployment of a pod.
pub enum DeploymentOf {
    /// This one.
    Known(Arc<Deployment>),
    /// None controls the pod.
    None,
    /// The caches do not have all of it yet.
    NotCached,
}

impl Workloads {
    /// Starts feeding the caches. Returns at once.
    pub fn start(&self, client: &Client, context: &ControllerContext) {
        let stop = &context.shutdown;
        context.tasks.spawn(reflect(client.clone(), self.deployments.clone(), stop.clone()));
        context.tasks.spawn(reflect(client.clone(), self.replica_sets.clone(), stop.clone()));
        context.tasks.spawn(reflect(client.clone(), self.autoscalers.clone(), stop.clone()));
        let recorded = self.recorded.clone();
        self.deployments.subscribe(move |change: &ObjectChange<Deployment>| {
            let Some(key) = change.latest().map(|deployment| key_of(deployment)) else { return };
            let has_record = change.new.as_ref().is_some_and(|d| d.record != FoundRecord::Absent);
            let mut recorded = recorded.write();
            if has_record {
                recorded.insert(key)
            } else {
                recorded.remove(&key)
            };
        });
    }

    /// Whether each cache holds a complete list.
    pub fn is_synced(&self) -> bool {
        self.deployments.is_synced() && self.replica_sets.is_synced() && self.autoscalers.is_synced()
    }

    /// Waits until each cache holds a complete list.
    pub async fn wait_until_synced(&self) {
        self.replica_sets.wait_until_synced().await;
        self.autoscalers.wait_until_synced().await;
        self.deployments.wait_until_synced().await;
    }

    /// The Deployment that controls the ReplicaSet that controls the pod.
    pub fn deployment_of(&self, pod: &Pod) -> DeploymentOf {
        let of_set = |owner: &&drydock_runtime::cache::OwnerRef| {
            owner.kind == "ReplicaSet" && owner.api_version.starts_with("apps/")
        };
        let Some(owner) = pod.controller.as_ref().filter(of_set) else { return DeploymentOf::None };
        let Some(set) = self.replica_sets.by_uid(&owner.uid) else { return DeploymentOf::NotCached };
        let Some(owner) = &set.deployment else { return DeploymentOf::None };
        match self.deployments.find(&pod.namespace, &owner.name).filter(|found| found.uid == owner.uid) {
            Some(deployment) => DeploymentOf::Known(deployment),
            None => DeploymentOf::NotCached,
        }
    }

    /// The name of an autoscaler that scales the Deployment.
    pub fn autoscaler_of(&self, deployment: &ObjectKey) -> Option<String> {
        let all = self.autoscalers.all();
        let scaling = all.iter().find(|autoscaler| autoscaler.deployment.as_ref() == Some(deployment))?;
        Some(drydock_runtime::Cacheable::name(scaling.as_ref()).to_owned())
    }

    /// The Deployments with a record: of a namespace, or all.
    pub fn recorded(&self, namespace: Option<&str>) -> Vec<ObjectKey> {
        let is_there = |key: &&ObjectKey| namespace.is_none_or(|namespace| *key.namespace == *namespace);
        self.recorded.read().iter().filter(is_there).cloned().collect()
    }
}

/// Key of a Deployment.
pub fn key_of(deployment: &Deployment) -> ObjectKey {
    ObjectKey::new(&deployment.namespace, &deployment.name)
}
