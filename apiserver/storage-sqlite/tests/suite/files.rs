//! Files that are foreign, damaged or in use, and a full store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use drydock_storage::backend::{Backend, BackendError, CompareAndSwap, Revision, WriteOutcome};
use drydock_storage::testing::backend_suite::harness::*;
use drydock_storage_sqlite::{self as sqlite, Progress, SqliteBackend, SqliteOptions};
use futures::poll;

use crate::store::{open, place};

fn refusal(path: &Path) -> BackendError {
    match SqliteBackend::open(path, SqliteOptions::default()) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

/// Returns all files in the folder except the lock.
fn contents(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|file| file.extension().is_none_or(|end| end != "lock")).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect()
}

/// Checks that the file is refused as damaged or foreign, with these words, and does not change.
fn refused(path: &Path, words: &str) {
    let before = contents(path);
    match refusal(path) {
        BackendError::Corrupt(text) => {
            assert!(text.contains(words), "{text}");
            assert!(text.contains("store.db"), "it names the file: {text}");
        }
        other => panic!("{other:?}"),
    }
    // SQLite may leave an empty write-ahead log beside it.
    let after = contents(path);
    assert!(before.iter().all(|file| after.contains(file)), "the file is as it was");
}

async fn filled(path: &Path) {
    let store = open(path);
    for n in 0..200 {
        create(&store, &format!("/{n}"), &"x".repeat(500)).await;
    }
}

#[tokio::test]
async fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, path) = place();
    let store = SqliteBackend::open(&path, SqliteOptions::default()).unwrap();
    store
        .write(CompareAndSwap {
            key: "/a".into(),
            expected: None,
            value: Some("x".into()),
            guard: None,
            priority: Default::default(),
        })
        .await
        .unwrap();
    sqlite::backup(&path, &directory.path().join("copy.db"), &Progress::silent()).unwrap();
    let mut seen = 0;
    for file in std::fs::read_dir(directory.path()).unwrap().map(Result::unwrap) {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.path().display());
        seen += 1;
    }
    assert!(seen >= 4, "the store, its log and index, the lock, the copy: {seen}");
}

#[tokio::test]
async fn what_was_written_is_there_when_it_is_opened_again() {
    let (_directory, path) = place();
    filled(&path).await;
    let store = open(&path);
    assert_eq!(store.current_revision().await.unwrap(), Revision(201));
    assert_eq!(keys(&store, "/", None).await.len(), 200);
    assert_eq!(keys(&store, "/", Some(Revision(11))).await.len(), 10);
    assert_eq!(create(&store, "/new", "1").await, Revision(202));
}

#[tokio::test]
async fn a_file_that_is_not_sqlite_is_refused() {
    let (_directory, path) = place();
    for text in ["", "short", &"a long text, which is no database. ".repeat(500)] {
        std::fs::write(&path, text).unwrap();
        refused(&path, "is not a SQLite file");
    }
}

#[tokio::test]
async fn a_database_of_another_application_is_refused() {
    let (_directory, path) = place();
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE log (revision INTEGER PRIMARY KEY); INSERT INTO log VALUES (7);")
        .unwrap();
    drop(other);
    refused(&path, "another application");
}

/// Regression: the check of the header and the check through SQLite had different error messages.
#[tokio::test]
async fn a_file_that_is_not_of_ours_is_refused_in_the_same_words_by_all() {
    for (stamp, words) in [
        ("application_id = 7", "another application"),
        ("user_version = 1", "schema version 1 is no longer supported"),
        ("user_version = 3", "schema version 3 was made by a newer version"),
    ] {
        let (directory, path) = place();
        filled(&path).await;
        rusqlite::Connection::open(&path).unwrap().execute_batch(&format!("PRAGMA {stamp}")).unwrap();
        refused(&path, words);
        let copy = directory.path().join("copy.db");
        for other in [
            sqlite::check(&path, &Progress::silent()).unwrap_err(),
            sqlite::backup(&path, &copy, &Progress::silent()).unwrap_err(),
            sqlite::reclaim(&path, 1).unwrap_err(),
        ] {
            assert_eq!(other.to_string(), refusal(&path).to_string());
        }
    }
}

/// Regression: a folder was reported as one of two hard links, and opening a pipe blocked.
#[test]
fn what_is_no_file_is_refused() {
    let (_directory, path) = place();
    std::fs::create_dir(&path).unwrap();
    let checked = |words: &str| {
        let others = [sqlite::check(&path, &Progress::silent()).unwrap_err(), refusal(&path)];
        others.iter().for_each(|error| assert!(error.to_string().contains(words), "{error}"));
    };
    checked("store.db is a folder");
    std::fs::remove_dir(&path).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    checked("store.db is no regular file");
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let (_directory, path) = place();
    filled(&path).await;
    let whole = std::fs::read(&path).unwrap();
    // The first page after the header: the schema.
    let mut damaged = whole.clone();
    damaged[100..2000].fill(0xa5);
    std::fs::write(&path, &damaged).unwrap();
    refused(&path, "malformed");
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    refused(&path, "malformed");
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(keys(&open(&path), "/", None).await.len(), 200);
}

#[tokio::test]
async fn damage_met_later_is_reported_as_damage() {
    let (_directory, path) = place();
    filled(&path).await;
    let mut damaged = std::fs::read(&path).unwrap();
    let (middle, end) = (damaged.len() / 3 / 4096 * 4096, damaged.len() / 3 * 2 / 4096 * 4096);
    damaged[middle..end].fill(0xa5);
    std::fs::write(&path, &damaged).unwrap();
    let outcome = match SqliteBackend::open(&path, SqliteOptions::default()) {
        Err(error) => error,
        Ok(store) => store.range("/".to_owned().."0".to_owned(), 0, None).await.unwrap_err(),
    };
    assert!(matches!(outcome, BackendError::Corrupt(_)), "{outcome:?}");
}

#[tokio::test]
async fn a_file_in_use_is_refused_until_it_is_free() {
    let (_directory, path) = place();
    let store = open(&path);
    match refusal(&path) {
        BackendError::Unavailable(text) => assert!(text.contains("in use by another process"), "{text}"),
        other => panic!("{other:?}"),
    }
    create(&store, "/a", "1").await;
    drop(store);
    assert_eq!(text(&open(&path), "/a", None).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_file_in_use_is_refused_by_any_name() {
    let ((_directory, path), other) = (place(), tempfile::tempdir().unwrap());
    let link = other.path().join("link.db");
    let store = open(&path);
    create(&store, "/a", "1").await;
    std::os::unix::fs::symlink(&path, &link).unwrap();
    match refusal(&link) {
        BackendError::Unavailable(text) => assert!(text.contains("in use by another process"), "{text}"),
        other => panic!("{other:?}"),
    }
    drop(store);
    let linked = open(&link);
    assert_eq!(text(&linked, "/a", None).await.as_deref(), Some("1"));
    assert!(matches!(refusal(&path), BackendError::Unavailable(_)));
    drop(linked);
    // The log of a missing file is beside that file, not beside the link.
    std::fs::remove_file(&path).unwrap();
    assert!(refusal(&link).to_string().contains("is a symbolic link to a file that is missing"));
    assert!(!path.exists() && std::fs::symlink_metadata(&link).is_ok(), "nothing was made");
}

/// Regression: each of two hard links had a lock and a log of its own.
#[tokio::test]
async fn a_file_in_use_is_refused_by_a_hard_link() {
    let ((directory, path), other) = (place(), tempfile::tempdir().unwrap());
    let link = other.path().join("link.db");
    let store = open(&path);
    let first = create(&store, "/a", "1").await;
    std::fs::hard_link(&path, &link).unwrap();
    let copy = directory.path().join("copy.db");
    for error in [refusal(&link), sqlite::backup(&link, &copy, &Progress::silent()).unwrap_err()] {
        assert!(error.to_string().contains("link.db is one of 2 hard links to a file"), "{error}");
    }
    update(&store, "/a", first, "2").await;
    drop(store);
    assert!(refusal(&path).to_string().contains("store.db is one of 2 hard links"));
    std::fs::remove_file(&link).unwrap();
    assert_eq!(text(&open(&path), "/a", None).await.as_deref(), Some("2"));
}

#[tokio::test]
async fn a_running_watch_does_not_keep_the_file_and_ends() {
    let (_directory, path) = place();
    let store = open(&path);
    let mut watch = Watch::start(&store, "/", Revision(1)).await;
    create(&store, "/a", "1").await;
    watch.event().await;
    drop(store);
    assert!(matches!(watch.failure().await, BackendError::Unavailable(_)));
    open(&path);
}

#[tokio::test]
async fn what_a_stopped_process_left_of_a_new_file_is_made_anew() {
    let (_directory, path) = place();
    std::fs::write(path.with_extension("db.new"), "half of a file").unwrap();
    create(&open(&path), "/a", "1").await;
    assert!(!path.with_extension("db.new").exists());
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_an_error() {
    let (directory, _) = place();
    let error = refusal(&directory.path().join("none").join("store.db"));
    assert!(matches!(error, BackendError::Unavailable(_)), "{error:?}");
}

fn big() -> Bytes {
    vec![b'x'; 32 << 10].into()
}

/// Writes the key `/a` until there is no space. Returns the store, the key's last revision, and the error.
async fn full(path: &Path) -> (Store, Revision, BackendError) {
    let options = SqliteOptions { max_file: Some(1 << 20), ..SqliteOptions::default() };
    let store: Store = Arc::new(SqliteBackend::open(path, options).unwrap());
    let mut last = None;
    loop {
        let write = CompareAndSwap {
            key: "/a".to_owned(),
            expected: last,
            value: Some(big()),
            guard: None,
            priority: Default::default(),
        };
        match store.write(write).await {
            Ok(outcome) => last = Some(committed(outcome)),
            Err(error) => return (store, last.unwrap(), error),
        }
    }
}

#[tokio::test]
async fn a_store_is_full_until_something_is_written_that_is_as_large() {
    let (_directory, path) = place();
    let (store, last, _) = full(&path).await;
    let conflict = cas(&store, "/a", None, value("1")).await;
    assert!(matches!(conflict, WriteOutcome::Conflict(..)), "{conflict:?}");
    assert!(store.refuses_writes().is_some(), "a conflict writes nothing");
    committed(cas(&store, "/absent", None, None).await);
    assert!(store.refuses_writes().is_some(), "a delete of nothing writes nothing");
    delete(&store, "/a", last).await;
    assert!(store.refuses_writes().is_some(), "a delete needs less");
}

#[tokio::test]
async fn a_full_store_refuses_writes_serves_reads_and_recovers_by_compaction() {
    let (_directory, path) = place();
    let (store, last, error) = full(&path).await;
    let big = big();
    assert!(matches!(error, BackendError::NoSpace(_)), "{error:?}");
    assert!(error.to_string().contains("make room on the disk of --data-dir, and writes go on"), "{error}");
    assert_eq!(store.current_revision().await.unwrap(), last, "nothing of the refused write is there");
    assert_eq!(store.get("/a", None).await.unwrap().0.unwrap().mod_revision, last);
    store.compact(last).await.unwrap();
    // Rows are removed step by step; each refused write reads the size again.
    let next = loop {
        let write = CompareAndSwap {
            key: "/a".to_owned(),
            expected: Some(last),
            value: Some(big.clone()),
            guard: None,
            priority: Default::default(),
        };
        match store.write(write).await {
            Ok(outcome) => break committed(outcome),
            Err(error) => assert!(matches!(error, BackendError::NoSpace(_)), "{error:?}"),
        }
    };
    assert_eq!(next.0, last.0 + 1);
    assert_eq!(store.refuses_writes(), None);
}

/// The queue stays full because the writer cannot begin: another connection, an administrator's sqlite3, has the
/// write lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_beyond_the_queue_are_refused_at_once() {
    let (_directory, path) = place();
    let options = SqliteOptions { queue: 2, ..SqliteOptions::default() };
    let store: Store = Arc::new(SqliteBackend::open(&path, options).unwrap());
    let admin = rusqlite::Connection::open(&path).unwrap();
    admin.execute_batch("BEGIN IMMEDIATE").unwrap();
    let write = |n: usize| CompareAndSwap {
        key: format!("/{n}"),
        expected: None,
        value: value("1"),
        guard: None,
        priority: Default::default(),
    };
    // What the writer has taken before it stands still leaves room for more.
    let (mut waiting, mut refused) = (Vec::new(), 0);
    while refused < 12 {
        let mut written = store.write(write(waiting.len()));
        match poll!(&mut written) {
            Poll::Pending => waiting.push(written),
            Poll::Ready(Err(BackendError::Overloaded)) => refused += 1,
            Poll::Ready(other) => panic!("{other:?}"),
        }
    }
    admin.execute_batch("ROLLBACK").unwrap();
    let count = waiting.len();
    for written in waiting {
        assert!(matches!(written.await, Ok(WriteOutcome::Committed(_))));
    }
    assert_eq!(keys(&store, "/", None).await.len(), count);
}
