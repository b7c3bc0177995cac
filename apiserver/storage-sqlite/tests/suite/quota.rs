//! A store that has reached its quota: what is refused, what is accepted, and how it gets space again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use drydock_storage::backend::{BackendError, CompareAndSwap, Priority, Revision, WriteOutcome};
use drydock_storage::retention::Retention;
use drydock_storage::testing::backend_suite::harness::{Store, committed};
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};
use futures::FutureExt;

use crate::store::place;

const QUOTA: u64 = 4 << 20;
/// The reserve for such a small quota.
const RESERVE: u64 = 1 << 20;
const OBJECT: usize = 16 << 10;

/// Opens a store that does not compact early during a test.
fn open(path: &Path, quota: u64) -> Store {
    open_keeping(path, quota, Duration::from_secs(3600))
}

fn open_keeping(path: &Path, quota: u64, history: Duration) -> Store {
    let retention = Retention { half: history, three_quarters: history, full: history };
    let options = SqliteOptions { quota: Some(quota), retention, ..SqliteOptions::default() };
    Arc::new(SqliteBackend::open(path, options).unwrap())
}

async fn put_as(
    store: &Store,
    priority: Priority,
    (key, expected): (&str, Option<Revision>),
    bytes: usize,
) -> Result<Revision, BackendError> {
    let value = Some(Bytes::from(vec![b'x'; bytes]));
    let write = CompareAndSwap { key: key.to_owned(), expected, value, guard: None, priority };
    store.write(write).await.map(committed)
}

async fn put(
    store: &Store,
    key: &str,
    expected: Option<Revision>,
    bytes: usize,
) -> Result<Revision, BackendError> {
    put_as(store, Priority::Ordinary, (key, expected), bytes).await
}

async fn remove(store: &Store, key: &str, expected: Revision) -> Result<Revision, BackendError> {
    let write = CompareAndSwap {
        key: key.to_owned(),
        expected: Some(expected),
        value: None,
        guard: None,
        priority: Default::default(),
    };
    store.write(write).await.map(committed)
}

/// Creates objects until one is refused. Returns those that were created, and the error.
async fn filled(store: &Store) -> (Vec<(String, Revision)>, BackendError) {
    let mut made = Vec::new();
    loop {
        let key = format!("/{:06}", made.len());
        match put(store, &key, None, OBJECT).await {
            Ok(revision) => made.push((key, revision)),
            Err(error) => return (made, error),
        }
    }
}

/// Writes a value of the same size (or one byte smaller each time) until it is refused: each write leaves a row in
/// the history.
async fn rewritten(store: &Store, key: &str, mut at: Revision, shrinking_from: Option<usize>) -> Revision {
    let mut bytes = shrinking_from.unwrap_or(OBJECT);
    loop {
        bytes -= usize::from(shrinking_from.is_some());
        match put(store, key, Some(at), bytes).await {
            Ok(revision) => at = revision,
            Err(error) => {
                assert!(matches!(error, BackendError::NoSpace(_)), "{error:?}");
                return at;
            }
        }
    }
}

/// Regression: a client that filled a store prevented all deletes, because a delete needs space too.
#[tokio::test]
async fn a_full_store_refuses_creates_and_takes_every_delete() {
    let (_directory, path) = place();
    let store = open(&path, QUOTA);
    let (made, error) = filled(&store).await;
    assert!(made.len() > 200, "{}", made.len());
    assert!(matches!(error, BackendError::NoSpace(_)), "{error:?}");
    let words =
        "--quota-backend-bytes is 4194304: delete objects, which makes space within ten minutes, or raise it";
    assert!(error.to_string().contains(words), "{error}");
    assert!(store.refuses_writes().is_some_and(|why| why.contains(words)));

    // Any client may use the rest of the reserve, except for the part for deletes.
    let (victim, at) = made[0].clone();
    let at = rewritten(&store, &victim, at, None).await;
    let at = rewritten(&store, &victim, at, Some(OBJECT)).await;
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size < QUOTA + RESERVE, "{size}");

    remove(&store, &victim, at).await.unwrap();
    let mut last = at;
    for (key, revision) in &made[1..] {
        last = remove(&store, key, *revision).await.unwrap();
    }
    assert!(put(&store, "/new", None, OBJECT).await.is_err(), "what was deleted is history still");

    store.compact(last).await.unwrap();
    // Rows are removed step by step; each refused write reads the size again.
    while let Err(error) = put(&store, "/new", None, OBJECT).await {
        assert!(matches!(error, BackendError::NoSpace(_)), "{error:?}");
    }
    assert_eq!(store.refuses_writes(), None);
    let (again, _) = filled(&store).await;
    assert!(again.len() + 20 > made.len(), "the space is used again: {} and {}", again.len(), made.len());
}

#[tokio::test]
async fn writers_can_begin_their_terms_in_a_full_store() {
    let (_directory, path) = place();
    let store = open(&path, QUOTA);
    let (made, _) = filled(&store).await;
    let (victim, at) = made[0].clone();
    rewritten(&store, &victim, at, None).await;
    put(&store, "/fences/controller", None, 10).await.unwrap();
}

/// Regression: a client that rewrote one object filled the store with its history, for ten minutes and for everybody.
#[tokio::test]
async fn history_makes_way_by_itself_when_it_fills_the_store() {
    let (_directory, path) = place();
    let store = open_keeping(&path, QUOTA, Duration::ZERO);
    let kept = put(&store, "/kept", None, OBJECT).await.unwrap();
    let mut at = put(&store, "/a", None, OBJECT).await.unwrap();
    assert!(store.shortage().is_none());
    for _ in 0..4 * QUOTA as usize / OBJECT {
        at = put(&store, "/a", Some(at), OBJECT).await.unwrap();
    }
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size < QUOTA, "{size}");
    put(&store, "/another", None, OBJECT).await.unwrap();
    let (pair, _) = store.get("/kept", None).await.unwrap();
    assert_eq!(pair.unwrap().mod_revision, kept);
    // The current state stays readable at the boundary and above it.
    assert!(store.get("/a", Some(at)).await.unwrap().0.is_some());
    assert!(matches!(store.get("/a", Some(kept)).await, Err(BackendError::Compacted { .. })));
}

#[tokio::test]
async fn history_is_kept_while_less_than_half_of_the_quota_is_used() {
    let (_directory, path) = place();
    let store = open_keeping(&path, QUOTA, Duration::ZERO);
    let first = put(&store, "/a", None, OBJECT).await.unwrap();
    let mut at = first;
    for _ in 0..QUOTA as usize / OBJECT / 3 {
        at = put(&store, "/a", Some(at), OBJECT).await.unwrap();
    }
    assert!(store.get("/a", Some(first)).await.unwrap().0.is_some());
}

/// Regression: a tenant that shrank an object byte by byte used up the reserve for removals of finalizers, and one
/// that made it grow used up the reserve for the status.
#[tokio::test]
async fn no_ordinary_write_uses_what_is_kept_for_others() {
    let (_directory, path) = place();
    let store = open(&path, QUOTA);
    let (made, _) = filled(&store).await;
    let [(victim, at), (status, status_at), (ours, ours_at)] = [0, 1, 2].map(|n| made[n].clone());
    let at = rewritten(&store, &victim, at, None).await;
    put_as(&store, Priority::Needed, (&status, Some(status_at)), OBJECT + 100).await.unwrap();
    rewritten(&store, &victim, at, Some(OBJECT)).await;
    put_as(&store, Priority::System, (&ours, Some(ours_at)), OBJECT + 100).await.unwrap();
    put_as(&store, Priority::System, ("/new", None), OBJECT).await.unwrap();
}

/// What is in namespaces, whoever writes it, leaves a part of the store to what is in none.
#[tokio::test]
async fn no_namespace_uses_what_is_kept_for_objects_that_are_in_none() {
    let (_directory, path) = place();
    let store = open(&path, QUOTA);
    filled(&store).await;
    for priority in [Priority::Needed, Priority::System] {
        let mut made = 0;
        while put_as(&store, priority, (&format!("/{priority:?}{made}"), None), OBJECT).await.is_ok() {
            made += 1;
        }
        assert!(made > 0, "{priority:?}");
    }
    put_as(&store, Priority::Cluster, ("/unscoped/a", None), OBJECT).await.unwrap();
}

async fn create(store: Store, number: usize) -> Result<Revision, BackendError> {
    put(&store, &format!("/new{number}"), None, OBJECT).await
}

#[tokio::test]
async fn of_one_transaction_each_write_is_judged_alone() {
    let (_directory, path) = place();
    let store = open(&path, QUOTA);
    let (made, _) = filled(&store).await;
    let creates = (0..50).map(|n| create(store.clone(), n).boxed());
    let deletes = made.iter().map(|(key, at)| remove(&store, key, *at).boxed());
    let answers = futures::future::join_all(creates.chain(deletes)).await;
    assert!(answers[..50].iter().all(Result::is_err) && answers[50..].iter().all(Result::is_ok));
    let conflict = CompareAndSwap {
        key: made[0].0.clone(),
        expected: Some(made[0].1),
        value: None,
        guard: None,
        priority: Default::default(),
    };
    let conflict = store.write(conflict).await.unwrap();
    assert!(matches!(conflict, WriteOutcome::Conflict(None, _)), "{conflict:?}");
}

/// The quota was set after the store had grown, or was lowered.
#[tokio::test]
async fn a_store_that_is_larger_than_its_quota_when_it_is_opened_can_be_emptied() {
    let (_directory, path) = place();
    let store = open(&path, 3 * QUOTA);
    let (made, _) = filled(&store).await;
    drop(store);
    let store = open(&path, QUOTA);
    assert!(put(&store, "/new", None, OBJECT).await.is_err());
    let mut last = Revision(0);
    for (key, revision) in &made {
        last = remove(&store, key, *revision).await.unwrap();
    }
    store.compact(last).await.unwrap();
    while let Err(error) = put(&store, "/new", None, OBJECT).await {
        assert!(matches!(error, BackendError::NoSpace(_)), "{error:?}");
    }
}
