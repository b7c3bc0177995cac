//! The workloads of the cluster as the caches have them: which Deployment a pod is of, what scales it, and which of them
//! have a surge.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drydock_runtime::cache::{OwnerRef, start_reflector};
use drydock_runtime::surge_record::FoundRecord;
use drydock_runtime::{Cacheable, ControllerContext, ObjectChange, ObjectKey, Pod, Store};
use kube::Client;
use parking_lot::RwLock;
use serde_json::{Value, json};

use crate::autoscaler::HorizontalPodAutoscaler;
use crate::deployment::Deployment;
use crate::replica_set::ReplicaSet;
use crate::scale::Scale;

/// The caches of workloads. Clones share them.
#[derive(Clone)]
pub struct Workloads {
    /// Deployments of all namespaces.
    pub deployments: Store<Deployment>,
    /// ReplicaSets of all namespaces.
    pub replica_sets: Store<ReplicaSet>,
    /// HorizontalPodAutoscalers of all namespaces.
    pub autoscalers: Store<HorizontalPodAutoscaler>,
    index: Arc<RwLock<SurgeIndex>>,
}

/// What is found without looking at all objects.
#[derive(Default)]
struct SurgeIndex {
    /// Deployments with a record, and whether it can be read.
    recorded: BTreeMap<ObjectKey, bool>,
    /// Autoscalers, by what they scale.
    autoscalers: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// What autoscalers with a record scale, and whether it can be read, by autoscaler.
    recorded_targets: BTreeMap<ObjectKey, (ObjectKey, bool)>,
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

/// The object that has the number that a surge is added to.
#[derive(Clone, Debug)]
pub enum ScaleHolder {
    /// A Deployment.
    Deployment(Arc<Deployment>),
    /// The autoscaler of a Deployment, which sets the Deployment's replicas by its own number.
    Autoscaler(Arc<HorizontalPodAutoscaler>),
}

impl ScaleHolder {
    /// The number of a Deployment with this many replicas.
    pub fn scale(&self, replicas: i32) -> Scale<'_> {
        match self {
            Self::Deployment(deployment) => deployment.scale(),
            Self::Autoscaler(autoscaler) => autoscaler.scale(replicas),
        }
    }

    /// The part of the spec with this number.
    pub fn spec(&self, number: i32) -> Value {
        match self {
            Self::Deployment(_) => json!({ "replicas": number }),
            Self::Autoscaler(_) => json!({ "minReplicas": number }),
        }
    }

    /// Whether both are the same object, in whatever version.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Deployment(a), Self::Deployment(b)) => a.uid == b.uid,
            (Self::Autoscaler(a), Self::Autoscaler(b)) => a.uid == b.uid,
            _ => false,
        }
    }

    /// The record of a surge.
    pub fn record(&self) -> &FoundRecord {
        match self {
            Self::Deployment(deployment) => &deployment.record,
            Self::Autoscaler(autoscaler) => &autoscaler.record,
        }
    }
}

impl Workloads {
    /// Empty caches, which are indexed from now on.
    pub fn new() -> Self {
        let (deployments, replica_sets, autoscalers) = Default::default();
        let workloads = Self { deployments, replica_sets, autoscalers, index: Arc::default() };
        let index = workloads.index.clone();
        workloads.deployments.subscribe(move |change: &ObjectChange<Deployment>| {
            let Some(key) = change.latest().map(|deployment| deployment.key()) else { return };
            let record = change.new.as_ref().map(|deployment| &deployment.record);
            let recorded = &mut index.write().recorded;
            match record.filter(|record| **record != FoundRecord::Absent) {
                Some(record) => recorded.insert(key, record.valid().is_some()),
                None => recorded.remove(&key),
            };
        });
        let index = workloads.index.clone();
        workloads.autoscalers.subscribe(move |change: &ObjectChange<HorizontalPodAutoscaler>| {
            let SurgeIndex { autoscalers, recorded_targets, .. } = &mut *index.write();
            if let Some(old) = &change.old {
                if let Some(scaling) = autoscalers.get_mut(&old.target) {
                    scaling.remove(&old.key());
                    if scaling.is_empty() {
                        autoscalers.remove(&old.target);
                    }
                }
                recorded_targets.remove(&old.key());
            }
            if let Some(new) = &change.new {
                autoscalers.entry(new.target.clone()).or_default().insert(new.key());
                if new.record != FoundRecord::Absent {
                    let is_valid = new.record.valid().is_some();
                    recorded_targets.insert(new.key(), (new.target.clone(), is_valid));
                }
            }
        });
        workloads
    }

    /// Starts feeding the caches. Returns at once.
    pub fn start(&self, client: &Client, context: &ControllerContext) {
        start_reflector(client, &self.deployments, &context.tasks);
        start_reflector(client, &self.replica_sets, &context.tasks);
        start_reflector(client, &self.autoscalers, &context.tasks);
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
        let of_set =
            |owner: &&Arc<OwnerRef>| owner.kind == "ReplicaSet" && owner.api_version.starts_with("apps/");
        let Some(owner) = pod.controller.as_ref().filter(of_set) else { return DeploymentOf::None };
        let Some(set) = self.replica_sets.by_uid(&owner.uid) else { return DeploymentOf::NotCached };
        let Some(owner) = &set.deployment else { return DeploymentOf::None };
        match self.deployments.find(&pod.namespace, &owner.name).filter(|found| found.uid == owner.uid) {
            Some(deployment) => DeploymentOf::Known(deployment),
            None => DeploymentOf::NotCached,
        }
    }

    /// The autoscalers that scale what has this name: a Deployment, or something else since.
    pub fn autoscalers_of(&self, key: &ObjectKey) -> Vec<Arc<HorizontalPodAutoscaler>> {
        let scaling = self.index.read().autoscalers.get(key).cloned().unwrap_or_default();
        scaling.iter().filter_map(|key| self.autoscalers.get(key)).collect()
    }

    /// Everything that a surge of this Deployment may be recorded on: the Deployment, and what scales it.
    pub fn holders_of(&self, key: &ObjectKey) -> Vec<ScaleHolder> {
        let autoscalers = self.autoscalers_of(key).into_iter().map(ScaleHolder::Autoscaler);
        self.deployments.get(key).map(ScaleHolder::Deployment).into_iter().chain(autoscalers).collect()
    }

    /// The Deployments with a record, on themselves or on an autoscaler.
    pub fn recorded(&self) -> BTreeSet<ObjectKey> {
        let index = self.index.read();
        index.recorded.keys().chain(index.recorded_targets.values().map(|(key, _)| key)).cloned().collect()
    }

    /// The Deployments of a namespace with a record that can be read. Whoever forges thousands of others does not slow down what
    /// asks for these.
    pub fn surged(&self, namespace: &str) -> BTreeSet<ObjectKey> {
        let (index, first) = (self.index.read(), ObjectKey::new(namespace, ""));
        let is_there = |key: &ObjectKey| *key.namespace == *namespace;
        let own = index.recorded.range(&first..).take_while(|(key, _)| is_there(key));
        let own = own.filter(|(_, is_valid)| **is_valid).map(|(key, _)| key);
        // What an autoscaler scales is in its namespace.
        let scaled = index.recorded_targets.range(&first..).take_while(|(key, _)| is_there(key));
        let scaled = scaled.filter(|(_, (_, is_valid))| *is_valid).map(|(_, (key, _))| key);
        own.chain(scaled).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use drydock_runtime::surge_record::SurgeRecord;
    use jiff::Timestamp;

    use super::*;

    /// Each change of a request walked the records of all namespaces, those too that somebody had forged.
    #[test]
    fn only_surges_of_a_namespace_that_stand_are_looked_at() {
        let workloads = Workloads::new();
        let valid = || {
            let pods = ["p".to_owned()].into();
            FoundRecord::Valid(SurgeRecord::new(1, 1, pods, Timestamp::UNIX_EPOCH))
        };
        let broken = || FoundRecord::Broken("forged".to_owned());
        let of = |namespace: &str, name: &str, record| Deployment {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            record,
            ..Deployment::default()
        };
        for (namespace, name, record) in [
            ("m", "before", valid()),
            ("n", "stands", valid()),
            ("n", "forged", broken()),
            ("n", "none", FoundRecord::Absent),
            ("o", "behind", valid()),
        ] {
            workloads.deployments.apply(of(namespace, name, record));
        }
        let scaled = |name: &str, record| HorizontalPodAutoscaler {
            name: name.to_owned(),
            namespace: "n".to_owned(),
            target: ObjectKey::new("n", &format!("of-{name}")),
            record,
            ..HorizontalPodAutoscaler::default()
        };
        workloads.autoscalers.apply(scaled("a", valid()));
        workloads.autoscalers.apply(scaled("b", broken()));
        let expected = ["of-a", "stands"].map(|name| ObjectKey::new("n", name));
        assert_eq!(workloads.surged("n"), expected.into());
        assert_eq!(workloads.recorded().len(), 6, "the metrics show all");
        workloads.deployments.apply(of("n", "stands", broken()));
        assert_eq!(workloads.surged("n"), [ObjectKey::new("n", "of-a")].into());
    }
}
