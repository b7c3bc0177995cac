//! Objects that a move must not touch, moves of nothing, and moves whose last response was lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drydock_storage::backend::{CompareAndSwap, Guard, Revision, WriteOutcome};
use drydock_storage::testing::backend_suite::harness::*;
use drydock_storage_etcd::PrefixImport;
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};
use etcd_client::Client;
use tempfile::TempDir;

use super::SILENT;
use super::lossy_proxy::LossyProxy;
use crate::migrate;
use drydock_storage_etcd::testing::TestEtcd;

/// Returns a store with `count` objects.
async fn filled(count: usize) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store: Store = Arc::new(SqliteBackend::open(&path, SqliteOptions::default()).unwrap());
    for n in 0..count {
        let name = format!("n-{n}");
        create(&store, &key(&name), &object(&name, "1")).await;
    }
    drop(store);
    (directory, path)
}

async fn client(etcd: &TestEtcd) -> Client {
    Client::connect(&etcd.config("").servers, None).await.unwrap()
}

/// Returns etcd's own revision, which shows whether anything was written.
async fn revision(etcd: &TestEtcd) -> i64 {
    client(etcd).await.get("any", None).await.unwrap().header().unwrap().revision()
}

async fn to_etcd_fails(path: &Path, etcd: &TestEtcd, prefix: &str) -> String {
    migrate::to_etcd(path, &etcd.config(prefix), &SILENT()).await.unwrap_err().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn objects_whose_prefix_nobody_claimed_are_not_removed() {
    let (etcd, (_directory, path)) = (TestEtcd::start(), filled(3).await);
    let there = etcd.backend("/old").await;
    create(&there, &key("precious"), &object("precious", "1")).await;
    // They were written by a server from before prefixes had a record.
    client(&etcd).await.delete("/old/origin", None).await.unwrap();
    let before = revision(&etcd).await;
    let error = to_etcd_fails(&path, &etcd, "/old").await;
    assert!(error.contains("/old is in use") && error.contains("--etcd-prefix"), "{error}");
    assert_eq!(revision(&etcd).await, before, "nothing was written");
    assert_eq!(all(&there, None).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn nothing_but_marks_is_written_to_the_etcd_that_objects_come_from() {
    let (etcd, directory) = (TestEtcd::start(), tempfile::tempdir().unwrap());
    let there = etcd.backend("/old").await;
    create(&there, &key("precious"), &object("precious", "1")).await;
    client(&etcd).await.delete("/old/origin", None).await.unwrap();
    let before = revision(&etcd).await;
    let path = directory.path().join("store.db");
    let moved = migrate::to_embedded(&etcd.config("/old"), &path, &SILENT()).await.unwrap();
    assert_eq!((moved.keys, moved.unmarked, revision(&etcd).await), (1, None, before + 2));
    assert_eq!(all(&there, None).await.len(), 1);
    // A failed move has marked nothing.
    let error = migrate::to_embedded(&etcd.config("/old"), &path, &SILENT()).await.unwrap_err();
    assert!(error.to_string().contains("store.db exists"), "{error}");
    assert_eq!(revision(&etcd).await, before + 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn a_move_of_nothing_is_refused_and_leaves_nothing() {
    let (etcd, (directory, path)) = (TestEtcd::start(), filled(0).await);
    etcd.backend("/right").await;
    let before = revision(&etcd).await;
    let target = directory.path().join("target.db");
    for prefix in ["/wrong", "/right"] {
        let error =
            migrate::to_embedded(&etcd.config(prefix), &target, &SILENT()).await.unwrap_err().to_string();
        assert!(error.contains(prefix) && error.contains("--etcd-prefix"), "{error}");
        assert!(!target.exists() && !directory.path().join("target.db.new").exists());
    }
    let error = to_etcd_fails(&path, &etcd, "/new").await;
    assert!(error.contains("store.db") && error.contains("--data-dir"), "{error}");
    assert_eq!(revision(&etcd).await, before, "nothing was written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn a_move_whose_last_answer_is_lost_is_done() {
    let etcd = TestEtcd::start();
    etcd.backend("/other").await;
    for times in [1, 2] {
        let (_directory, path) = filled(20).await;
        let prefix = format!("/moved-{times}");
        let lossy = LossyProxy::start(etcd.client_port(), r#""floor":"#, times).await;
        let mut config = etcd.config(&prefix);
        config.servers = vec![format!("http://127.0.0.1:{}", lossy.port)];
        let moved = migrate::to_etcd(&path, &config, &SILENT()).await.unwrap();
        assert!(lossy.left() < times, "an answer was lost");
        assert_eq!((moved.keys, all(&etcd.backend(&prefix).await, None).await.len()), (20, 20));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn no_revision_of_a_moved_store_means_that_a_key_is_absent() {
    let etcd = TestEtcd::start();
    let config = etcd.config("/moved");
    PrefixImport::begin(&config, Revision(100)).await.unwrap().finish().await.unwrap();
    let record = client(&etcd).await.get("/moved/origin", None).await.unwrap();
    let record: serde_json::Value = serde_json::from_slice(record.kvs()[0].value()).unwrap();
    let offset = Revision(record["offset"].as_u64().filter(|offset| *offset > 0).unwrap());
    let there = etcd.backend("/moved").await;
    let outcome = cas(&there, "/a", Some(offset), value("1")).await;
    assert!(matches!(outcome, WriteOutcome::Conflict(None, _)), "{outcome:?}");
    let guard = Some(Guard { key: "/absent".into(), revision: offset });
    let outcome = there
        .write(CompareAndSwap {
            key: "/a".into(),
            expected: None,
            value: value("1"),
            guard,
            priority: Default::default(),
        })
        .await;
    assert!(matches!(outcome, Ok(WriteOutcome::GuardFailed)), "{outcome:?}");
    assert_eq!(text(&there, "/a", None).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn an_object_that_is_too_large_for_etcd_is_named() {
    let (etcd, (_directory, path)) = (TestEtcd::start(), filled(2).await);
    let store: Store = Arc::new(SqliteBackend::open(&path, SqliteOptions::default()).unwrap());
    let room = SqliteOptions::default().max_value - key("huge").len() - object("huge", "").len();
    create(&store, &key("huge"), &object("huge", &"x".repeat(room))).await;
    drop(store);
    let error = to_etcd_fails(&path, &etcd, "/moved").await;
    assert!(error.contains(&key("huge")) && error.contains("--max-request-bytes"), "{error}");
}
