//! An etcd that does not answer, and a server that reports it until it does.
//!
//! Regression: a replica that had lost etcd stayed ready and kept its share of the traffic during the whole outage:
//! each default get and list on it failed, while the other replica answered all of them.

use std::time::Duration;

use drydock_storage::backend::{BackendError, Revision};
use drydock_storage::testing::backend_suite::harness::*;

use drydock_storage_etcd::testing::TestEtcd;

/// Longer than the detection takes; not a measurement.
const TEST_DEADLINE: Duration = Duration::from_secs(60);

/// Waits until a server reports whether it can read. No requests are made meanwhile.
async fn until(store: &Store, says: impl Fn(&Option<String>) -> bool) -> Option<String> {
    let mut look = tokio::time::interval(Duration::from_millis(50));
    let told = async {
        loop {
            look.tick().await;
            let said = store.refuses_reads();
            if says(&said) {
                return said;
            }
        }
    };
    tokio::time::timeout(TEST_DEADLINE, told).await.expect("it is told")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_nobody_asks_finds_out_that_etcd_does_not_answer_and_that_it_does() {
    let etcd = TestEtcd::start();
    let store = etcd.backend("/suite").await;
    assert_eq!(store.refuses_reads(), None);
    etcd.pause();
    let why = until(&store, Option::is_some).await.unwrap_or_default();
    assert!(why.contains("etcd has given no answer for"), "{why}");
    etcd.resume();
    until(&store, Option::is_none).await;
    create(&store, "/a", "1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_nobody_asks_finds_out_that_etcd_is_gone_and_that_it_is_back() {
    let mut etcd = TestEtcd::start();
    let store = etcd.backend("/suite").await;
    let at = create(&store, "/a", "1").await;
    etcd.kill();
    let why = until(&store, Option::is_some).await.unwrap_or_default();
    assert!(why.contains("etcd has given no answer for"), "{why}");
    etcd.restart();
    until(&store, Option::is_none).await;
    update(&store, "/a", at, "2").await;
}

/// What needs no quorum does not count: a watch's stream and its events, keep-alives, new connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_that_need_no_quorum_are_no_answers_and_those_that_do_are() {
    let etcd = TestEtcd::start();
    let store = etcd.backend("/suite").await;
    let at = create(&store, "/a", "1").await;
    let last = update(&store, "/a", at, "2").await;
    store.compact(last).await.unwrap();
    etcd.pause();
    until(&store, Option::is_some).await;
    let read = store.get("/a", Some(at)).await;
    assert!(matches!(read, Err(BackendError::Unavailable(_))), "{read:?}");
    assert!(store.get("/a", Some(Revision(0))).await.is_err(), "answered here");
    assert!(store.refuses_reads().is_some());
    etcd.resume();
    let read = store.get("/a", Some(at)).await;
    assert!(matches!(read, Err(BackendError::Compacted { .. })), "{read:?}");
    assert_eq!(store.refuses_reads(), None);
}
