//! Past states that a watcher keeps for its initial events, and their release.

use std::sync::Arc;

use super::{Setup, setup, small};
use crate::backend::{Backend, Revision};
use crate::cache::Config;
use crate::storage::{ReadAt, Scope, StorageError, WatchEvent, WatchFrom, Watcher};
use crate::testing::storage_suite::read_value;

const OBJECTS: u32 = 600;

/// Returns a watcher that has sent a part of its initial events, their number, and the last revision.
async fn begun(setup: &Setup) -> (Box<dyn Watcher>, usize, Revision) {
    let mut last = Revision(0);
    for number in 0..OBJECTS {
        last = setup.fixture.create(&format!("a/{number:04}"), 1).await;
    }
    setup.seen(last).await;
    let from = WatchFrom::InitialEvents(ReadAt::NotOlderThan(last));
    let mut watcher = setup.fixture.storage.watch(Scope::all(), from).await.unwrap();
    let told = watcher.next().await.unwrap().len();
    assert!(told < OBJECTS as usize);
    (watcher, told, last)
}

pub async fn initial_events_go_on_from_the_ring_when_their_state_was_let_go(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    let (mut watcher, mut told, start) = begun(&setup).await;
    watcher.pinned().unwrap().release();
    let last = setup.fixture.set(&format!("a/{:04}", OBJECTS - 1), 2).await;
    setup.seen(last).await;
    loop {
        let events = watcher.next().await.unwrap();
        for event in &events {
            match event {
                WatchEvent::Added(stored) => {
                    assert_eq!((read_value(&stored.object()), stored.revision <= start), (1, true));
                    told += 1;
                }
                WatchEvent::Bookmark { revision, initial: true } => assert_eq!(*revision, start),
                other => panic!("{other:?}"),
            }
        }
        if matches!(events.last(), Some(WatchEvent::Bookmark { .. })) {
            break;
        }
    }
    assert_eq!(told, OBJECTS as usize);
    assert!(watcher.pinned().is_none(), "all of them were told");
    let events = watcher.next().await.unwrap();
    assert!(matches!(&events[..], [WatchEvent::Modified(stored)] if read_value(&stored.object()) == 2));
}

pub async fn a_state_that_was_let_go_and_has_left_the_ring_is_expired(backend: Arc<dyn Backend>) {
    let setup = setup(backend, Config { ring_events: 5, ..small() }).await;
    let (mut watcher, _, start) = begun(&setup).await;
    let pinned = watcher.pinned().unwrap();
    assert_eq!(pinned.bytes(), 0, "the cache has it too");
    let mut last = start;
    for value in 2..20 {
        last = setup.fixture.set("a/0000", value).await;
    }
    setup.seen(last).await;
    assert!(pinned.bytes() > 0, "what was replaced since");
    pinned.release();
    assert_eq!(pinned.bytes(), 0);
    let events = watcher.next().await.unwrap();
    let expired = |requested: u64| requested == start.0;
    assert!(
        matches!(&events[..], [WatchEvent::Failed(StorageError::Expired { requested, .. })] if expired(*requested)),
        "{events:?}"
    );
    assert!(watcher.next().await.is_none());
}
