//! Files of a store that are removed, moved or replaced while a server has it open. Regression: what the server
//! acknowledged afterwards went to files without a name, and was lost.

use std::fs;
use std::path::Path;

use drydock_storage::backend::{BackendError, CompareAndSwap, Revision, WriteOutcome};
use drydock_storage::testing::backend_suite::harness::*;
use drydock_storage_sqlite::{self as sqlite, Progress};

use crate::store::{open, place};

/// Checks that the store accepts no more writes and that the error names the file.
async fn ended(store: &Store, file: &str) {
    let before = store.current_revision().await.unwrap();
    let noticed = match file {
        "store.db" => store.write(late()).await.map(drop),
        _ => store.compact(before).await,
    };
    let Err(BackendError::Closed(why)) = noticed else { panic!("{noticed:?}") };
    assert!(why.contains(&format!("{file} was moved, removed or replaced")), "{why}");
    assert!(why.contains("and start the server again"), "{why}");
    assert_eq!((store.ended(), store.refuses_writes()), (Some(why.clone()), Some(why)), "/livez and /readyz");
    assert!(matches!(store.compact(before).await, Err(BackendError::Closed(_))));
    assert!(matches!(store.write(late()).await, Err(BackendError::Closed(_))));
    assert_eq!(text(store, "/late", None).await, None);
    assert_eq!(store.current_revision().await.unwrap(), before);
}

fn late() -> CompareAndSwap {
    CompareAndSwap {
        key: "/late".to_owned(),
        expected: None,
        value: value("1"),
        guard: None,
        priority: Default::default(),
    }
}

async fn filled(path: &Path) -> Store {
    let store = open(path);
    assert_eq!(store.ended(), None);
    create(&store, &key("a"), &object("a", "1")).await;
    store
}

#[tokio::test]
async fn a_store_whose_file_is_removed_takes_no_writes() {
    let (_directory, path) = place();
    let store = filled(&path).await;
    fs::remove_file(&path).unwrap();
    ended(&store, "store.db").await;
    drop(store);
    let error = sqlite::SqliteBackend::open(&path, sqlite::SqliteOptions::default()).err().unwrap();
    assert!(error.to_string().contains("the database file is missing"), "no new one is begun: {error}");
}

/// A periodic compaction, every few minutes, detects it.
#[tokio::test]
async fn that_its_file_is_gone_is_noticed_when_nobody_writes() {
    let (_directory, path) = place();
    let store = filled(&path).await;
    fs::remove_file(&path).unwrap();
    assert!(matches!(store.compact(Revision(2)).await, Err(BackendError::Closed(_))));
    assert!(store.ended().is_some());
}

#[tokio::test]
async fn a_file_that_is_moved_away_is_whole_there_and_when_it_is_put_back() {
    let (directory, path) = place();
    let store = filled(&path).await;
    let elsewhere = directory.path().join("elsewhere.db");
    fs::rename(&path, &elsewhere).unwrap();
    ended(&store, "store.db").await;
    drop(store);
    assert_eq!(sqlite::check(&elsewhere, &Progress::silent()).unwrap().keys, 1);
    fs::rename(&elsewhere, &path).unwrap();
    assert_eq!(text(&open(&path), &key("a"), None).await, Some(object("a", "1")));
}

/// Regression: the log of one file would have been applied to the other.
#[tokio::test]
async fn a_file_that_takes_the_place_of_another_is_not_damaged_by_its_log() {
    let (directory, path) = place();
    let store = filled(&path).await;
    let copy = directory.path().join("copy.db");
    sqlite::backup(&path, &copy, &Progress::silent()).unwrap();
    for n in 0..50 {
        create(&store, &key(&n.to_string()), &object(&n.to_string(), &"x".repeat(500))).await;
    }
    fs::rename(&copy, &path).unwrap();
    ended(&store, "store.db").await;
    drop(store);
    assert_eq!(keys(&open(&path), "/", None).await, [key("a")]);
    assert_eq!(sqlite::check(&path, &Progress::silent()).unwrap().keys, 1);
}

#[tokio::test]
async fn what_is_in_a_log_that_is_removed_is_not_lost() {
    let (_directory, path) = place();
    let store = filled(&path).await;
    fs::remove_file(path.with_extension("db-wal")).unwrap();
    ended(&store, "store.db-wal").await;
    drop(store);
    assert_eq!(text(&open(&path), &key("a"), None).await, Some(object("a", "1")));
}

/// Regression: after somebody removed a lock file that looked stale, two servers wrote and gave out the same
/// revisions.
#[tokio::test]
async fn a_server_whose_lock_is_removed_leaves_the_store_to_the_next() {
    let (_directory, path) = place();
    let first = filled(&path).await;
    fs::remove_file(path.with_extension("db.lock")).unwrap();
    let second = open(&path);
    create(&second, &key("b"), &object("b", "1")).await;
    let mut tries = 0;
    let refused = loop {
        // If it were accepted, it would find that its key exists, and write nothing.
        let write = CompareAndSwap {
            key: key("a"),
            expected: None,
            value: value("1"),
            guard: None,
            priority: Default::default(),
        };
        match first.write(write).await {
            Err(error) => break error,
            Ok(written) => {
                assert!(tries < 16 && matches!(written, WriteOutcome::Conflict(..)), "{written:?}")
            }
        }
        tries += 1;
    };
    assert!(matches!(&refused, BackendError::Closed(why) if why.contains("store.db.lock was moved")));
    drop(first);
    create(&second, &key("c"), &object("c", "1")).await;
    drop(second);
    assert_eq!(sqlite::check(&path, &Progress::silent()).unwrap().keys, 3);
}
