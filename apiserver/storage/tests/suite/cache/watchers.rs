//! Cursors into the ring.

use drydock_storage::backend::Revision;
use drydock_storage::cache::Config;
use drydock_storage::storage::{ReadAt, Scope, StorageError, WatchFrom};

use super::{cache_over, gated, setup, small};
use crate::storage_suite::Fixture;

#[tokio::test]
async fn a_watcher_that_lags_reads_on_in_the_ring() {
    let setup = setup(small()).await;
    let start = setup.fixture.create("a/1", 0).await;
    let mut slow = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    for value in 1..1000 {
        setup.fixture.set("a/1", value).await;
    }
    for value in 1..1000 {
        assert_eq!(slow.told().await.0, format!("~a/1={value}"));
    }
}

#[tokio::test]
async fn a_watcher_is_expired_only_when_its_history_has_left_the_ring() {
    let setup = setup(Config { ring_events: 10, ..small() }).await;
    let start = setup.fixture.create("a/1", 0).await;
    setup.seen(start).await;
    let mut slow = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    let mut quick = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    for value in 1..50 {
        setup.fixture.set("a/1", value).await;
        assert_eq!(quick.told().await.0, format!("~a/1={value}"));
    }
    let failure = slow.failure().await;
    assert!(
        matches!(failure, StorageError::Expired { requested, .. } if requested == start.0),
        "{failure:?}"
    );
    assert_eq!(setup.metric(|metrics| &metrics.expired_watchers), 1);
    setup.fixture.set("a/1", 100).await;
    assert_eq!(quick.told().await.0, "~a/1=100");
}

#[tokio::test]
async fn a_watcher_at_the_edge_of_the_ring_goes_on() {
    let setup = setup(Config { ring_events: 10, ..small() }).await;
    let mut revisions = vec![setup.fixture.create("a/1", 0).await];
    for value in 1..=30 {
        revisions.push(setup.fixture.set("a/1", value).await);
    }
    setup.seen(revisions[30]).await;
    let mut edge = setup.fixture.follow(Scope::all(), WatchFrom::After(revisions[20])).await;
    assert_eq!(setup.metric(|metrics| &metrics.watchers), 1);
    for (value, revision) in revisions.iter().enumerate().skip(21) {
        assert_eq!(edge.told().await, (format!("~a/1={value}"), *revision));
    }
}

#[tokio::test]
async fn the_ring_is_bounded_in_bytes_too() {
    let setup = setup(Config { ring_bytes: 50_000, ..small() }).await;
    let mut last = setup.fixture.create("a/1", 0).await;
    for value in 1..200 {
        last = setup.fixture.set("a/1", value).await;
    }
    setup.seen(last).await;
    assert!(setup.metric(|metrics| &metrics.ring_bytes) <= 50_000);
    assert!(setup.metric(|metrics| &metrics.ring_events) < 30);
}

/// After a restart every client resumes at a revision that the new cache has never seen.
#[tokio::test]
async fn a_watch_resumes_at_a_revision_from_before_the_cache() {
    let (gate, directory) = gated().await;
    let before = Fixture {
        storage: std::sync::Arc::new(drydock_storage::store::Store::new(
            gate.clone(),
            "test.example",
            "widgets",
        )),
        backend: gate.clone(),
    };
    let start = before.create("a/1", 0).await;
    for value in 1..20 {
        before.set("a/1", value).await;
    }
    before.delete("a/1").await;
    let setup = cache_over(gate, directory, small());
    setup.cache.wait_until_ready().await;
    let mut resumed = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    for value in 1..20 {
        assert_eq!(resumed.told().await.0, format!("~a/1={value}"));
    }
    assert_eq!(resumed.told().await.0, "-a/1=19");
    for value in 30..40 {
        let key = format!("b/{value}");
        setup.fixture.create(&key, value).await;
        assert_eq!(resumed.told().await.0, format!("+{key}={value}"));
    }
    assert_eq!(setup.metric(|metrics| &metrics.watchers), 1, "the ring has not taken over");
}

#[tokio::test]
async fn a_watch_from_before_the_cache_and_the_compaction_is_expired() {
    let (gate, directory) = gated().await;
    let setup = cache_over(gate, directory, small());
    setup.cache.wait_until_ready().await;
    setup.fixture.create("a/1", 0).await;
    let last = setup.fixture.set("a/1", 1).await;
    setup.fixture.backend.compact(last).await.unwrap();
    let gate = setup.gate.clone();
    let again = drydock_storage::cache::Cache::start(
        drydock_storage::store::Store::new(gate.clone(), "test.example", "widgets"),
        small(),
    );
    again.wait_until_ready().await;
    let again = Fixture { storage: std::sync::Arc::new(again), backend: gate };
    let mut late = again.follow(Scope::all(), WatchFrom::After(Revision(last.0 - 2))).await;
    assert!(matches!(late.failure().await, StorageError::Expired { .. }));
}

#[tokio::test]
async fn dropping_the_cache_ends_its_watchers() {
    let setup = setup(small()).await;
    let from = WatchFrom::InitialEvents(ReadAt::NotOlderThan(Revision(0)));
    let mut watcher = setup.fixture.follow(Scope::all(), from).await;
    assert_eq!(watcher.words(1).await, ["|"]);
    drop(setup);
    watcher.failure().await;
}
