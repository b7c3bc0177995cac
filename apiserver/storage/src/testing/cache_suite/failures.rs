//! The cache while the backend fails.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use super::{cache_over, gated, impatient, setup, small};
use crate::backend::{Backend, BackendError, CompareAndSwap, Revision};
use crate::storage::{ReadAt, Scope, Storage, StorageError, UnlimitedMemory, WatchFrom};
use crate::testing::storage_suite::{WATCH_DEADLINE, all, read_value};

pub async fn a_broken_watch_is_resumed_and_no_watcher_notices(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    let start = setup.fixture.create("a/1", 1).await;
    let mut watcher = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    for value in 2..6 {
        setup.gate.break_watches(BackendError::Unavailable("gone".to_owned()));
        setup.fixture.set("a/1", value).await;
        assert_eq!(watcher.next_as_text().await.0, format!("~a/1={value}"));
    }
    assert_eq!(setup.metric(|metrics| &metrics.fills), 1);
}

pub async fn lost_history_fills_the_cache_anew_and_ends_its_watchers(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    let start = setup.fixture.create("a/1", 1).await;
    setup.seen(start).await;
    let mut watcher = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    setup.gate.hold();
    setup.fixture.set("a/1", 2).await;
    let last = setup.fixture.create("a/2", 3).await;
    setup.gate.break_watches(BackendError::Compacted { requested: start, oldest: last });
    assert!(matches!(watcher.failure().await, StorageError::Expired { .. }));
    setup.cache.wait_until_ready().await;
    assert_eq!(setup.metric(|metrics| &metrics.fills), 2);
    let page = setup.fixture.list(&Scope::all(), ReadAt::NotOlderThan(last)).await;
    assert_eq!(page.items.iter().map(|stored| read_value(&stored.object())).collect::<Vec<_>>(), [2, 3]);
    let mut watcher = setup.fixture.follow(Scope::all(), WatchFrom::After(last)).await;
    setup.fixture.delete("a/2").await;
    assert_eq!(watcher.words(1).await, ["-a/2=3"]);
}

/// etcd was restored from a backup: its revision is lower, and the cached events no longer exist.
pub async fn a_backend_that_went_back_in_time_fills_the_cache_anew(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    let start = setup.fixture.create("a/1", 1).await;
    setup.seen(start).await;
    let mut watcher = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    setup.gate.pretended.store(start.0 - 1, SeqCst);
    setup.gate.break_watches(BackendError::Unavailable("restored".to_owned()));
    assert!(matches!(watcher.failure().await, StorageError::Expired { .. }));
    setup.cache.wait_until_ready().await;
    assert_eq!(setup.metric(|metrics| &metrics.fills), 2);
}

pub async fn an_unfilled_cache_refuses_what_it_cannot_serve_and_recovers(backend: Arc<dyn Backend>) {
    let gate = gated(backend);
    gate.refuse_ranges.store(true, SeqCst);
    let setup = cache_over(gate, impatient());
    assert!(!setup.cache.ready());
    setup.fixture.create("a/1", 1).await;
    assert_eq!(read_value(&setup.fixture.storage.get("a/1", ReadAt::Latest).await.unwrap().object()), 1);
    let listed = setup.fixture.storage.list(&Scope::all(), &all(ReadAt::Latest), &mut UnlimitedMemory).await;
    assert!(matches!(listed, Err(StorageError::NotReady)));
    let watched = setup.fixture.storage.watch(Scope::all(), WatchFrom::After(Revision(1))).await;
    assert!(matches!(watched.err(), Some(StorageError::NotReady)));
    setup.gate.refuse_ranges.store(false, SeqCst);
    setup.cache.wait_until_ready().await;
    assert_eq!(setup.fixture.list(&Scope::all(), ReadAt::Latest).await.items.len(), 1);
}

/// Regression: readers got errors until somebody restarted the server, which reported that it was healthy.
pub async fn a_cache_of_which_a_part_has_ended_is_not_alive(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    assert!(setup.cache.is_alive());
    // The task that checks the revision panics.
    setup.gate.permits.close();
    assert!(setup.fixture.storage.get("a/1", ReadAt::Latest).await.is_err());
    while setup.cache.is_alive() {
        tokio::task::yield_now().await;
    }
}

/// Regression: one damaged value kept the cache from ever being filled. The whole resource was not served, and
/// without our API the host deletes no namespace. Now only reads of it, of its namespace and of all namespaces fail,
/// because clients would take its absence for a deletion.
pub async fn a_damaged_object_is_told_of_and_nothing_beside_it_suffers(backend: Arc<dyn Backend>) {
    let gate = gated(backend);
    let damage = |key: &str, expected| CompareAndSwap {
        key: format!("/registry/test.example/widgets/{key}"),
        expected,
        value: Some("{half an obj".into()),
        guard: None,
        priority: Default::default(),
    };
    gate.write(damage("a/0", None)).await.unwrap();
    let setup = cache_over(gate, small());
    setup.cache.wait_until_ready().await;
    let (one, two) = (setup.fixture.create("a/1", 1).await, setup.fixture.create("b/1", 2).await);
    let mut watcher = setup.fixture.follow(Scope::all(), WatchFrom::After(one)).await;
    let mut other = setup.fixture.follow(Scope::namespace("c"), WatchFrom::After(one)).await;
    assert_eq!(watcher.words(1).await, ["+b/1=2"]);
    setup.gate.write(damage("b/1", Some(two))).await.unwrap();
    assert!(matches!(watcher.failure().await, StorageError::Backend(BackendError::Corrupt(_))));
    setup.fixture.create("c/1", 3).await;
    assert_eq!(other.words(1).await, ["+c/1=3"]);

    for (scope, key) in [(Scope::all(), "a/0"), (Scope::namespace("b"), "b/1"), (Scope::object("b/1"), "b/1")]
    {
        let listed =
            setup.fixture.storage.list(&scope, &all(ReadAt::Latest), &mut UnlimitedMemory).await.map(|_| ());
        assert!(names(&listed, key), "{key}: {listed:?}");
        let watched = setup.fixture.storage.watch(scope, WatchFrom::InitialEvents(ReadAt::Latest)).await;
        assert!(names(&watched.map(|_| ()), key));
        let read = setup.fixture.storage.get(key, ReadAt::Latest).await.map(|_| ());
        assert!(names(&read, key), "{key}: {read:?}");
    }
    let page = setup.fixture.list(&Scope::namespace("c"), ReadAt::Latest).await;
    assert_eq!((page.items.len(), setup.fixture.storage.get("a/1", ReadAt::Latest).await.is_ok()), (1, true));
    assert_eq!((setup.metric(|metrics| &metrics.damaged), setup.metric(|metrics| &metrics.fills)), (2, 1));
}

/// Whether the error says which value is damaged.
fn names(result: &Result<(), StorageError>, key: &str) -> bool {
    matches!(result, Err(StorageError::Backend(BackendError::Corrupt(why))) if why.contains(key))
}

/// Regression: a read that arrived while a check was in flight waited for that check, which failed after 10 s, and
/// then for its own: up to twice the time in its error message. In this test no check ever ends.
pub async fn a_read_waits_no_longer_than_its_time_whatever_it_waits_for(backend: Arc<dyn Backend>) {
    let patience = std::time::Duration::from_millis(200);
    let setup = setup(backend, crate::cache::Config { patience, ..small() }).await;
    setup.seen(setup.fixture.create("a/1", 1).await).await;
    setup.gate.permits.forget_permits(usize::MAX >> 3);
    let storage = &setup.fixture.storage;
    let scope = Scope::all();
    for _ in 0..2 {
        let watch = storage.watch(Scope::all(), WatchFrom::InitialEvents(ReadAt::Latest));
        let ends = [
            storage.get("a/1", ReadAt::Latest).await.err(),
            storage.list(&scope, &all(ReadAt::Latest), &mut UnlimitedMemory).await.err(),
            watch.await.err(),
            storage.current_revision().await.err(),
        ];
        for end in ends {
            assert!(matches!(end, Some(StorageError::Backend(BackendError::Unavailable(_)))), "{end:?}");
        }
    }
    assert_eq!(read_value(&storage.get("a/1", ReadAt::NotOlderThan(Revision(0))).await.unwrap().object()), 1);
    setup.gate.permits.add_permits(usize::MAX >> 4);
    let read = async {
        loop {
            if let Ok(read) = storage.get("a/1", ReadAt::Latest).await {
                return read;
            }
        }
    };
    let read = tokio::time::timeout(WATCH_DEADLINE, read).await.expect("it is read again");
    assert_eq!(read_value(&read.object()), 1);
}
