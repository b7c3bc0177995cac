//! Moves while servers run, and moves that are aborted: no write is lost, and the same command continues.

use std::path::Path;

use drydock_storage::backend::{BackendError, CompareAndSwap, WriteOutcome};
use drydock_storage::testing::backend_suite::harness::*;
use drydock_storage_etcd::{self as etcd, EtcdBackend, EtcdConfig, PrefixImport};
use drydock_storage_sqlite::{self as sqlite, SqliteBackend, SqliteOptions};
use etcd_client::Client;

use super::{SILENT, open, place};
use crate::migrate;
use drydock_storage_etcd::testing::TestEtcd;

async fn fill(store: &Store, count: usize) {
    for n in 0..count {
        let name = format!("n-{n:04}");
        create(store, &key(&name), &object(&name, "1")).await;
    }
}

async fn values(store: &Store) -> Vec<(String, bytes::Bytes)> {
    all(store, None).await.into_iter().map(|pair| (pair.key, pair.value)).collect()
}

/// Writes until a write is refused. Returns the number of acknowledged writes, and the error.
async fn write_on(store: Store) -> (usize, BackendError) {
    for n in 0.. {
        let name = format!("more-{n}");
        let to = value(object(&name, "1"));
        match store
            .write(CompareAndSwap {
                key: key(&name),
                expected: None,
                value: to,
                guard: None,
                priority: Default::default(),
            })
            .await
        {
            Ok(WriteOutcome::Committed(_)) => {}
            Ok(outcome) => panic!("{outcome:?}"),
            Err(error) => return (n, error),
        }
    }
    unreachable!("writes go on for ever")
}

/// Returns the record of a prefix, and its revision.
async fn record(etcd: &TestEtcd, prefix: &str) -> (serde_json::Value, i64) {
    let mut client = Client::connect(&etcd.config("").servers, None).await.unwrap();
    let got = client.get(format!("{prefix}/origin"), None).await.unwrap();
    (serde_json::from_slice(got.kvs()[0].value()).unwrap(), got.kvs()[0].mod_revision())
}

async fn set_record(etcd: &TestEtcd, prefix: &str, to: serde_json::Value) -> i64 {
    let mut client = Client::connect(&etcd.config("").servers, None).await.unwrap();
    client.put(format!("{prefix}/origin"), to.to_string(), None).await.unwrap();
    record(etcd, prefix).await.1
}

/// Marks a file as one whose move was aborted in this attempt.
fn mark(path: &Path, attempt: u64) {
    let file = rusqlite::Connection::open(path).unwrap();
    file.execute_batch(
        "DROP TABLE IF EXISTS moved; DROP TABLE IF EXISTS moving; CREATE TABLE moving (place TEXT NOT NULL, attempt INTEGER NOT NULL) STRICT",
    )
    .unwrap();
    file.execute("INSERT INTO moving (place, attempt) VALUES ('some where', ?1)", [attempt]).unwrap();
}

async fn to_embedded(config: &EtcdConfig, path: &Path) -> Result<migrate::Moved, BackendError> {
    migrate::to_embedded(config, path, &SILENT()).await
}

/// Regression: running servers still wrote to the store that was being moved, and all that they acknowledged was
/// lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn what_a_running_server_acknowledges_is_moved_and_the_rest_is_refused() {
    let (etcd, (_directory, path)) = (TestEtcd::start(), place());
    let (config, there) = (etcd.config("/left"), etcd.backend("/left").await);
    fill(&there, 1200).await;
    let idle = etcd.backend("/left").await;
    let writing = tokio::spawn(write_on(there));
    let mut watch = Watch::start(&idle, &key("more-"), idle.current_revision().await.unwrap()).await;
    watch.event().await;
    let moved = to_embedded(&config, &path).await.unwrap();
    let (acknowledged, refusal) = writing.await.unwrap();
    assert!(matches!(refusal, BackendError::Closed(_)), "{refusal}");
    let why = refusal.to_string();
    let names_it = ["the objects were migrated to", "a migration to"].iter().any(|it| why.contains(it));
    assert!(why.contains("refuses writes: ") && names_it, "{why}");
    assert_eq!(moved.keys as usize, 1200 + acknowledged);
    assert_eq!(values(&open(&path)).await, values(&idle).await);
    // An idle server reports it too, and still does after a reclaim that it does not know of.
    until_it_says(&idle, |why| why.is_some_and(|why| why.contains("store.db"))).await;
    etcd::reclaim(&config, 1000).await.unwrap();
    until_it_says(&idle, |why| why.is_some_and(|why| why.contains("start the server again"))).await;
    let late = CompareAndSwap {
        key: "/late".into(),
        expected: None,
        value: value("1"),
        guard: None,
        priority: Default::default(),
    };
    assert!(matches!(idle.write(late).await, Err(BackendError::Closed(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn a_server_writes_again_when_a_move_has_failed() {
    let (etcd, (_directory, path)) = (TestEtcd::start(), place());
    let (config, there) = (etcd.config("/left"), etcd.backend("/left").await);
    fill(&there, 3).await;
    let bad = create(&there, "/registry/bad", "no object").await;
    let error = to_embedded(&config, &path).await.unwrap_err().to_string();
    assert!(error.contains("/registry/bad"), "{error}");
    // The watch of the record reports it.
    until_it_says(&there, |why| why.is_none()).await;
    delete(&there, "/registry/bad", bad).await;
    assert_eq!(to_embedded(&config, &path).await.unwrap().keys, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn a_move_out_of_etcd_that_was_broken_off_goes_on_by_the_same_command() {
    let (etcd, (_directory, path)) = (TestEtcd::start(), place());
    let (config, there) = (etcd.config("/left"), etcd.backend("/left").await);
    fill(&there, 3).await;
    let broken = etcd::MoveSource::inspect(&config).await.unwrap().close("/some/where").await.unwrap();
    let error = EtcdBackend::connect(&config).await.err().unwrap().to_string();
    assert!(error.contains("a migration to /some/where") && error.contains("run it again"), "{error}");
    let moved = to_embedded(&config, &path).await.unwrap();
    assert_eq!((moved.keys, moved.unmarked), (3, None));
    // The aborted move still runs, and gets the error that it is over.
    assert!(broken.check_unchanged().await.is_err());
    assert!(broken.done("/some/where").await.is_err());
    assert_eq!(values(&open(&path)).await, values(&there).await);
}

/// The move was killed after the file had its name, and before etcd had the final mark.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn a_move_out_of_etcd_that_lacks_nothing_but_its_last_mark_gets_it() {
    let (etcd, (directory, path)) = (TestEtcd::start(), place());
    let config = etcd.config("/left");
    fill(&etcd.backend("/left").await, 3).await;
    let moved = to_embedded(&config, &path).await.unwrap();
    let was = record(&etcd, "/left").await.0["was"].take();
    let attempt = set_record(&etcd, "/left", serde_json::json!({"moving": "p", "was": was})).await;
    // A file that another attempt filled is not accepted.
    let error = to_embedded(&config, &path).await.unwrap_err().to_string();
    assert!(error.contains("store.db exists"), "{error}");
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute("UPDATE meta SET number = ?1 WHERE name = 'import'", [attempt]).unwrap();
    drop(file);
    // A server has written to it.
    create(&open(&path), &key("since"), &object("since", "1")).await;
    let again = to_embedded(&config, &path).await.unwrap();
    assert_eq!((again.keys, again.unmarked), (moved.keys, None));
    let error = to_embedded(&config, &directory.path().join("other.db")).await.unwrap_err().to_string();
    assert!(error.contains("the objects were migrated to") && error.contains("store.db"), "{error}");
    assert_eq!(values(&open(&path)).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn a_move_into_etcd_that_was_broken_off_goes_on_by_the_same_command() {
    let (etcd, (_directory, path)) = (TestEtcd::start(), place());
    let (store, config) = (open(&path), etcd.config("/moved"));
    fill(&store, 20).await;
    let (before, last) = (all(&store, None).await, store.current_revision().await.unwrap());
    drop(store);
    let mut broken = PrefixImport::begin(&config, last).await.unwrap();
    broken.add(before[..5].to_vec()).await.unwrap();
    mark(&path, broken.attempt());
    let refusal = SqliteBackend::open(&path, SqliteOptions::default()).err().unwrap().to_string();
    assert!(refusal.contains("a migration to some where") && refusal.contains("run it again"), "{refusal}");
    sqlite::check(&path, &SILENT()).unwrap();
    assert_eq!(migrate::to_etcd(&path, &config, &SILENT()).await.unwrap().unmarked, None);
    let there = etcd.backend("/moved").await;
    assert_eq!(values(&there).await.len(), 20);

    // The move was killed after servers could start on the prefix, and before the file had its mark; a server has
    // written.
    create(&there, &key("since"), &object("since", "1")).await;
    let (filled, _) = record(&etcd, "/moved").await;
    mark(&path, broken.attempt());
    let error = migrate::to_etcd(&path, &config, &SILENT()).await.unwrap_err().to_string();
    assert!(error.contains("/moved is in use"), "another attempt filled it: {error}");
    mark(&path, filled["filled"].as_u64().unwrap());
    let again = migrate::to_etcd(&path, &config, &SILENT()).await.unwrap();
    assert_eq!((again.keys, again.to.0, again.unmarked), (20, filled["floor"].as_u64().unwrap(), None));
    let refusal = SqliteBackend::open(&path, SqliteOptions::default()).err().unwrap().to_string();
    assert!(refusal.contains("were migrated to /moved"), "{refusal}");
    assert_eq!(values(&there).await.len(), 21);
    // Alternatively, the file is reclaimed.
    mark(&path, 1);
    sqlite::reclaim(&path, 1000).unwrap();
    assert_eq!(all(&open(&path), None).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: conformance/test storage"]
async fn a_store_that_could_not_be_moved_into_etcd_is_not_marked() {
    let (etcd, (_directory, path)) = (TestEtcd::start(), place());
    let store = open(&path);
    let room = SqliteOptions::default().max_value - key("huge").len() - object("huge", "").len();
    create(&store, &key("huge"), &object("huge", &"x".repeat(room))).await;
    drop(store);
    let error = migrate::to_etcd(&path, &etcd.config("/moved"), &SILENT()).await.unwrap_err().to_string();
    assert!(error.contains("--max-request-bytes"), "{error}");
    open(&path);
}
