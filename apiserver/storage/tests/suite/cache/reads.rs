//! Reads from memory.

use std::sync::atomic::Ordering::SeqCst;

use drydock_storage::backend::Revision;
use drydock_storage::storage::{ListOptions, ReadAt, Scope, Storage, StorageError};
use futures::future::{join_all, poll_immediate};

use super::{setup, small};
use crate::storage_suite::{all, read_value};

#[tokio::test]
async fn consistent_reads_do_not_read_pairs_from_the_backend() {
    let setup = setup(small()).await;
    for value in 0..10 {
        setup.fixture.create(&format!("a/{value}"), value).await;
    }
    let reads = setup.gate.reads.load(SeqCst);
    setup.fixture.storage.get("a/3", ReadAt::Latest).await.unwrap();
    assert_eq!(setup.fixture.list(&Scope::all(), ReadAt::Latest).await.items.len(), 10);
    assert_eq!(setup.gate.reads.load(SeqCst), reads);
}

#[tokio::test]
async fn exact_reads_and_pages_come_from_the_ring_while_it_holds_them() {
    let setup = setup(small()).await;
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
    let options = ListOptions { at: ReadAt::Exact(revisions[9]), limit: 4, start: Some("a/04\0".to_owned()) };
    let page = setup.fixture.storage.list(&Scope::all(), &options).await.unwrap();
    assert_eq!((page.items[0].key.as_str(), page.remaining), ("a/05", Some(1)));
    assert_eq!(setup.gate.reads.load(SeqCst), reads);
}

#[tokio::test]
async fn readers_share_one_check_that_began_after_they_came() {
    let setup = setup(small()).await;
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

#[tokio::test]
async fn a_cache_that_has_fallen_behind_never_answers_a_consistent_read() {
    let setup = setup(small()).await;
    setup.fixture.create("a/1", 1).await;
    setup.fixture.storage.get("a/1", ReadAt::Latest).await.unwrap();
    setup.gate.hold();
    let written = setup.fixture.set("a/1", 2).await;
    let read = setup.fixture.storage.get("a/1", ReadAt::Latest).await.unwrap();
    assert_eq!((read_value(&read.object()), read.revision), (2, written));
    assert_eq!(read_value(&setup.fixture.list(&Scope::all(), ReadAt::Latest).await.items[0].object()), 2);
    assert_eq!(setup.metric(|metrics| &metrics.fallen_through), 2);
    let not_yet = setup.fixture.storage.list(&Scope::all(), &all(ReadAt::NotOlderThan(written))).await;
    assert!(matches!(not_yet, Err(StorageError::TooLarge { requested, .. }) if requested == written.0));
    // Any state will do for some.
    let any = setup.fixture.storage.get("a/1", ReadAt::NotOlderThan(Revision(0))).await.unwrap();
    assert_eq!(read_value(&any.object()), 1);
    setup.gate.release();
    setup.seen(written).await;
}

#[tokio::test]
async fn an_event_of_an_own_write_is_not_decoded_again() {
    let setup = setup(small()).await;
    let created =
        setup.fixture.storage.create("a/1", crate::storage_suite::object("a/1", 1), None).await.unwrap();
    for value in 2..10 {
        setup.fixture.set("a/1", value).await;
    }
    let last = setup.fixture.delete("a/1").await;
    setup.seen(last).await;
    assert_eq!(setup.metric(|metrics| &metrics.handed_over), 9);
    let exact = setup.cache.get("a/1", ReadAt::Exact(created.revision)).await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&exact, &created), "the writer's own object is what the cache holds");
}
