//! Real storage: two caches over one SQLite store, and helpers that write.

use std::sync::Arc;

use drydock_machinery::Object;
use drydock_storage::backend::{Backend, Revision};
use drydock_storage::cache::{Config as CacheConfig, WatchCache};
use drydock_storage::storage::{NextState, ReadAt, Replaced, Storage, Stored};
use drydock_storage::store::Store;
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};
use drydock_stream::{Config, StatusStream};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::shaky::Shaky;

const GROUP: &str = "coordination.k8s.io";

/// Storage of both kinds.
pub struct World {
    pub backend: Arc<dyn Backend>,
    pub maintenances: Arc<Shaky>,
    pub evictions: Arc<Shaky>,
    pub stream: Arc<StatusStream>,
    pub config: Config,
    _directory: TempDir,
}

impl World {
    pub async fn new() -> Self {
        Self::with(Config::default()).await
    }

    pub async fn with(config: Config) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let backend: Arc<dyn Backend> =
            Arc::new(SqliteBackend::open(path, SqliteOptions::default()).unwrap());
        let (maintenances, evictions) = caches(&backend).await;
        let stream = StatusStream::new(maintenances.clone(), evictions.clone(), config.clone());
        Self { backend, maintenances, evictions, stream, config, _directory: directory }
    }

    /// A stream of another replica, which has its own caches over the same store.
    pub async fn replica(&self) -> Arc<StatusStream> {
        self.shaky_replica().await.0
    }

    /// The same, with its storage of evictions.
    pub async fn shaky_replica(&self) -> (Arc<StatusStream>, Arc<Shaky>) {
        let (maintenances, evictions) = caches(&self.backend).await;
        (StatusStream::new(maintenances, evictions.clone(), self.config.clone()), evictions)
    }

    /// A new stream over the same caches, without a hub yet.
    pub fn restarted(&self) -> Arc<StatusStream> {
        StatusStream::new(self.maintenances.clone(), self.evictions.clone(), self.config.clone())
    }

    pub async fn put_eviction(&self, key: &str, change: impl Fn(&mut Value) + Send + Sync) -> Revision {
        let (namespace, name) = key.split_once('/').unwrap();
        let new = json!({
            "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "EvictionRequest",
            "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{name}"), "labels": {}},
            "spec": {"requesters": [{"name": "nodemaintenance.k8s.io"}]}, "status": {},
        });
        put(self.evictions.as_ref(), key, &new, change).await
    }

    pub async fn put_maintenance(&self, name: &str, change: impl Fn(&mut Value) + Send + Sync) -> Revision {
        let new = json!({
            "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "NodeMaintenance",
            "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {}},
            "spec": {"stage": "Drain"}, "status": {},
        });
        put(self.maintenances.as_ref(), name, &new, change).await
    }

    pub async fn delete_eviction(&self, key: &str) -> Option<Revision> {
        delete(self.evictions.as_ref(), key).await
    }

    pub async fn delete_maintenance(&self, name: &str) -> Option<Revision> {
        delete(self.maintenances.as_ref(), name).await
    }
}

async fn caches(backend: &Arc<dyn Backend>) -> (Arc<Shaky>, Arc<Shaky>) {
    let cache = |resource| {
        Arc::new(WatchCache::start(Store::new(backend.clone(), GROUP, resource), CacheConfig::default()))
    };
    let (maintenances, evictions) = (cache("nodemaintenances"), cache("evictionrequests"));
    maintenances.wait_until_ready().await;
    evictions.wait_until_ready().await;
    (Shaky::new(maintenances), Shaky::new(evictions))
}

/// Changes an object, or creates it.
async fn put(
    storage: &dyn Storage,
    key: &str,
    new: &Value,
    change: impl Fn(&mut Value) + Send + Sync,
) -> Revision {
    let present = storage.get(key, ReadAt::Latest).await.ok();
    let mut object = present.as_ref().map_or_else(|| new.clone(), |present| present.object().to_value());
    change(&mut object);
    let object = Object::from(object.as_object().unwrap().clone());
    match present {
        Some(present) => replace(storage, &present, NextState::Write(object)).await,
        None => storage.create(key, object, Default::default()).await.unwrap().revision,
    }
}

async fn delete(storage: &dyn Storage, key: &str) -> Option<Revision> {
    let present = storage.get(key, ReadAt::Latest).await.ok()?;
    let last = Object::clone(&present.object());
    Some(replace(storage, &present, NextState::Delete(last)).await)
}

/// Nobody else writes the object.
async fn replace(storage: &dyn Storage, present: &Arc<Stored>, next: NextState) -> Revision {
    match storage.replace(&present.key, present, next, Default::default()).await.unwrap() {
        Replaced::Updated(stored) => stored.revision,
        Replaced::Conflict(newest) => panic!("another write came first: {newest:?}"),
    }
}

/// Puts a request on a node, blocked or not.
pub fn on_node(node: &str, is_blocked: bool) -> impl Fn(&mut Value) + Send + Sync + use<> {
    let status = json!({
        "podInfo": {"nodeName": node, "podType": "Default", "priority": 0},
        "activeInterceptors": ["imperative-eviction.k8s.io"],
        "interceptors": [{"name": "imperative-eviction.k8s.io", "message": "",
            "blocked": if is_blocked { json!({"reason": "PodDisruptionBudget", "name": "web"}) } else { Value::Null }}],
    });
    move |object| object["status"] = status.clone()
}

/// Gives an object a label.
pub fn labelled(key: &str, value: &str) -> impl Fn(&mut Value) + Send + Sync + use<> {
    let (key, value) = (key.to_owned(), value.to_owned());
    move |object| object["metadata"]["labels"] = json!({(key.as_str()): value})
}

/// Gives a maintenance a status of these nodes, with `pending` pods on each.
pub fn speaks_of(nodes: &[&str], pending: i64) -> impl Fn(&mut Value) + Send + Sync + use<> {
    let status = |node: &&str| json!({"nodeRef": {"name": node}, "podsPendingEvacuation": pending, "podsEvacuating": 0});
    let nodes: Vec<Value> = nodes.iter().map(status).collect();
    move |object| object["status"]["nodeStatuses"] = json!(nodes)
}
