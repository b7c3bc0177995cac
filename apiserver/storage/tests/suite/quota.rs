//! A store that has grown to its quota: what is refused, what goes on, and how it gets space again.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use drydock_storage::backend::{BackendError, Revision, Write, WriteOutcome};
use drydock_storage::sqlite::{SqliteBackend, SqliteOptions};
use futures::FutureExt;

use crate::harness::{Store, committed};
use crate::sqlite::place;

const QUOTA: u64 = 4 << 20;
/// The reserve of so small a quota.
const RESERVE: u64 = 1 << 20;
const OBJECT: usize = 16 << 10;

fn open(path: &Path, quota: u64) -> Store {
    let options = SqliteOptions { quota: Some(quota), ..SqliteOptions::default() };
    Arc::new(SqliteBackend::open(path, options).unwrap())
}

async fn put(
    store: &Store,
    key: &str,
    expected: Option<Revision>,
    bytes: usize,
) -> Result<Revision, BackendError> {
    let value = Some(Bytes::from(vec![b'x'; bytes]));
    let write = Write { key: key.to_owned(), expected, value, guard: None };
    store.write(write).await.map(committed)
}

async fn remove(store: &Store, key: &str, expected: Revision) -> Result<Revision, BackendError> {
    let write = Write { key: key.to_owned(), expected: Some(expected), value: None, guard: None };
    store.write(write).await.map(committed)
}

/// Creates objects until one is refused; returns those that were made.
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

/// Writes as large a value as is there again and again until it is refused: each leaves a row behind.
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

/// Whoever filled a store kept everybody from removing anything: a delete takes space too.
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

    // The rest of the reserve but for that of deletes is used up too, by whoever wants to.
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
    // The rows go away step by step; each refusal is one more look.
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
    let conflict = Write { key: made[0].0.clone(), expected: Some(made[0].1), value: None, guard: None };
    let conflict = store.write(conflict).await.unwrap();
    assert!(matches!(conflict, WriteOutcome::Conflict(None, _)), "{conflict:?}");
}

/// The limit came after the store, or was lowered.
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
