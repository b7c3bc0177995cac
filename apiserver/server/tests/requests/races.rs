//! Writes whose first read is old: they are decided on the newest state in the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use async_trait::async_trait;
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{Admission, AdmissionAttributes, AdmissionOperation};
use drydock_server::api_group::ApiGroup;
use drydock_server::handlers::Resource;
use drydock_storage::backend::{Backend, Revision, Shortage, WriteContext};
use drydock_storage::cache::{Config, WatchCache};
use drydock_storage::storage::{
    MemoryBudget, NextState, Page, PageOptions, ReadAt, Replaced, Scope, Storage, StorageError, Stored,
    WatchFrom, Watcher,
};
use drydock_storage::store::Store;
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{GADGETS, Server};
use crate::gadget::Gadget;

/// A cache that has fallen behind: a read that accepts any state gets the one that was remembered.
struct Behind {
    cache: WatchCache,
    old: Mutex<Option<Arc<Stored>>>,
    /// Number of reads of the latest state.
    latest_reads: AtomicUsize,
}

#[async_trait]
impl Storage for Behind {
    async fn create(
        &self,
        key: &str,
        object: Object,
        context: WriteContext<'_>,
    ) -> Result<Arc<Stored>, StorageError> {
        self.cache.create(key, object, context).await
    }

    async fn get(&self, key: &str, at: ReadAt) -> Result<Arc<Stored>, StorageError> {
        if at == ReadAt::NotOlderThan(Revision(0))
            && let Some(old) = self.old.lock().clone()
        {
            return Ok(old);
        }
        self.latest_reads.fetch_add(1, Relaxed);
        self.cache.get(key, ReadAt::Latest).await
    }

    async fn list(
        &self,
        scope: &Scope,
        options: &PageOptions,
        memory: &mut dyn MemoryBudget,
    ) -> Result<Page, StorageError> {
        self.cache.list(scope, options, memory).await
    }

    async fn replace(
        &self,
        key: &str,
        present: &Arc<Stored>,
        next: NextState,
        context: WriteContext<'_>,
    ) -> Result<Replaced, StorageError> {
        self.cache.replace(key, present, next, context).await
    }

    async fn watch(&self, scope: Scope, from: WatchFrom) -> Result<Box<dyn Watcher>, StorageError> {
        self.cache.watch(scope, from).await
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.cache.current_revision().await
    }

    fn listed_bytes(&self, scope: &Scope, options: &PageOptions, enough: usize) -> usize {
        self.cache.listed_bytes(scope, options, enough)
    }

    fn shortage(&self) -> Option<Shortage> {
        self.cache.shortage()
    }

    fn ready(&self) -> bool {
        self.cache.ready()
    }
}

/// Writes down the resourceVersions of the states that updates and deletes are decided on.
#[derive(Default)]
struct Decisions(Mutex<Vec<String>>);

#[async_trait]
impl Admission for Decisions {
    async fn admit(&self, a: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        if a.operation != AdmissionOperation::Create {
            self.0.lock().push(a.old.unwrap().resource_version().to_owned());
        }
        Ok(())
    }
}

/// A server of the gadget `a`, of which a first read gets an old state.
struct Late {
    server: Server,
    storage: Arc<Behind>,
    decisions: Arc<Decisions>,
    old: Value,
    newest: Value,
}

const URI: &str = "/apis/test.io/v1/namespaces/ns/gadgets/a";

impl Late {
    /// The old state has the label `a: old`; `patch` makes the newest state of it.
    async fn after(patch: Value) -> Self {
        let late = Self::start().await;
        let newest = late.server.merge(URI, &patch).await.expect(200);
        late.reset();
        Self { newest, ..late }
    }

    async fn after_a_delete() -> Self {
        let late = Self::start().await;
        late.server.delete(URI).await.expect(200);
        late.reset();
        late
    }

    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let backend: Arc<dyn Backend> =
            Arc::new(SqliteBackend::open(dir.path().join("db"), SqliteOptions::default()).unwrap());
        let cache = WatchCache::start(Store::new(backend.clone(), "test.io", "gadgets"), Config::default());
        cache.wait_until_ready().await;
        let caches = [cache.metrics(), cache.metrics()];
        let storage = Arc::new(Behind { cache, old: Mutex::default(), latest_reads: AtomicUsize::new(0) });
        let decisions = Arc::<Decisions>::default();
        let resource = Resource {
            kind: Arc::new(Gadget::namespaced()),
            storage: storage.clone(),
            admission: vec![decisions.clone()],
            usage: None,
            versions: None,
        };
        let (api, shutdown) = (ApiGroup::new(vec![resource]), CancellationToken::new());
        let server = Server { api, backend, shutdown, caches, _dir: dir };
        let old = server.gadget("a", json!({"metadata": {"labels": {"a": "old"}}})).await;
        *storage.old.lock() = Some(storage.cache.get("ns/a", ReadAt::Latest).await.unwrap());
        Self { server, storage, decisions, newest: old.clone(), old }
    }

    fn reset(&self) {
        self.decisions.0.lock().clear();
        self.storage.latest_reads.store(0, Relaxed);
    }

    /// Checks on which states a write was decided, and how often it read the latest state.
    #[track_caller]
    fn decided_on(&self, states: &[&Value], latest_reads: usize) {
        let versions: Vec<&str> =
            states.iter().map(|state| state["metadata"]["resourceVersion"].as_str().unwrap()).collect();
        assert_eq!(*self.decisions.0.lock(), versions);
        assert_eq!(self.storage.latest_reads.load(Relaxed), latest_reads);
    }
}

fn label(name: &str, value: &str) -> Value {
    json!({"metadata": {"labels": {name: value}}})
}

#[tokio::test]
async fn a_conflict_leads_to_a_decision_on_the_newest_state_without_another_read() {
    let late = Late::after(label("b", "newest")).await;
    let answer = late.server.merge(URI, &label("c", "mine")).await.expect(200);
    assert_eq!(answer["metadata"]["labels"], json!({"a": "old", "b": "newest", "c": "mine"}));
    late.decided_on(&[&late.old, &late.newest], 0);
}

/// A patch that changes nothing of the old state is decided on the newest one too.
#[tokio::test]
async fn a_patch_that_changes_nothing_of_an_old_state_changes_the_newest() {
    let late = Late::after(label("a", "newest")).await;
    let answer = late.server.merge(URI, &label("a", "old")).await.expect(200);
    assert_eq!(answer["metadata"]["labels"], json!({"a": "old"}));
    assert!(
        ![&late.old, &late.newest]
            .iter()
            .any(|state| state["metadata"]["resourceVersion"] == answer["metadata"]["resourceVersion"])
    );
    late.decided_on(&[&late.old, &late.newest], 0);
}

#[tokio::test]
async fn a_patch_that_changes_nothing_of_the_newest_state_keeps_its_version() {
    let late = Late::after(label("b", "newest")).await;
    let answer = late.server.merge(URI, &label("b", "newest")).await.expect(200);
    assert_eq!(answer, late.newest);
    late.decided_on(&[&late.old, &late.newest], 0);
}

/// The update names the version of the newest state, which the old one has not.
#[tokio::test]
async fn a_refusal_that_an_old_state_led_to_does_not_count() {
    let late = Late::after(label("b", "newest")).await;
    let mut object = late.newest.clone();
    object["spec"]["size"] = json!(7);
    assert_eq!(late.server.put(URI, &object).await.expect(200)["spec"]["size"], 7);
    late.decided_on(&[&late.newest], 1);
}

#[tokio::test]
async fn a_refusal_that_the_newest_state_led_to_counts() {
    let late = Late::after(label("b", "newest")).await;
    let mut object = late.old.clone();
    object["spec"]["size"] = json!(7);
    assert_eq!(late.server.put(URI, &object).await.expect(409)["reason"], "Conflict");
    late.decided_on(&[&late.old], 0);
}

#[tokio::test]
async fn an_object_that_was_deleted_meanwhile_is_not_found() {
    let late = Late::after_a_delete().await;
    late.server.merge(URI, &label("c", "mine")).await.expect(404);
    late.server.merge(URI, &label("a", "old")).await.expect(404);
    late.server.delete(URI).await.expect(404);
    late.decided_on(&[&late.old, &late.old, &late.old], 0);
    assert_eq!(late.server.get(GADGETS).await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn a_delete_heeds_a_finalizer_that_the_old_state_has_not() {
    let late = Late::after(json!({"metadata": {"finalizers": ["test.io/hold"]}})).await;
    let pending = late.server.delete(URI).await.expect(200);
    assert_eq!(pending["metadata"]["finalizers"], json!(["test.io/hold"]));
    assert!(pending["metadata"]["deletionTimestamp"].is_string());
    late.decided_on(&[&late.old, &late.newest], 0);
}

#[tokio::test]
async fn a_dry_run_reads_the_latest_state() {
    let late = Late::after(label("b", "newest")).await;
    let uri = format!("{URI}?dryRun=All");
    let answer = late.server.merge(&uri, &label("c", "mine")).await.expect(200);
    assert_eq!(answer["metadata"]["labels"], json!({"a": "old", "b": "newest", "c": "mine"}));
    late.decided_on(&[&late.newest], 1);
}
