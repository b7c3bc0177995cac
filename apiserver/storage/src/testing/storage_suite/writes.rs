//! Creates, updates, deletes.

use std::sync::Arc;

use drydock_machinery::Object;

use super::harness::{Fixture, object, read_value, set_value};
use crate::backend::{Guard, WriteContext};
use crate::storage::{NextState, ReadAt, Replaced, Scope, StorageError, Stored};

pub async fn a_created_object_reads_back_with_its_revision(fixture: Fixture) {
    let mut new = object("a/one", 1);
    new.set_resource_version("999");
    let created = fixture.storage.create("a/one", new, Default::default()).await.unwrap();
    assert_eq!(created.object().resource_version(), created.revision.0.to_string());
    let read = fixture.storage.get("a/one", ReadAt::Latest).await.unwrap();
    assert_eq!((&read.object(), read.revision, &*read.key), (&created.object(), created.revision, "a/one"));
}

pub async fn a_name_is_taken_once(fixture: Fixture) {
    fixture.create("a/one", 1).await;
    let again = fixture.storage.create("a/one", object("a/one", 2), Default::default()).await;
    assert!(matches!(again, Err(StorageError::AlreadyExists)), "{again:?}");
    assert_eq!(read_value(&fixture.storage.get("a/one", ReadAt::Latest).await.unwrap().object()), 1);
}

pub async fn what_was_never_written_is_not_found(fixture: Fixture) {
    let read = fixture.storage.get("a/none", ReadAt::Latest).await;
    assert!(matches!(read, Err(StorageError::NotFound)), "{read:?}");
}

pub async fn the_present_state_is_replaced(fixture: Fixture) {
    let present = created(&fixture, "a/one", 1).await;
    let stored = updated(fixture.try_replace(&present, set(&present, 11)).await);
    assert!(stored.revision > present.revision);
    assert_eq!(stored.object().resource_version(), stored.revision.0.to_string());
    let read = fixture.storage.get("a/one", ReadAt::Latest).await.unwrap();
    assert_eq!((read.revision, read_value(&read.object())), (stored.revision, 11));
}

pub async fn an_equal_object_is_not_written(fixture: Fixture) {
    let present = created(&fixture, "a/one", 1).await;
    let mut object = (*present.object()).clone();
    object.set_resource_version("");
    let stored = updated(fixture.try_replace(&present, NextState::Write(object)).await);
    let newest = fixture.backend.current_revision().await.unwrap();
    assert_eq!((stored.revision, newest), (present.revision, present.revision));
}

pub async fn a_conflict_carries_the_newest_state(fixture: Fixture) {
    let old = created(&fixture, "a/one", 1).await;
    fixture.set("a/one", 2).await;
    let newest = fixture.set("a/one", 3).await;
    for next in [set(&old, 9), NextState::Delete((*old.object()).clone())] {
        let found = conflict(fixture.try_replace(&old, next).await).unwrap();
        assert_eq!((&*found.key, found.revision, read_value(&found.object())), ("a/one", newest, 3));
        assert_eq!(found.object().resource_version(), newest.0.to_string());
        assert_eq!(fixture.backend.current_revision().await.unwrap(), newest);
    }
    // The next decision needs no other read.
    let found = conflict(fixture.try_replace(&old, set(&old, 9)).await).unwrap();
    let stored = updated(fixture.try_replace(&found, set(&found, 4)).await);
    assert_eq!(read_value(&stored.object()), 4);
}

/// That nothing changes is true only of the newest state.
pub async fn an_equal_object_conflicts_with_a_newer_one(fixture: Fixture) {
    let old = created(&fixture, "a/one", 1).await;
    let newest = fixture.set("a/one", 2).await;
    let found = conflict(fixture.try_replace(&old, set(&old, 1)).await).unwrap();
    assert_eq!((found.revision, read_value(&found.object())), (newest, 2));
    fixture.delete("a/one").await;
    assert!(conflict(fixture.try_replace(&old, set(&old, 1)).await).is_none());
}

pub async fn a_conflict_with_a_deletion_carries_nothing(fixture: Fixture) {
    let old = created(&fixture, "a/one", 1).await;
    let gone = fixture.delete("a/one").await;
    for next in [set(&old, 9), NextState::Delete((*old.object()).clone())] {
        assert!(conflict(fixture.try_replace(&old, next).await).is_none());
    }
    assert_eq!(fixture.backend.current_revision().await.unwrap(), gone);
}

pub async fn an_object_that_was_created_anew_is_a_conflict(fixture: Fixture) {
    let old = created(&fixture, "a/one", 1).await;
    fixture.delete("a/one").await;
    let anew = fixture.create("a/one", 1).await;
    for next in [set(&old, 1), set(&old, 9), NextState::Delete((*old.object()).clone())] {
        assert_eq!(conflict(fixture.try_replace(&old, next).await).unwrap().revision, anew);
    }
}

pub async fn a_write_whose_guard_has_changed_is_not_made(fixture: Fixture) {
    let present = created(&fixture, "a/one", 1).await;
    let guard = Guard { key: "/registry/test.example/fence".to_owned(), revision: present.revision };
    let term = fixture.write_bytes(&guard.key, b"{}").await;
    let over = WriteContext { guard: Some(&guard), ..WriteContext::default() };
    for next in [set(&present, 2), NextState::Delete((*present.object()).clone())] {
        let refused = fixture.storage.replace("a/one", &present, next, over).await;
        assert!(matches!(refused, Err(StorageError::GuardFailed)), "{refused:?}");
    }
    assert_eq!(fixture.backend.current_revision().await.unwrap(), term);
    let guard = Guard { revision: term, ..guard };
    let valid = WriteContext { guard: Some(&guard), ..WriteContext::default() };
    updated(fixture.storage.replace("a/one", &present, set(&present, 2), valid).await.unwrap());
}

pub async fn an_object_that_is_too_large_is_given_back(fixture: Fixture) {
    let present = created(&fixture, "a/one", 1).await;
    let mut large = set_value(&present.object(), 2);
    large.meta_mut().insert("annotations".into(), serde_json::json!({"text": "x".repeat(2 << 20)}));
    large.set_resource_version("");
    let next = NextState::Write(large.clone());
    let refused = fixture.storage.replace("a/one", &present, next, Default::default()).await;
    let Err(StorageError::Oversized(back)) = refused else { panic!("it is stored: {refused:?}") };
    assert_eq!(*back, large);
    assert_eq!(fixture.backend.current_revision().await.unwrap(), present.revision);
}

pub async fn a_delete_leaves_nothing_and_returns_the_last_state(fixture: Fixture) {
    let present = created(&fixture, "a/one", 1).await;
    let last = updated(fixture.try_replace(&present, NextState::Delete((*present.object()).clone())).await);
    assert!(last.revision > present.revision);
    assert_eq!(read_value(&last.object()), 1);
    let gone = fixture.storage.get("a/one", ReadAt::Latest).await;
    assert!(matches!(gone, Err(StorageError::NotFound)), "{gone:?}");
}

pub async fn racing_writes_lose_nothing(fixture: Fixture) {
    let fixture = Arc::new(fixture);
    fixture.create("a/one", 0).await;
    let writers = (0..8).map(|_| {
        let fixture = fixture.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                let increment = |seen: &Object| NextState::Write(set_value(seen, read_value(seen) + 1));
                fixture.replace("a/one", increment).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    assert_eq!(read_value(&fixture.storage.get("a/one", ReadAt::Latest).await.unwrap().object()), 80);
}

pub async fn own_writes_are_read_back_at_once(fixture: Fixture) {
    let fixture = Arc::new(fixture);
    let writers = (0..4).map(|writer| {
        let fixture = fixture.clone();
        tokio::spawn(async move {
            let key = format!("a/writer-{writer}");
            let mut written = fixture.create(&key, 0).await;
            for value in 1..20 {
                assert!(fixture.storage.get(&key, ReadAt::Latest).await.unwrap().revision >= written);
                let page = fixture.list(&Scope::object(&key), ReadAt::Latest).await;
                assert!(page.revision >= written && page.items[0].revision >= written);
                let at_least = fixture.storage.get(&key, ReadAt::NotOlderThan(written)).await.unwrap();
                assert!(at_least.revision >= written);
                written = fixture.set(&key, value).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

async fn created(fixture: &Fixture, key: &str, value: u64) -> Arc<Stored> {
    fixture.storage.create(key, object(key, value), Default::default()).await.unwrap()
}

fn set(present: &Stored, value: u64) -> NextState {
    NextState::Write(set_value(&present.object(), value))
}

fn updated(replaced: Replaced) -> Arc<Stored> {
    match replaced {
        Replaced::Updated(stored) => stored,
        Replaced::Conflict(newest) => panic!("it conflicts with {newest:?}"),
    }
}

fn conflict(replaced: Replaced) -> Option<Arc<Stored>> {
    match replaced {
        Replaced::Updated(stored) => panic!("it replaced another state: {stored:?}"),
        Replaced::Conflict(newest) => newest,
    }
}
