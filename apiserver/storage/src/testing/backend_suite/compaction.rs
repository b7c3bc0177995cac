//! What compaction removes, and what it keeps.

use super::harness::*;
use crate::backend::{BackendError, CompactionTurn, Revision, WatchItem};

pub async fn the_boundary_is_readable_and_below_it_nothing(store: Store) {
    let first = create(&store, "/a", "1").await;
    let second = update(&store, "/a", first, "2").await;
    let third = update(&store, "/a", second, "3").await;
    store.compact(second).await.unwrap();
    assert_eq!(text(&store, "/a", Some(second)).await.as_deref(), Some("2"));
    assert_eq!(text(&store, "/a", Some(third)).await.as_deref(), Some("3"));
    for error in errors_at(&store, first).await {
        match error {
            BackendError::Compacted { requested, oldest } => assert_eq!((requested, oldest), (first, second)),
            other => panic!("{other:?}"),
        }
    }
}

pub async fn compaction_keeps_what_is_alive(store: Store) {
    let old = create(&store, "/old", "untouched").await;
    let mut last = create(&store, "/busy", "0").await;
    for n in 1..200 {
        last = update(&store, "/busy", last, &n.to_string()).await;
    }
    store.compact(last).await.unwrap();
    let next = create(&store, "/next", "1").await;
    assert_eq!(next.0, last.0 + 1, "no revision is given out twice");
    for at in [None, Some(last)] {
        assert_eq!(text(&store, "/old", at).await.as_deref(), Some("untouched"));
        assert_eq!(text(&store, "/busy", at).await.as_deref(), Some("199"));
    }
    let (pair, _) = store.get("/old", None).await.unwrap();
    assert_eq!(pair.unwrap().mod_revision, old);
}

pub async fn compacting_again_or_below_changes_nothing(store: Store) {
    let first = create(&store, "/a", "1").await;
    let second = update(&store, "/a", first, "2").await;
    store.compact(second).await.unwrap();
    store.compact(second).await.unwrap();
    store.compact(first).await.unwrap();
    assert_eq!(text(&store, "/a", Some(second)).await.as_deref(), Some("2"));
}

pub async fn compacting_the_future_is_refused(store: Store) {
    let current = create(&store, "/a", "1").await;
    let error = store.compact(Revision(current.0 + 1)).await.unwrap_err();
    assert!(matches!(error, BackendError::FutureRevision { .. }), "{error:?}");
    assert_eq!(text(&store, "/a", Some(current)).await.as_deref(), Some("1"));
}

pub async fn a_watch_that_starts_below_the_boundary_fails(store: Store) {
    let first = create(&store, "/a", "1").await;
    let second = update(&store, "/a", first, "2").await;
    let third = update(&store, "/a", second, "3").await;
    store.compact(third).await.unwrap();
    match Watch::start(&store, "/", first).await.failure().await {
        BackendError::Compacted { requested, oldest } => assert_eq!((requested, oldest), (first, third)),
        other => panic!("{other:?}"),
    }
    let mut watch = Watch::start(&store, "/", first).await.into_receiver();
    assert!(matches!(watch.recv().await, Some(WatchItem::Failed(_))));
    assert!(watch.recv().await.is_none(), "nothing follows a failure");
}

/// From etcd's history (issue 19179): a watch from the compaction revision missed a delete at that revision.
pub async fn a_watch_from_the_boundary_sees_the_delete_that_stands_there(store: Store) {
    let first = create(&store, "/a", "1").await;
    let gone = delete(&store, "/a", first).await;
    let later = create(&store, "/b", "1").await;
    store.compact(gone).await.unwrap();
    // Give the removal of rows every chance to run.
    let last = update(&store, "/b", later, "2").await;
    let mut watch = Watch::start(&store, "/", first).await;
    let events = watch.events(3).await;
    assert_eq!((events[0].key.as_str(), events[0].revision, events[0].value.is_none()), ("/a", gone, true));
    assert_eq!((events[1].revision, events[2].revision), (later, last));
}

pub async fn a_delete_is_forgotten_by_the_next_compaction(store: Store) {
    let first = create(&store, "/a", "1").await;
    let gone = delete(&store, "/a", first).await;
    store.compact(gone).await.unwrap();
    let second = create(&store, "/b", "1").await;
    let third = update(&store, "/b", second, "2").await;
    store.compact(third).await.unwrap();
    assert_eq!(keys(&store, "/", None).await, ["/b"]);
    assert_eq!(keys(&store, "/", Some(third)).await, ["/b"]);
    let again = create(&store, "/a", "2").await;
    assert_eq!(text(&store, "/a", Some(again)).await.as_deref(), Some("2"));
    assert_eq!(again.0, third.0 + 1);
}

/// From etcd's history (issue 18089): an event was dropped when compaction ran on a delete under a watch.
pub async fn a_running_watch_loses_nothing_to_compaction(store: Store) {
    let start = store.current_revision().await.unwrap();
    let mut watch = Watch::start(&store, "/", start).await;
    let mut expected = Vec::new();
    for n in 0..40 {
        let key = format!("/{}", n % 4);
        let created = create(&store, &key, "1").await;
        let gone = delete(&store, &key, created).await;
        expected.extend([created, gone]);
        if n % 5 == 4 {
            // The watch has received everything that is compacted now.
            let events = watch.events(expected.len()).await;
            assert_eq!(events.iter().map(|event| event.revision).collect::<Vec<_>>(), expected);
            expected.clear();
            store.compact(gone).await.unwrap();
        }
    }
}

pub async fn two_replicas_take_turns_and_keep_an_interval(store: Store) {
    let first = create(&store, "/a", "1").await;
    let mine = store.compaction_turn(CompactionTurn::default()).await.unwrap();
    assert_eq!(text(&store, "/a", Some(first)).await.as_deref(), Some("1"), "the first turn forgets nothing");
    let second = update(&store, "/a", first, "2").await;
    let mine = store.compaction_turn(mine).await.unwrap();
    let third = update(&store, "/a", second, "3").await;
    assert_eq!(text(&store, "/a", Some(second)).await.as_deref(), Some("2"), "one interval is kept");
    store.compaction_turn(mine).await.unwrap();
    for error in errors_at(&store, first).await {
        assert!(matches!(error, BackendError::Compacted { .. }), "{error:?}");
    }
    assert_eq!(text(&store, "/a", Some(third)).await.as_deref(), Some("3"));
}
