//! Creates, updates, deletes.

use std::sync::Arc;

use drydock_machinery::ApiError;

use super::harness::{Fixture, object, read_value, set_value};
use crate::storage::{ReadAt, Scope, StorageError, Stored, UpdateDecision};

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

pub async fn an_update_sees_the_present_state(fixture: Fixture) {
    let created = fixture.create("a/one", 1).await;
    let mut double = |seen: Option<&Stored>| {
        let seen = seen.unwrap();
        Ok(UpdateDecision::Write(set_value(&seen.object(), read_value(&seen.object()) + 10)))
    };
    let (stored, written) = fixture.storage.update("a/one", Default::default(), &mut double).await.unwrap();
    assert!(written && stored.revision > created);
    assert_eq!(read_value(&stored.object()), 11);
}

pub async fn an_equal_object_is_not_written(fixture: Fixture) {
    let created = fixture.create("a/one", 1).await;
    let mut same = |seen: Option<&Stored>| {
        let mut object = (*seen.unwrap().object()).clone();
        object.set_resource_version("");
        Ok(UpdateDecision::Write(object))
    };
    let (stored, written) = fixture.storage.update("a/one", Default::default(), &mut same).await.unwrap();
    assert!(!written);
    assert_eq!((stored.revision, fixture.backend.current_revision().await.unwrap()), (created, created));
}

pub async fn keep_writes_nothing(fixture: Fixture) {
    let created = fixture.create("a/one", 1).await;
    let (stored, written) =
        fixture.storage.update("a/one", Default::default(), &mut |_| Ok(UpdateDecision::Keep)).await.unwrap();
    assert_eq!((stored.revision, written), (created, false));
}

pub async fn an_update_of_nothing_may_create(fixture: Fixture) {
    let mut create = |seen: Option<&Stored>| {
        assert!(seen.is_none());
        Ok(UpdateDecision::Write(object("a/one", 7)))
    };
    let (stored, written) = fixture.storage.update("a/one", Default::default(), &mut create).await.unwrap();
    assert!(written);
    assert_eq!(fixture.storage.get("a/one", ReadAt::Latest).await.unwrap().revision, stored.revision);
}

pub async fn keeping_nothing_is_not_found(fixture: Fixture) {
    let kept = fixture.storage.update("a/none", Default::default(), &mut |_| Ok(UpdateDecision::Keep)).await;
    assert!(matches!(kept, Err(StorageError::NotFound)), "{kept:?}");
    let read = fixture.storage.get("a/none", ReadAt::Latest).await;
    assert!(matches!(read, Err(StorageError::NotFound)), "{read:?}");
}

pub async fn a_refusal_is_returned(fixture: Fixture) {
    fixture.create("a/one", 1).await;
    let refusal = ApiError { status: Box::default() };
    let refused = fixture.storage.update("a/one", Default::default(), &mut |_| Err(refusal.clone())).await;
    assert!(matches!(refused, Err(StorageError::Refused(_))), "{refused:?}");
}

pub async fn a_delete_leaves_nothing_and_returns_the_last_state(fixture: Fixture) {
    let created = fixture.create("a/one", 1).await;
    let mut delete = |seen: Option<&Stored>| Ok(UpdateDecision::Delete((*seen.unwrap().object()).clone()));
    let (last, written) = fixture.storage.update("a/one", Default::default(), &mut delete).await.unwrap();
    assert!(written && last.revision > created);
    assert_eq!(read_value(&last.object()), 1);
    let gone = fixture.storage.get("a/one", ReadAt::Latest).await;
    assert!(matches!(gone, Err(StorageError::NotFound)), "{gone:?}");
}

pub async fn racing_updates_lose_nothing(fixture: Fixture) {
    fixture.create("a/one", 0).await;
    let writers = (0..8).map(|_| {
        let storage = fixture.storage.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                let mut increment = |seen: Option<&Stored>| {
                    let seen = seen.unwrap();
                    Ok(UpdateDecision::Write(set_value(&seen.object(), read_value(&seen.object()) + 1)))
                };
                storage.update("a/one", Default::default(), &mut increment).await.unwrap();
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
