//! Watches that resume at a revision from before the cache was filled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use futures::FutureExt;

use super::gated_backend::GatedBackend;
use super::{Setup, cache_over, gated, impatient, setup, small};
use crate::backend::{Backend, BackendError, CompareAndSwap, Revision};
use crate::cache::Config;
use crate::storage::{ReadAt, Scope, StorageError, WatchFrom};
use crate::store::Store;
use crate::testing::storage_suite::Fixture;

/// Returns a fixture that writes before there is a cache.
fn before(gate: &Arc<GatedBackend>) -> Fixture {
    let store = Store::new(gate.clone(), "test.example", "widgets");
    Fixture { storage: Arc::new(store), backend: gate.clone() }
}

/// Starts a cache after an object was created, changed 19 times and deleted. Returns it with the revision of the
/// creation.
async fn restarted(gate: Arc<GatedBackend>, config: Config) -> (Setup, Revision) {
    let before = before(&gate);
    let start = before.create("a/1", 0).await;
    for value in 1..20 {
        before.set("a/1", value).await;
    }
    before.delete("a/1").await;
    before.write_elsewhere("x").await;
    let setup = cache_over(gate, config);
    setup.cache.wait_until_ready().await;
    (setup, start)
}

/// Regression: each watch had a backend watch of its own: a task that read megabytes ahead, whether its client read
/// or not, and with etcd a connection.
pub async fn a_hundred_watches_that_resume_are_one_watch_of_the_backend(backend: Arc<dyn Backend>) {
    let (setup, start) = restarted(gated(backend), small()).await;
    let mut watchers = Vec::new();
    for _ in 0..100 {
        watchers.push(setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await);
    }
    let mut unread = setup.fixture.follow(Scope::namespace("b"), WatchFrom::After(start)).await;
    assert_eq!(setup.gate.watches.load(SeqCst), 1, "the cache's own");
    for watcher in &mut watchers {
        for value in 1..20 {
            assert_eq!(watcher.next_as_text().await.0, format!("~a/1={value}"));
        }
        assert_eq!(watcher.next_as_text().await.0, "-a/1=19");
    }
    for value in 30..40 {
        let key = format!("b/{value}");
        setup.fixture.create(&key, value).await;
        for watcher in watchers.iter_mut().chain([&mut unread]) {
            assert_eq!(watcher.next_as_text().await.0, format!("+{key}={value}"));
        }
    }
    assert_eq!(setup.gate.watches.load(SeqCst), 2, "and one for all who resume");
}

pub async fn history_from_before_the_cache_has_as_many_events_as_a_ring(backend: Arc<dyn Backend>) {
    history_is_as_long_as_a_ring(backend, Config { ring_events: 10, ..small() }).await;
}

pub async fn history_from_before_the_cache_has_as_many_bytes_as_a_ring(backend: Arc<dyn Backend>) {
    history_is_as_long_as_a_ring(backend, Config { ring_bytes: 25_000, ..small() }).await;
}

async fn history_is_as_long_as_a_ring(backend: Arc<dyn Backend>, config: Config) {
    let (setup, start) = restarted(gated(backend), config).await;
    let mut early = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    assert!(matches!(early.failure().await, StorageError::Expired { .. }));
    let from = WatchFrom::After(Revision(start.0 + 15));
    assert_eq!(setup.fixture.follow(Scope::all(), from).await.words(1).await, ["~a/1=16"]);
}

pub async fn below_a_ring_that_was_trimmed_nothing_is_read_again(backend: Arc<dyn Backend>) {
    let setup = setup(backend, Config { ring_events: 10, ..small() }).await;
    let start = setup.fixture.create("a/1", 0).await;
    for value in 1..=30 {
        setup.seen(setup.fixture.set("a/1", value).await).await;
    }
    for _ in 0..10 {
        let mut late = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
        let failure = late.failure().await;
        assert!(matches!(failure, StorageError::Expired { requested, .. } if requested == start.0));
    }
    assert_eq!(setup.gate.watches.load(SeqCst), 1);
}

pub async fn a_watch_from_before_the_cache_and_the_compaction_is_expired(backend: Arc<dyn Backend>) {
    let gate = gated(backend);
    let before = before(&gate);
    before.create("a/1", 0).await;
    before.set("a/1", 1).await;
    let last = before.set("a/1", 2).await;
    gate.compact(last).await.unwrap();
    let setup = cache_over(gate, small());
    setup.cache.wait_until_ready().await;
    let mut late = setup.fixture.follow(Scope::all(), WatchFrom::After(Revision(last.0 - 2))).await;
    assert!(matches!(late.failure().await, StorageError::Expired { .. }));
}

pub async fn history_is_read_again_when_the_backend_breaks_off(backend: Arc<dyn Backend>) {
    let gate = gated(backend);
    let (setup, start) = restarted(gate, small()).await;
    setup.gate.hold();
    let mut waiting = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    assert!(waiting.next_as_text().now_or_never().is_none());
    while setup.gate.watches.load(SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    setup.gate.break_watches(BackendError::Unavailable("gone".to_owned()));
    assert_eq!(waiting.words(2).await, ["~a/1=1", "~a/1=2"]);
}

pub async fn more_history_than_is_worth_reading_is_not_read(backend: Arc<dyn Backend>) {
    let gate = gated(backend);
    let (setup, start) = restarted(gate, Config { ring_bytes: 1_000, ..small() }).await;
    let from = WatchFrom::After(Revision(start.0 + 19));
    assert!(matches!(
        setup.fixture.follow(Scope::all(), from).await.failure().await,
        StorageError::Expired { .. }
    ));
}

pub async fn a_damaged_value_of_the_past_ends_the_watches_of_its_namespace(backend: Arc<dyn Backend>) {
    let gate = gated(backend);
    let start = before(&gate).create("a/0", 0).await;
    let key = "/registry/test.example/widgets/b/1".to_owned();
    let damaged = CompareAndSwap {
        key,
        expected: None,
        value: Some("{half an obj".into()),
        guard: None,
        priority: Default::default(),
    };
    gate.write(damaged).await.unwrap();
    before(&gate).create("a/1", 1).await;
    let setup = cache_over(gate, small());
    setup.cache.wait_until_ready().await;
    let mut beside = setup.fixture.follow(Scope::namespace("a"), WatchFrom::After(start)).await;
    assert_eq!(beside.words(1).await, ["+a/1=1"]);
    let mut within = setup.fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    assert!(matches!(within.failure().await, StorageError::Backend(BackendError::Corrupt(_))));
}

/// Regression: the watch kept a backend watch of its own for its whole life.
pub async fn a_watch_whose_objects_came_from_the_store_goes_on_with_the_cache(backend: Arc<dyn Backend>) {
    let setup = setup(backend, impatient()).await;
    setup.seen(setup.fixture.create("a/1", 1).await).await;
    setup.gate.hold();
    setup.fixture.set("a/1", 2).await;
    let mut watcher = setup.fixture.follow(Scope::all(), WatchFrom::InitialEvents(ReadAt::Latest)).await;
    assert_eq!(watcher.words(2).await, ["+a/1=2", "|"]);
    assert_eq!(setup.gate.watches.load(SeqCst), 1);
    setup.gate.release();
    setup.fixture.set("a/1", 3).await;
    assert_eq!(watcher.words(1).await, ["~a/1=3"]);
}

/// Regression: a selection of nothing was evaluated for the whole ring, or for all objects, without yielding.
pub async fn a_selection_of_nothing_is_evaluated_in_steps(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    let mut start = setup.fixture.create("a/0", 0).await;
    for value in 1..1_500 {
        start = setup.fixture.create(&format!("a/{value}"), 0).await;
    }
    setup.seen(start).await;
    for from in [WatchFrom::After(Revision(start.0 - 1_400)), WatchFrom::InitialEvents(ReadAt::Latest)] {
        let evaluated = Arc::<AtomicUsize>::default();
        let count = evaluated.clone();
        let scope = Scope::all().matching(&["metadata"], move |_| {
            count.fetch_add(1, SeqCst);
            false
        });
        let mut watcher = setup.fixture.storage.watch(scope, from).await.unwrap();
        for step in 1..=4 {
            assert!(watcher.next().now_or_never().is_none(), "told of nothing");
            let evaluated = evaluated.load(SeqCst);
            assert!(evaluated >= step * 20 && evaluated <= step * 600, "{evaluated} in {step} steps");
        }
    }
}
