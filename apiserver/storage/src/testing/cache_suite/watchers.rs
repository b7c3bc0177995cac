//! Watchers as cursors into the ring.

use std::sync::Arc;

use super::{setup, small};
use crate::backend::{Backend, Revision};
use crate::cache::Config;
use crate::storage::{ReadAt, Scope, StorageError, WatchFrom};
use crate::testing::storage_suite::object;

pub async fn a_watcher_that_lags_reads_on_in_the_ring(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    let start = setup.fixture.create("a/1", 0).await;
    let mut slow = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    for value in 1..1000 {
        setup.fixture.set("a/1", value).await;
    }
    for value in 1..1000 {
        assert_eq!(slow.next_as_text().await.0, format!("~a/1={value}"));
    }
}

pub async fn a_watcher_is_expired_only_when_its_history_has_left_the_ring(backend: Arc<dyn Backend>) {
    let setup = setup(backend, Config { ring_events: 10, ..small() }).await;
    let start = setup.fixture.create("a/1", 0).await;
    setup.seen(start).await;
    let mut slow = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    let mut quick = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    for value in 1..50 {
        setup.fixture.set("a/1", value).await;
        assert_eq!(quick.next_as_text().await.0, format!("~a/1={value}"));
    }
    let failure = slow.failure().await;
    assert!(
        matches!(failure, StorageError::Expired { requested, .. } if requested == start.0),
        "{failure:?}"
    );
    assert_eq!(setup.metric(|metrics| &metrics.expired_watchers), 1);
    setup.fixture.set("a/1", 100).await;
    assert_eq!(quick.next_as_text().await.0, "~a/1=100");
}

pub async fn a_watcher_at_the_edge_of_the_ring_goes_on(backend: Arc<dyn Backend>) {
    let setup = setup(backend, Config { ring_events: 10, ..small() }).await;
    let mut revisions = vec![setup.fixture.create("a/1", 0).await];
    for value in 1..=30 {
        revisions.push(setup.fixture.set("a/1", value).await);
    }
    setup.seen(revisions[30]).await;
    let mut edge = setup.fixture.follow(Scope::all(), WatchFrom::After(revisions[20])).await;
    assert_eq!(setup.metric(|metrics| &metrics.watchers), 1);
    for (value, revision) in revisions.iter().enumerate().skip(21) {
        assert_eq!(edge.next_as_text().await, (format!("~a/1={value}"), *revision));
    }
}

pub async fn the_ring_is_bounded_in_bytes_too(backend: Arc<dyn Backend>) {
    let setup = setup(backend, Config { ring_bytes: 50_000, ..small() }).await;
    let mut last = setup.fixture.create("a/1", 0).await;
    for value in 1..200 {
        last = setup.fixture.set("a/1", value).await;
    }
    setup.seen(last).await;
    assert!(setup.metric(|metrics| &metrics.ring_bytes) <= 50_000);
    assert!(setup.metric(|metrics| &metrics.ring_events) < 30);
}

/// Regression: the ring counted nothing for a deletion, and kept thousands of large deleted objects.
pub async fn deleted_objects_count_for_as_long_as_the_ring_has_them(backend: Arc<dyn Backend>) {
    let setup = setup(backend, Config { ring_bytes: 200_000, ..small() }).await;
    let key = |number: u64| format!("a/{number:02}");
    for number in 0..40 {
        let mut object = object(&key(number), number);
        object.0.insert("padding".to_owned(), "x".repeat(10_000).into());
        setup.fixture.storage.create(&key(number), object, Default::default()).await.unwrap();
    }
    let mut last = Revision(0);
    for number in 0..40 {
        last = setup.fixture.delete(&key(number)).await;
    }
    setup.seen(last).await;
    let kept = setup.metric(|metrics| &metrics.ring_events);
    assert!((1..=20).contains(&kept), "{kept} deleted objects of 10 KB in 200 KB");
}

pub async fn dropping_the_cache_ends_its_watchers(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    let from = WatchFrom::InitialEvents(ReadAt::NotOlderThan(Revision(0)));
    let mut watcher = setup.fixture.follow(Scope::all(), from).await;
    assert_eq!(watcher.words(1).await, ["|"]);
    drop(setup);
    watcher.failure().await;
}
