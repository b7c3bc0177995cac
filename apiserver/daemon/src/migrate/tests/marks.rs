//! The mark of a store whose objects were moved away. Regression: a server that was started on it gave out revisions
//! that clients had seen for other objects.

use std::path::Path;
use std::sync::Arc;

use drydock_storage::backend::{BackendError, Revision};
use drydock_storage::testing::backend_suite::harness::*;
use drydock_storage_etcd::{self as etcd, EtcdBackend, EtcdConfig};
use drydock_storage_sqlite::{self as sqlite, SqliteBackend, SqliteOptions};

use super::{SILENT, open, place};
use crate::migrate;
use drydock_storage_etcd::testing::TestEtcd;

async fn fill(store: &Store) -> Revision {
    let first = create(store, &key("a"), &object("a", "1")).await;
    update(store, &key("a"), first, &object("a", "2")).await
}

fn refusal(path: &Path) -> String {
    SqliteBackend::open(path, SqliteOptions::default()).err().expect("it is marked").to_string()
}

async fn refusal_of(config: &EtcdConfig) -> String {
    EtcdBackend::connect(config).await.err().expect("it is marked").to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn no_server_starts_on_a_file_whose_objects_were_moved_until_it_is_reclaimed() {
    let (etcd, (directory, path)) = (TestEtcd::start(), place());
    let store = open(&path);
    let last = fill(&store).await;
    let before = all(&store, None).await;
    drop(store);
    let error = sqlite::reclaim(&path, 0).unwrap_err().to_string();
    assert!(error.contains("store.db has not been moved"), "{error}");
    let moved = migrate::to_etcd(&path, &etcd.config("/moved"), &SILENT()).await.unwrap();
    assert_eq!(moved.unmarked, None);
    for _ in 0..2 {
        let error = refusal(&path);
        assert!(
            error.contains("store.db: the objects were migrated to /moved in etcd (http://127."),
            "{error}"
        );
        assert!(error.contains("`reclaim`"), "{error}");
    }
    let again = migrate::to_etcd(&path, &etcd.config("/again"), &SILENT()).await.unwrap_err().to_string();
    assert!(again.contains("were migrated to /moved"), "{again}");
    // The store is complete, and so is a copy of it; both are marked.
    let copy = directory.path().join("copy.db");
    sqlite::check(&path, &SILENT()).unwrap();
    sqlite::backup(&path, &copy, &SILENT()).unwrap();
    assert!(refusal(&copy).contains("were migrated to /moved"));

    let revision = sqlite::reclaim(&path, 1000).unwrap();
    assert_eq!(revision.0, last.0 + 1000);
    sqlite::check(&path, &SILENT()).unwrap();
    let store = open(&path);
    assert_eq!((all(&store, None).await, store.current_revision().await.unwrap()), (before, revision));
    let failure = Watch::start(&store, "/", last).await.failure().await;
    assert!(matches!(failure, BackendError::Compacted { .. }), "{failure:?}");
    assert!(create(&store, "/new", "1").await > revision);
    // It can be moved again.
    drop(store);
    migrate::to_etcd(&path, &etcd.config("/again"), &SILENT()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn no_server_starts_on_a_prefix_whose_objects_were_moved_until_it_is_reclaimed() {
    let (etcd, (_directory, path)) = (TestEtcd::start(), place());
    let config = etcd.config("/left");
    let there = etcd.backend("/left").await;
    let last = fill(&there).await;
    let before = all(&there, None).await;
    assert!(etcd::reclaim(&config, 0).await.unwrap_err().to_string().contains("/left has not been moved"));
    let moved = migrate::to_embedded(&config, &path, &SILENT()).await.unwrap();
    assert_eq!(moved.unmarked, None);
    let error = refusal_of(&config).await;
    assert!(
        error.contains("prefix /left: the objects were migrated to") && error.contains("store.db"),
        "{error}"
    );
    assert!(error.contains("`reclaim`"), "{error}");
    let other = path.with_extension("other");
    let again = migrate::to_embedded(&config, &other, &SILENT()).await.unwrap_err().to_string();
    assert!(again.contains("the objects were migrated to") && !other.exists(), "{again}");
    // What is left there is not taken for the rest of an aborted move, which the next move would remove.
    let back = migrate::to_etcd(&path, &config, &SILENT()).await.unwrap_err().to_string();
    assert!(back.contains("/left is in use by an API server, or was"), "{back}");
    assert_eq!(all(&there, None).await, before);
    open(&path);

    let revision = etcd::reclaim(&config, 1000).await.unwrap();
    assert!(revision.0 > last.0 + 1000);
    let reclaimed: Store = Arc::new(EtcdBackend::connect(&config).await.unwrap());
    assert!(reclaimed.current_revision().await.unwrap() >= revision);
    let objects = all(&reclaimed, None).await;
    let bare = |pairs: &[drydock_storage::backend::KeyValue]| -> Vec<_> {
        pairs.iter().map(|pair| (pair.key.clone(), pair.value.clone())).collect()
    };
    assert_eq!(bare(&objects), bare(&before));
    let failure = Watch::start(&reclaimed, "/", last).await.failure().await;
    assert!(matches!(failure, BackendError::Compacted { .. }), "{failure:?}");
    assert!(create(&reclaimed, "/new", "1").await > revision);
}

/// Another process has the source file open and keeps everybody from writing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn a_store_that_cannot_be_marked_is_not_moved() {
    let (etcd, (_directory, path)) = (TestEtcd::start(), place());
    fill(&open(&path)).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let config = etcd.config("/moved");
    let error = migrate::to_etcd(&path, &config, &SILENT()).await.unwrap_err().to_string();
    assert!(error.contains("locked"), "{error}");
    assert!(refusal_of(&config).await.contains("run it again"));
    drop(other);
    open(&path);
    migrate::to_etcd(&path, &config, &SILENT()).await.unwrap();
    assert_eq!(all(&etcd.backend("/moved").await, None).await.len(), 1);
}
