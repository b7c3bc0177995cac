//! Moves of objects from the embedded store to etcd, and back.

use drydock_storage::backend::{BackendError, CompactionTurn, CompareAndSwap, Revision, WriteOutcome};
use drydock_storage::testing::backend_suite::harness::*;
use drydock_storage_etcd::{EtcdBackend, EtcdConfig, PrefixImport};
use drydock_storage_sqlite as sqlite;

use super::{SILENT, open};
use crate::migrate;
use drydock_storage_etcd::testing::TestEtcd;

async fn fill(store: &Store, count: usize) -> Revision {
    for n in 0..count {
        let name = format!("n-{n:04}");
        create(store, &key(&name), &object(&name, "1")).await;
    }
    let first = create(store, &key("busy"), &object("busy", "0")).await;
    let second = update(store, &key("busy"), first, &object("busy", "1")).await;
    let gone = create(store, &key("gone"), &object("gone", "0")).await;
    delete(store, &key("gone"), gone).await;
    create(store, "/fences/leader", "7").await;
    second
}

/// Checks that a client of the old store gets the error that its revision is gone: no old events, and no wait for a
/// future revision.
async fn is_gone(store: &Store, old: Revision) {
    let failure = Watch::start(store, "/", old).await.failure().await;
    assert!(matches!(failure, BackendError::Compacted { .. }), "{old:?}: {failure:?}");
    for error in errors_at(store, old).await {
        assert!(matches!(error, BackendError::Compacted { .. }), "{old:?}: {error:?}");
    }
}

async fn values(store: &Store) -> Vec<(String, bytes::Bytes)> {
    all(store, None).await.into_iter().map(|pair| (pair.key, pair.value)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn embedded_objects_go_on_in_etcd_above_every_old_revision() {
    let (etcd, directory) = (TestEtcd::start(), tempfile::tempdir().unwrap());
    let path = directory.path().join("store.db");
    let store = open(&path);
    let busy = fill(&store, 1200).await;
    let (before, last) = (values(&store).await, store.current_revision().await.unwrap());
    drop(store);
    let config = etcd.config("/moved");
    let moved = migrate::to_etcd(&path, &config, &SILENT()).await.unwrap();
    assert_eq!((moved.keys, moved.from), (1202, last));
    let there = etcd.backend("/moved").await;
    assert_eq!(values(&there).await, before);
    for pair in all(&there, None).await {
        assert!(pair.mod_revision > last && pair.create_revision > last, "{pair:?}");
    }
    let current = there.current_revision().await.unwrap();
    assert!(moved.to > last && moved.to <= current);
    for old in [Revision(0), Revision(1), busy, last, Revision(last.0 + 1), Revision(moved.to.0 - 2)] {
        is_gone(&there, old).await;
    }
    // A write that expects an old revision is a conflict, not a create.
    assert!(matches!(cas(&there, &key("busy"), Some(busy), None).await, WriteOutcome::Conflict(Some(_), _)));
    let guard = drydock_storage::backend::Guard { key: key("busy"), revision: busy };
    let write = CompareAndSwap {
        key: "/x".into(),
        expected: None,
        value: value("1"),
        guard: Some(guard),
        priority: Default::default(),
    };
    assert!(matches!(there.write(write).await.unwrap(), WriteOutcome::GuardFailed));
    // The prefix works like any other: ordered events, compaction, a second server.
    let mut watch = Watch::start(&there, "/", current).await;
    let other = etcd.backend("/moved").await;
    let next = create(&other, "/new", "1").await;
    let event = watch.event().await;
    assert_eq!((event.revision, event.create_revision), (next, next));
    assert!(watch.until_progress(&there, next).await.is_empty());
    let turn = there.compaction_turn(CompactionTurn::default()).await.unwrap();
    update(&there, "/new", next, "2").await;
    there.compaction_turn(turn).await.unwrap();
    is_gone(&there, Revision(current.0 - 1)).await;
    assert_eq!(text(&there, "/new", None).await.as_deref(), Some("2"));
    sqlite::reclaim(&path, 0).unwrap();
    assert_eq!(values(&open(&path)).await, before, "what they came from is as it was");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn objects_in_etcd_keep_their_revisions_in_the_embedded_store() {
    let (etcd, directory) = (TestEtcd::start(), tempfile::tempdir().unwrap());
    let there = etcd.backend("/moved").await;
    let busy = fill(&there, 1200).await;
    let (before, last) = (all(&there, None).await, there.current_revision().await.unwrap());
    let path = directory.path().join("store.db");
    let moved = migrate::to_embedded(&etcd.config("/moved"), &path, &SILENT()).await.unwrap();
    assert_eq!((moved.keys, moved.from, moved.to), (1202, last, Revision(last.0 + 1)));
    sqlite::check(&path, &SILENT()).unwrap();
    let here = open(&path);
    assert_eq!(all(&here, None).await, before, "values and revisions");
    for old in [Revision(1), busy, Revision(last.0 - 1)] {
        is_gone(&here, old).await;
    }
    // A client that has seen everything can resume.
    let mut watch = Watch::start(&here, "/", last).await;
    let next = update(&here, &key("busy"), busy, &object("busy", "2")).await;
    let event = watch.event().await;
    assert_eq!((event.revision, event.previous.unwrap().mod_revision), (next, busy));
    assert!(next > moved.to);
    here.compact(next).await.unwrap();
    delete(&here, &key("busy"), next).await;
    sqlite::check(&path, &SILENT()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn there_and_back_revisions_only_grow() {
    let (etcd, directory) = (TestEtcd::start(), tempfile::tempdir().unwrap());
    let mut path = directory.path().join("0.db");
    let store = open(&path);
    let mut last = fill(&store, 30).await;
    let expected = values(&store).await;
    drop(store);
    for round in 1..4 {
        let config = etcd.config(&format!("/round-{round}"));
        let moved = migrate::to_etcd(&path, &config, &SILENT()).await.unwrap();
        assert!(moved.from >= last && moved.to > moved.from);
        path = directory.path().join(format!("{round}.db"));
        let back = migrate::to_embedded(&config, &path, &SILENT()).await.unwrap();
        assert!(back.to > moved.to);
        last = back.to;
    }
    assert_eq!(values(&open(&path)).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn a_place_that_is_in_use_is_not_moved_to_or_from() {
    let (etcd, directory) = (TestEtcd::start(), tempfile::tempdir().unwrap());
    let path = directory.path().join("store.db");
    let config = etcd.config("/used");
    let to_etcd =
        async |config: &EtcdConfig| migrate::to_etcd(&path, config, &SILENT()).await.unwrap_err().to_string();
    assert!(to_etcd(&config).await.contains("store.db does not exist"));
    assert!(!path.exists());
    let running = open(&path);
    fill(&running, 1).await;
    assert!(to_etcd(&config).await.contains("is in use by another process"));
    let error = migrate::to_embedded(&config, &path, &SILENT()).await.unwrap_err().to_string();
    assert!(error.contains("is in use by another process"), "{error}");
    drop(running);
    let error = migrate::to_embedded(&config, &path, &SILENT()).await.unwrap_err().to_string();
    assert!(error.contains("store.db exists"), "{error}");
    etcd.backend("/used").await;
    let error = to_etcd(&config).await;
    assert!(error.contains("/used is in use by an API server, or was"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn a_move_that_was_broken_off_lets_no_server_start_and_is_made_again() {
    let (etcd, directory) = (TestEtcd::start(), tempfile::tempdir().unwrap());
    let config = etcd.config("/moved");
    let path = directory.path().join("store.db");
    let store = open(&path);
    fill(&store, 10).await;
    let before = values(&store).await;
    let pairs = all(&store, None).await;
    drop(store);
    let mut broken = PrefixImport::begin(&config, Revision(5)).await.unwrap();
    broken.add(pairs[..5].to_vec()).await.unwrap();
    let error = EtcdBackend::connect(&config).await.err().unwrap().to_string();
    assert!(error.contains("/moved") && error.contains("run it again"), "{error}");
    migrate::to_etcd(&path, &config, &SILENT()).await.unwrap();
    // The aborted move still runs, and must not write any more.
    assert!(broken.add(pairs[5..].to_vec()).await.unwrap_err().to_string().contains("another process"));
    assert!(broken.finish().await.is_err());
    assert_eq!(values(&etcd.backend("/moved").await).await, before);
}
