//! Watches: ordered, unique, reliable, resumable, bookmarkable (Kubernetes and etcd: the watch guarantees).

use serde_json::json;

use super::harness::{Fixture, all, even, object};
use crate::backend::Revision;
use crate::storage::{ReadAt, Scope, StorageError, UnlimitedMemory, WatchEvent, WatchFrom};

async fn now(fixture: &Fixture) -> Revision {
    fixture.backend.current_revision().await.unwrap()
}

pub async fn changes_come_in_order_once_each(fixture: Fixture) {
    let start = now(&fixture).await;
    let mut follower = fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    let created = fixture.create("a/1", 1).await;
    let updated = fixture.set("a/1", 2).await;
    let other = fixture.create("b/1", 3).await;
    let deleted = fixture.delete("a/1").await;
    let again = fixture.create("a/1", 4).await;
    for expected in
        [("+a/1=1", created), ("~a/1=2", updated), ("+b/1=3", other), ("-a/1=2", deleted), ("+a/1=4", again)]
    {
        let told = follower.next_as_text().await;
        assert_eq!((told.0.as_str(), told.1), expected);
    }
}

pub async fn a_watch_resumes_after_any_revision(fixture: Fixture) {
    let mut revisions = vec![now(&fixture).await];
    for value in 0..6 {
        revisions.push(fixture.create(&format!("a/{value}"), value).await);
    }
    for (index, start) in revisions.iter().enumerate() {
        let mut follower = fixture.follow(Scope::all(), WatchFrom::After(*start)).await;
        for value in index..6 {
            assert_eq!(follower.next_as_text().await, (format!("+a/{value}={value}"), revisions[value + 1]));
        }
        follower.until_progress(&fixture.backend, revisions[6]).await;
    }
}

pub async fn initial_events_end_with_a_bookmark(fixture: Fixture) {
    fixture.create("a/2", 2).await;
    fixture.create("a/1", 1).await;
    let last = fixture.write_elsewhere("x").await;
    let from = WatchFrom::InitialEvents(ReadAt::Latest);
    let mut follower = fixture.follow(Scope::all(), from).await;
    assert_eq!(follower.progress(), Revision(0));
    assert_eq!(follower.words(2).await, ["+a/1=1", "+a/2=2"]);
    let (word, revision) = follower.next_as_text().await;
    assert_eq!(word, "|");
    assert!(revision >= last && follower.progress() >= last);
    fixture.set("a/1", 5).await;
    assert_eq!(follower.words(1).await, ["~a/1=5"]);

    let mut nothing = fixture.follow(Scope::namespace("none"), from).await;
    assert_eq!(nothing.words(1).await, ["|"]);
}

pub async fn entering_and_leaving_the_selection(fixture: Fixture) {
    let start = now(&fixture).await;
    let scope = || Scope::all().matching(&["spec.value"], even);
    let mut follower = fixture.follow(scope(), WatchFrom::After(start)).await;
    fixture.create("a/1", 1).await;
    let entered = fixture.set("a/1", 2).await;
    let within = fixture.set("a/1", 4).await;
    let left = fixture.set("a/1", 5).await;
    fixture.set("a/1", 7).await;
    fixture.delete("a/1").await;
    fixture.create("a/2", 8).await;
    let expected =
        [("+a/1=2".to_owned(), entered), ("~a/1=4".to_owned(), within), ("-a/1=4".to_owned(), left)];
    for expected in &expected {
        assert_eq!(&follower.next_as_text().await, expected);
    }
    assert_eq!(follower.words(1).await, ["+a/2=8"]);
    let mut late = fixture.follow(scope(), WatchFrom::After(entered)).await;
    assert_eq!(late.words(3).await, ["~a/1=4", "-a/1=4", "+a/2=8"]);
}

pub async fn a_watch_of_one_namespace_sees_nothing_else(fixture: Fixture) {
    let start = now(&fixture).await;
    let mut follower = fixture.follow(Scope::namespace("b"), WatchFrom::After(start)).await;
    for key in ["a/1", "b/1", "b-c/1", "bb/1", "b/2"] {
        fixture.create(key, 1).await;
    }
    assert_eq!(follower.words(2).await, ["+b/1=1", "+b/2=1"]);
}

pub async fn a_watch_of_one_object_sees_nothing_else(fixture: Fixture) {
    let start = now(&fixture).await;
    let mut follower = fixture.follow(Scope::object("a/1"), WatchFrom::After(start)).await;
    for key in ["a/0", "a/1", "a/10", "a/2"] {
        fixture.create(key, 1).await;
    }
    fixture.delete("a/1").await;
    assert_eq!(follower.words(2).await, ["+a/1=1", "-a/1=1"]);
}

pub async fn a_deletion_carries_the_last_state_at_its_revision(fixture: Fixture) {
    fixture.create("a/1", 1).await;
    let updated = fixture.set("a/1", 2).await;
    let mut follower = fixture.follow(Scope::all(), WatchFrom::After(updated)).await;
    let deleted = fixture.delete("a/1").await;
    // The follower checks that the object's resourceVersion is the event's.
    assert_eq!(follower.next_as_text().await, ("-a/1=2".to_owned(), deleted));
}

/// Regression in etcd (15220): it reported progress ahead of events that were still queued for the stream.
pub async fn progress_is_never_ahead(fixture: Fixture) {
    let start = now(&fixture).await;
    let mut follower = fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    let mut seen = start;
    for value in 0..200 {
        let written = fixture.create(&format!("a/{value}"), value).await;
        fixture.backend.request_progress().await.unwrap();
        assert!(follower.progress() <= seen, "{:?} is ahead of {seen:?}", follower.progress());
        if value % 7 == 0 {
            follower.until(written).await;
            // Events of one delivery count as sent, as far as the watcher is concerned.
            seen = written;
        }
    }
}

/// A watcher that had delivered a part of what it read reported the progress from before that: a bookmark went back
/// behind events that the client had.
pub async fn progress_is_not_behind_what_was_delivered(fixture: Fixture) {
    let start = now(&fixture).await;
    let mut last = start;
    for value in 0..60 {
        let mut object = object(&format!("a/{value}"), value);
        object.set_meta("annotations", Some(json!({"filler": "x".repeat(8 << 10)})));
        let created = fixture.storage.create(&format!("a/{value}"), object, Default::default()).await;
        last = created.unwrap().revision;
    }
    let mut watcher = fixture.storage.watch(Scope::all(), WatchFrom::After(start)).await.unwrap();
    let mut delivered = start;
    while delivered < last {
        for event in watcher.next().await.unwrap() {
            let WatchEvent::Added(stored) = event else { panic!("{event:?}") };
            delivered = stored.revision;
        }
        assert!(watcher.progress() >= delivered, "{:?} is behind {delivered:?}", watcher.progress());
    }
}

pub async fn a_watch_from_the_future_waits(fixture: Fixture) {
    let future = Revision(now(&fixture).await.0 + 2);
    let mut follower = fixture.follow(Scope::all(), WatchFrom::After(future)).await;
    assert!(follower.progress() < future);
    fixture.create("a/1", 1).await;
    let at = fixture.create("a/2", 2).await;
    assert_eq!(at, future);
    fixture.create("a/3", 3).await;
    assert_eq!(follower.words(1).await, ["+a/3=3"]);
}

pub async fn other_resources_move_progress_but_send_nothing(fixture: Fixture) {
    let start = fixture.create("a/1", 1).await;
    let mut follower = fixture.follow(Scope::all(), WatchFrom::After(start)).await;
    let elsewhere = fixture.write_elsewhere("x").await;
    follower.until_progress(&fixture.backend, elsewhere).await;
}

pub async fn a_change_whose_state_before_is_compacted_ends_a_watch(fixture: Fixture) {
    let before = fixture.create("a/1", 1).await;
    let last = fixture.set("a/1", 2).await;
    while fixture
        .storage
        .list(&Scope::all(), &all(ReadAt::NotOlderThan(last)), &mut UnlimitedMemory)
        .await
        .is_err()
    {}
    fixture.backend.compact(last).await.unwrap();
    let mut follower = fixture.follow(Scope::all(), WatchFrom::After(before)).await;
    match follower.next().await {
        crate::storage::WatchEvent::Failed(error) => {
            assert!(matches!(error, StorageError::Expired { .. }), "{error:?}");
        }
        // etcd no longer has it; a cache may, and SQLite removes it in small steps.
        first => assert!(format!("{first:?}").starts_with("Modified"), "{first:?}"),
    }
}

pub async fn a_compacted_start_is_expired(fixture: Fixture) {
    let early = now(&fixture).await;
    fixture.create("a/1", 1).await;
    fixture.set("a/1", 2).await;
    let last = fixture.set("a/1", 3).await;
    // If compaction overtakes a cache, the cache has to be filled again and ends its watchers. Periodic compactions
    // are minutes apart, so this does not happen.
    while fixture
        .storage
        .list(&Scope::all(), &all(ReadAt::NotOlderThan(last)), &mut UnlimitedMemory)
        .await
        .is_err()
    {}
    fixture.backend.compact(last).await.unwrap();
    let mut follower = fixture.follow(Scope::all(), WatchFrom::After(Revision(early.0 - 1))).await;
    match follower.next().await {
        crate::storage::WatchEvent::Failed(error) => {
            assert!(matches!(error, StorageError::Expired { .. }), "{error:?}");
        }
        // A cache that still holds the history may serve it.
        first => assert!(format!("{first:?}").starts_with("Added"), "{first:?}"),
    }
    let mut boundary = fixture.follow(Scope::all(), WatchFrom::After(last)).await;
    fixture.delete("a/1").await;
    assert_eq!(boundary.words(1).await, ["-a/1=3"]);
}

pub async fn many_initial_events_come_whole(fixture: Fixture) {
    for value in 0..700 {
        fixture.create(&format!("a/{value:04}"), value).await;
    }
    let scope = Scope::namespace("a").matching(&["spec.value"], even);
    let mut follower = fixture.follow(scope, WatchFrom::InitialEvents(ReadAt::Latest)).await;
    assert_eq!(follower.progress(), Revision(0));
    for value in (0..700).step_by(2) {
        assert_eq!(follower.next_as_text().await.0, format!("+a/{value:04}={value}"));
    }
    assert_eq!(follower.words(1).await, ["|"]);
}
