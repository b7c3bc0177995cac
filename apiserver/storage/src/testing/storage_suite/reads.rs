//! Reads of one object.

use super::harness::{Fixture, all, read_value};
use crate::backend::{BackendError, Revision};
use crate::storage::{ReadAt, Scope, StorageError, UnlimitedMemory};

pub async fn damaged_bytes_are_an_error_and_not_a_panic(fixture: Fixture) {
    fixture.create("a/good", 1).await;
    for (name, bytes) in
        [("b", b"\xff\xfe" as &[u8]), ("c", b"[1]"), ("d", b"{\"metadata\":1}"), ("e", b"{\"metadata\":")]
    {
        fixture.write_bytes(&format!("/registry/test.example/widgets/a/{name}"), bytes).await;
        let read = fixture.storage.get(&format!("a/{name}"), ReadAt::Latest).await;
        assert!(is_corrupt(&read), "{read:?}");
        let listed = fixture.storage.list(&Scope::all(), &all(ReadAt::Latest), &mut UnlimitedMemory).await;
        // A cache reports that it cannot be filled; in either case no client gets an incomplete list.
        assert!(listed.is_err());
    }
}

fn is_corrupt<T>(result: &Result<T, StorageError>) -> bool {
    matches!(result, Err(StorageError::Backend(BackendError::Corrupt(_))))
}

pub async fn exact_reads_show_the_past(fixture: Fixture) {
    let before = fixture.write_elsewhere("x").await;
    let created = fixture.create("a/one", 1).await;
    let updated = fixture.set("a/one", 2).await;
    let deleted = fixture.delete("a/one").await;
    let value = async |at| {
        let read = fixture.storage.get("a/one", ReadAt::Exact(at)).await;
        read.map(|stored| (read_value(&stored.object()), stored.revision)).ok()
    };
    assert_eq!(value(before).await, None);
    assert_eq!(value(created).await, Some((1, created)));
    assert_eq!(value(updated).await, Some((2, updated)));
    assert_eq!(value(deleted).await, None);
}

pub async fn a_revision_from_the_future_is_too_large(fixture: Fixture) {
    let created = fixture.create("a/one", 1).await;
    let future = Revision(created.0 + 1000);
    for at in [ReadAt::NotOlderThan(future), ReadAt::Exact(future)] {
        let read = fixture.storage.get("a/one", at).await;
        assert!(matches!(read, Err(StorageError::TooLarge { .. })), "{read:?}");
        let listed = fixture.storage.list(&Scope::all(), &all(at), &mut UnlimitedMemory).await;
        assert!(matches!(listed, Err(StorageError::TooLarge { .. })));
    }
}

pub async fn not_older_than_sees_at_least_that_revision(fixture: Fixture) {
    fixture.create("a/one", 1).await;
    let elsewhere = fixture.write_elsewhere("x").await;
    let read = fixture.storage.get("a/one", ReadAt::NotOlderThan(elsewhere)).await.unwrap();
    assert_eq!(read_value(&read.object()), 1);
    assert!(fixture.list(&Scope::all(), ReadAt::NotOlderThan(elsewhere)).await.revision >= elsewhere);
    assert!(fixture.list(&Scope::all(), ReadAt::NotOlderThan(Revision(0))).await.revision > Revision(0));
}

pub async fn a_compacted_revision_is_expired_or_right(fixture: Fixture) {
    let created = fixture.create("a/one", 1).await;
    fixture.set("a/one", 2).await;
    let last = fixture.set("a/one", 3).await;
    fixture.backend.compact(last).await.unwrap();
    match fixture.storage.get("a/one", ReadAt::Exact(created)).await {
        Ok(stored) => assert_eq!((read_value(&stored.object()), stored.revision), (1, created)),
        Err(error) => assert!(matches!(error, StorageError::Expired { .. }), "{error:?}"),
    }
    let kept = fixture.storage.get("a/one", ReadAt::Exact(last)).await.unwrap();
    assert_eq!(read_value(&kept.object()), 3);
}
