//! Reads from memory.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use async_trait::async_trait;
use drydock_machinery::ApiError;
use futures::future::{join_all, poll_immediate};

use super::{impatient, setup, small};
use crate::backend::{Backend, Revision};
use crate::cache::Config;
use crate::storage::{
    Items, MemoryBudget, PageOptions, ReadAt, Scope, Storage, StorageError, UnlimitedMemory,
};
use crate::testing::storage_suite::{all, object, read_value};

pub async fn consistent_reads_do_not_read_pairs_from_the_backend(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    for value in 0..10 {
        setup.fixture.create(&format!("a/{value}"), value).await;
    }
    let reads = setup.gate.reads.load(SeqCst);
    setup.fixture.storage.get("a/3", ReadAt::Latest).await.unwrap();
    assert_eq!(setup.fixture.list(&Scope::all(), ReadAt::Latest).await.items.len(), 10);
    assert_eq!(setup.gate.reads.load(SeqCst), reads);
}

pub async fn exact_reads_and_pages_come_from_the_ring_while_it_holds_them(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    let mut revisions = Vec::new();
    for value in 0..20 {
        revisions.push(setup.fixture.create(&format!("a/{value:02}"), value).await);
    }
    setup.seen(revisions[19]).await;
    let reads = setup.gate.reads.load(SeqCst);
    for (index, revision) in revisions.iter().enumerate() {
        let page = setup.fixture.list(&Scope::all(), ReadAt::Exact(*revision)).await;
        assert_eq!((page.items.len(), page.revision), (index + 1, *revision));
    }
    let options = PageOptions { at: ReadAt::Exact(revisions[9]), limit: 4, start: Some("a/04\0".to_owned()) };
    let page = setup.fixture.page(&Scope::all(), &options).await;
    assert_eq!((&*page.items[0].key, page.remaining), ("a/05", Some(1)));
    assert_eq!(setup.gate.reads.load(SeqCst), reads);
}

pub async fn a_list_shows_the_snapshot_that_it_was_asked_for_however_late_it_is_read(
    backend: Arc<dyn Backend>,
) {
    let setup = setup(backend, small()).await;
    // More than are looked up at once, with keys before and after theirs.
    for value in 0..200 {
        setup.fixture.create(&format!("b/{value:03}"), value).await;
    }
    for key in ["a/1", "b", "c/1"] {
        setup.fixture.create(key, 1).await;
    }
    let mut options = all(ReadAt::Latest);
    let page =
        setup.fixture.storage.list(&Scope::namespace("b"), &options, &mut UnlimitedMemory).await.unwrap();
    options.start = Some("b/064".to_owned());
    let from_there =
        setup.fixture.storage.list(&Scope::namespace("b"), &options, &mut UnlimitedMemory).await.unwrap();
    for value in 0..200 {
        setup.fixture.set(&format!("b/{value:03}"), 1000).await;
    }
    setup.fixture.create("b/100a", 1).await;
    setup.fixture.delete("b/199").await;
    let values = |items: Items| items.iter().map(|stored| read_value(&stored.object())).collect::<Vec<_>>();
    assert_eq!(values(page.items), (0..200).collect::<Vec<_>>());
    assert_eq!(values(from_there.items), (64..200).collect::<Vec<_>>());
}

pub async fn objects_stay_decoded_until_enough_others_came_and_are_the_same_afterwards(
    backend: Arc<dyn Backend>,
) {
    let setup = setup(backend, small()).await;
    let first =
        setup.fixture.storage.create("a/first", object("a/first", 1), Default::default()).await.unwrap();
    let (was, json) = (first.object(), first.json());
    assert!(Arc::ptr_eq(&was, &first.object()));
    for value in 0..300 {
        let last = setup.fixture.create(&format!("b/{value}"), value).await;
        setup.seen(last).await;
    }
    assert!(!Arc::ptr_eq(&first.object(), &first.object()), "it is decoded each time");
    assert_eq!((was, json), (first.object(), first.json()));
}

pub async fn readers_share_one_check_that_began_after_they_came(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    setup.fixture.create("a/1", 1).await;
    setup.gate.permits.forget_permits(usize::MAX >> 3);
    let before = setup.gate.checks.load(SeqCst);
    let mut readers: Vec<_> =
        (0..50).map(|_| Box::pin(setup.fixture.storage.get("a/1", ReadAt::Latest))).collect();
    for reader in &mut readers {
        assert!(poll_immediate(reader).await.is_none(), "answered without a check");
    }
    setup.gate.permits.add_permits(2);
    for read in join_all(readers).await {
        read.unwrap();
    }
    let checks = setup.gate.checks.load(SeqCst) - before;
    assert!((1..=2).contains(&checks), "{checks} checks");
}

pub async fn a_cache_that_has_fallen_behind_never_answers_a_consistent_read(backend: Arc<dyn Backend>) {
    let setup = setup(backend, impatient()).await;
    setup.seen(setup.fixture.create("a/1", 1).await).await;
    setup.gate.hold();
    let before = setup.metric(|metrics| &metrics.answered_by_store);
    let by_store = || setup.metric(|metrics| &metrics.answered_by_store) - before;
    let written = setup.fixture.set("a/1", 2).await;
    let read = setup.fixture.storage.get("a/1", ReadAt::Latest).await.unwrap();
    assert_eq!((read_value(&read.object()), read.revision), (2, written));
    assert_eq!(read_value(&setup.fixture.list(&Scope::all(), ReadAt::Latest).await.items[0].object()), 2);
    assert_eq!(by_store(), 2);
    let seen_elsewhere = setup.fixture.list(&Scope::all(), ReadAt::NotOlderThan(written)).await;
    assert_eq!((read_value(&seen_elsewhere.items[0].object()), seen_elsewhere.revision), (2, written));
    let exact = setup.fixture.storage.get("a/1", ReadAt::Exact(written)).await.unwrap();
    assert_eq!(read_value(&exact.object()), 2);
    assert_eq!(by_store(), 4);
    let next = Revision(written.0 + 1);
    let not_yet = setup
        .fixture
        .storage
        .list(&Scope::all(), &all(ReadAt::NotOlderThan(next)), &mut UnlimitedMemory)
        .await;
    let Err(StorageError::TooLarge { requested, current }) = not_yet else { panic!("not refused") };
    assert_eq!((requested, current), (next.0, written.0));
    // Revision 0 accepts any state.
    let any = setup.fixture.storage.get("a/1", ReadAt::NotOlderThan(Revision(0))).await.unwrap();
    assert_eq!(read_value(&any.object()), 1);
    setup.gate.release();
    setup.seen(written).await;
}

pub async fn an_event_of_an_own_write_is_not_decoded_again(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    let created = setup
        .fixture
        .storage
        .create("a/1", crate::testing::storage_suite::object("a/1", 1), Default::default())
        .await
        .unwrap();
    for value in 2..10 {
        setup.fixture.set("a/1", value).await;
    }
    let last = setup.fixture.delete("a/1").await;
    setup.seen(last).await;
    assert_eq!(setup.metric(|metrics| &metrics.handed_over), 9);
    let exact = setup.cache.get("a/1", ReadAt::Exact(created.revision)).await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&exact, &created), "the writer's own object is what the cache holds");
}

/// Grants a limited number of bytes, and counts those taken.
struct Bounded {
    left: usize,
    taken: usize,
}

#[async_trait]
impl MemoryBudget for Bounded {
    async fn take(&mut self, bytes: usize) -> Result<(), ApiError> {
        let left = self.left.checked_sub(bytes).ok_or_else(|| ApiError::too_many_requests("no room", 1))?;
        (self.left, self.taken) = (left, self.taken + bytes);
        Ok(())
    }
}

/// Regression: the list was read completely before any memory was requested.
pub async fn a_list_that_is_not_in_memory_is_read_as_its_memory_budget_allows(backend: Arc<dyn Backend>) {
    // With a ring of one event, older states are read from the store.
    let setup = setup(backend, Config { ring_events: 1, ..small() }).await;
    let mut past = Revision::default();
    for value in 1000..1400 {
        past = setup.fixture.create(&format!("a/{value}"), value).await;
    }
    let each = setup.fixture.storage.get("a/1000", ReadAt::Latest).await.unwrap().json_len();
    for value in [1001, 1002] {
        let last = setup.fixture.set("a/1000", value).await;
        setup.seen(last).await;
    }
    let list = async |scope: &Scope, objects: usize| {
        let (mut memory, reads) = (Bounded { left: objects * each, taken: 0 }, setup.gate.reads.load(SeqCst));
        let listed = setup.fixture.storage.list(scope, &all(ReadAt::Exact(past)), &mut memory).await;
        (listed.map(|page| page.items.iter().count()), memory.taken, setup.gate.reads.load(SeqCst) - reads)
    };
    let (refused, _, reads) = list(&Scope::all(), 100).await;
    assert!(matches!(refused, Err(StorageError::Refused(error)) if error.code() == 429));
    assert_eq!(reads, 1, "nothing more is read than the memory budget allows");
    let (listed, taken, reads) = list(&Scope::all(), 500).await;
    assert_eq!(listed.unwrap(), 400);
    assert!((300 * each..=500 * each).contains(&taken) && reads > 3, "{taken} bytes in {reads} batches");
    let one = Scope::all().matching(&["spec.value"], |object| read_value(object) == 1399);
    // Objects that a selection leaves out do not stay in memory.
    let (listed, ..) = list(&one, 250).await;
    assert_eq!(listed.unwrap(), 1);
}
