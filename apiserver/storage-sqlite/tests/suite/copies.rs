//! Backups of a store that is in use, stores restored from them, and what a check finds.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drydock_storage::backend::{BackendError, Revision};
use drydock_storage::testing::backend_suite::harness::*;
use drydock_storage_sqlite::{self as sqlite, Progress, SqliteBackend, SqliteOptions};

use crate::store::{open, place};

async fn backup(from: &Path, to: &Path) -> Result<sqlite::Contents, BackendError> {
    let (from, to) = (from.to_owned(), to.to_owned());
    let work = move || sqlite::backup(&from, &to, &Progress::silent());
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Creates, updates and deletes one key until `stop`.
async fn write_until(store: Store, writer: usize, stop: Arc<AtomicBool>) {
    let name = format!("busy-{writer}");
    while !stop.load(Ordering::Relaxed) {
        let mut last = create(&store, &key(&name), &object(&name, "0")).await;
        for n in 1..5 {
            last = update(&store, &key(&name), last, &object(&name, &n.to_string())).await;
        }
        delete(&store, &key(&name), last).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_is_restored_with_the_same_objects_and_revisions() {
    let (directory, path) = place();
    let store = open(&path);
    for n in 0..500 {
        let name = format!("kept-{n}");
        create(&store, &key(&name), &object(&name, &"x".repeat(500))).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> =
        (0..8).map(|writer| tokio::spawn(write_until(store.clone(), writer, stop.clone()))).collect();
    for round in 0..5 {
        let copy = directory.path().join(format!("copy-{round}.db"));
        let contents = backup(&path, &copy).await.unwrap();
        let restored = directory.path().join(format!("restored-{round}.db"));
        let made = sqlite::restore(&copy, &restored, 0, &Progress::silent()).unwrap();
        assert_eq!((made.revision, made.keys, made.rows), (contents.revision, contents.keys, contents.rows));
        let restored = open(&restored);
        assert_eq!(restored.current_revision().await.unwrap(), contents.revision);
        assert_eq!(all(&restored, None).await, all(&store, Some(contents.revision)).await);
        let early = Revision(100);
        assert_eq!(all(&restored, Some(early)).await, all(&store, Some(early)).await, "history as well");
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    sqlite::check(&path, &Progress::silent()).unwrap();
}

#[tokio::test]
async fn a_backup_overwrites_nothing() {
    let (directory, path) = place();
    create(&open(&path), "/a", "1").await;
    let copy = directory.path().join("copy.db");
    std::fs::write(&copy, "a letter").unwrap();
    let error = backup(&path, &copy).await.unwrap_err().to_string();
    assert!(error.contains("copy.db exists"), "{error}");
    assert_eq!(std::fs::read(&copy).unwrap(), b"a letter");
    let error =
        backup(&directory.path().join("none.db"), &directory.path().join("new.db")).await.unwrap_err();
    assert!(error.to_string().contains("none.db"), "{error}");
    assert!(!directory.path().join("new.db").exists() && !directory.path().join("none.db").exists());
}

/// Clients have seen writes that were made after the backup: none may receive other events with the same revisions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_store_goes_on_above_whatever_was_given_out() {
    let (directory, path) = place();
    let store = open(&path);
    let first = create(&store, "/a", "1").await;
    let copy = directory.path().join("copy.db");
    let at = backup(&path, &copy).await.unwrap().revision;
    let seen_later = update(&store, "/a", first, "lost with the disk").await;
    let restored = directory.path().join("restored.db");
    sqlite::restore(&copy, &restored, 1_000_000, &Progress::silent()).unwrap();
    let restored = open(&restored);
    let current = restored.current_revision().await.unwrap();
    assert_eq!(current.0, at.0 + 1_000_000);
    assert_eq!(restored.get("/a", None).await.unwrap().0.unwrap().mod_revision, first);
    for old in [first, seen_later] {
        let failure = Watch::start(&restored, "/", old).await.failure().await;
        assert!(matches!(failure, BackendError::Compacted { .. }), "{failure:?}");
        assert!(matches!(restored.get("/a", Some(old)).await, Err(BackendError::Compacted { .. })));
    }
    let mut watch = Watch::start(&restored, "/", current).await;
    let next = update(&restored, "/a", first, "2").await;
    assert_eq!((next.0, watch.event().await.revision), (current.0 + 1, next));
    // Compaction walks the gap by rows, not by revisions.
    restored.compact(next).await.unwrap();
    delete(&restored, "/a", next).await;
}

#[tokio::test]
async fn a_place_that_is_taken_is_not_restored_to() {
    let (directory, path) = place();
    let store = open(&path);
    create(&store, "/a", "1").await;
    let copy = directory.path().join("copy.db");
    backup(&path, &copy).await.unwrap();
    let refused = |to: &Path| sqlite::restore(&copy, to, 0, &Progress::silent()).unwrap_err().to_string();
    assert!(refused(&path).contains("is in use by another process"));
    drop(store);
    assert!(refused(&path).contains("exists, and nothing is overwritten"));
    let other = directory.path().join("other.db");
    std::fs::write(directory.path().join("other.db-wal"), "of another file").unwrap();
    assert!(refused(&other).contains("other.db-wal exists"));
    let error = SqliteBackend::open(&other, SqliteOptions::default()).err().unwrap().to_string();
    assert!(error.contains("other.db-wal exists"), "{error}");
    let none = directory.path().join("none.db");
    let error = sqlite::restore(&none, &directory.path().join("new.db"), 0, &Progress::silent()).unwrap_err();
    assert!(error.to_string().contains("none.db"), "{error}");
    assert!(!directory.path().join("new.db").exists());
}

/// Damages a store in one way, and returns what a check reports.
async fn after(harm: &str) -> String {
    let (_directory, path) = place();
    let store = open(&path);
    let first = create(&store, &key("a"), &object("a", "1")).await;
    update(&store, &key("a"), first, &object("a", "2")).await;
    let gone = create(&store, &key("b"), &object("b", "1")).await;
    delete(&store, &key("b"), gone).await;
    create(&store, &key("b"), &object("b", "2")).await;
    create(&store, "/fences/me", "7").await;
    drop(store);
    rusqlite::Connection::open(&path).unwrap().execute_batch(harm).unwrap();
    match sqlite::check(&path, &Progress::silent()) {
        Ok(contents) => contents.to_string(),
        Err(BackendError::Corrupt(why)) if why.contains("store.db") => why,
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_check_says_what_is_wrong() {
    let whole = after("").await;
    assert!(whole.starts_with("revision 7, oldest 1, 3 keys, 6 rows, "), "{whole}");
    for (harm, said) in [
        ("DELETE FROM log WHERE revision = 2", "previous revision 2 contradict each other"),
        ("DELETE FROM log WHERE revision = 7", "3 keys"),
        ("DELETE FROM log WHERE revision = 6", "found 5: rows are missing"),
        (
            "UPDATE log SET prev_revision = 0 WHERE revision = 3",
            "/registry/g/plural/a at revision 3: create revision",
        ),
        ("UPDATE log SET create_revision = 1 WHERE revision = 3", "create revision 1 and"),
        ("UPDATE log SET deleted = 1 WHERE revision = 7", "/fences/me at revision 7"),
        ("UPDATE log SET value = NULL WHERE revision = 6", "it has no value"),
        ("UPDATE log SET value = x'7b' WHERE revision = 6", "/registry/g/plural/b at revision 6: "),
        ("UPDATE log SET value = x'7b' WHERE revision = 7", "it is not a term"),
        ("UPDATE log SET value = CAST('8' AS BLOB) WHERE revision = 7", "the checksum does not match"),
        (
            "UPDATE log SET checksum = 1 WHERE revision = 2",
            "/registry/g/plural/a at revision 2: the checksum does not match",
        ),
        ("UPDATE meta SET number = 99 WHERE name = 'scrubbed'", "only 1 are forgotten"),
        ("DELETE FROM meta", "no rows"),
        ("PRAGMA user_version = 3", "newer version"),
        ("PRAGMA user_version = 1", "schema version 1 is no longer supported"),
        ("PRAGMA application_id = 1", "another application"),
        ("DROP INDEX log_by_key", "its tables are not those"),
        ("CREATE TABLE mine (x)", "its tables are not those"),
    ] {
        let what = after(harm).await;
        assert!(what.contains(said) || (said == "3 keys" && what.contains("2 keys")), "{harm}: {what}");
    }
}

/// Regression: most flipped bits leave JSON that can be decoded, with another content.
#[tokio::test]
async fn a_bit_that_flips_in_a_value_is_found_wherever_it_is() {
    let (_directory, path) = place();
    let store = open(&path);
    let (text, other) = (object("a", "some text"), object("b", "another"));
    create(&store, &key("a"), &text).await;
    create(&store, &key("b"), &other).await;
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let at = whole.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    for bit in 0..8 * text.len() {
        let mut flipped = whole.clone();
        flipped[at + bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &flipped).unwrap();
        let found = sqlite::check(&path, &Progress::silent());
        assert!(matches!(found, Err(BackendError::Corrupt(_))), "bit {bit}: {found:?}");
    }
    let store = open(&path);
    let values: Vec<_> = all(&store, None).await.into_iter().map(|pair| pair.value).collect();
    assert_eq!(values, [&b""[..], other.as_bytes()], "the damaged one is not handed out, the other is");
    let damaged = store.get(&key("a"), None).await.unwrap().0.unwrap();
    assert!(damaged.value.is_empty());
    delete(&store, &key("a"), damaged.mod_revision).await;
}

#[tokio::test]
async fn a_check_reads_every_page() {
    let (directory, path) = place();
    let store = open(&path);
    for n in 0..200 {
        create(&store, &format!("/{n}"), &"x".repeat(500)).await;
    }
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 8].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    let error = sqlite::check(&path, &Progress::silent()).unwrap_err();
    assert!(matches!(&error, BackendError::Corrupt(why) if why.contains("store.db")), "{error:?}");
    std::fs::write(&path, "notes of somebody").unwrap();
    let error = sqlite::check(&path, &Progress::silent()).unwrap_err();
    assert!(matches!(&error, BackendError::Corrupt(why) if why.contains("not a database")), "{error:?}");
    let folder = sqlite::check(directory.path(), &Progress::silent()).unwrap_err().to_string();
    assert!(folder.contains("is a folder: name the file in it"), "{folder}");
}

/// An unfinished change in such a file can be undone only by a process that may write.
#[tokio::test]
async fn a_file_with_a_journal_to_undo_is_not_read_and_told_what_to_do_with() {
    let (directory, path) = place();
    let other = directory.path().join("other.db");
    let store = open(&other);
    for n in 0..50 {
        create(&store, &key(&n.to_string()), &object(&n.to_string(), &"x".repeat(3000))).await;
    }
    drop(store);
    let changes = rusqlite::Connection::open(&other).unwrap();
    let change = "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; UPDATE log SET value = NULL";
    changes.execute_batch(change).unwrap();
    std::fs::copy(&other, &path).unwrap();
    std::fs::copy(other.with_extension("db-journal"), path.with_extension("db-journal")).unwrap();
    let copy = directory.path().join("copy.db");
    for error in [
        sqlite::check(&path, &Progress::silent()).unwrap_err(),
        sqlite::backup(&path, &copy, &Progress::silent()).unwrap_err(),
    ] {
        let told = error.to_string();
        assert!(told.contains("store.db: a change of it was broken off"), "{told}");
        assert!(told.contains("start a server on it once"), "{told}");
    }
    drop(open(&path));
    assert_eq!(sqlite::check(&path, &Progress::silent()).unwrap().keys, 50);
}

/// Regression: the first server on it switched it to WAL with a rollback journal (see above, and `open::enable_wal`).
#[tokio::test]
async fn a_restored_store_has_its_log_from_the_beginning() {
    let (directory, path) = place();
    create(&open(&path), "/a", "1").await;
    let (copy, restored) = (directory.path().join("copy.db"), directory.path().join("restored.db"));
    backup(&path, &copy).await.unwrap();
    let versions = |path: &Path| std::fs::read(path).unwrap()[18..20].to_vec();
    assert_eq!(versions(&copy), [1, 1], "a backup is read where nobody may write");
    for bump in [0, 1000] {
        sqlite::restore(&copy, &restored, bump, &Progress::silent()).unwrap();
        assert_eq!(versions(&restored), [2, 2]);
        std::fs::remove_file(&restored).unwrap();
    }
    let left = std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains(".new")));
}

#[tokio::test]
async fn a_backup_leaves_what_lies_beside_it_and_what_has_its_name() {
    let (directory, path) = place();
    create(&open(&path), "/a", "1").await;
    let (to, other) = (directory.path().join("copy.db"), directory.path().join("copy.db.part"));
    std::fs::write(&other, "of somebody else").unwrap();
    sqlite::backup(&path, &to, &Progress::silent()).unwrap();
    assert_eq!(std::fs::read(&other).unwrap(), b"of somebody else");
    // A file that gets the name during the copy is kept.
    let late = directory.path().join("late.db");
    let named = late.clone();
    let writes = Progress::new(move |_| std::fs::write(&named, "somebody else's").unwrap());
    let error = sqlite::backup(&path, &late, &writes).unwrap_err();
    assert!(matches!(&error, BackendError::Unavailable(why) if why.contains("late.db exists")), "{error}");
    assert_eq!(std::fs::read(&late).unwrap(), b"somebody else's");
    let left = std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name());
    let parts = left.filter(|name| name.to_string_lossy().ends_with(".part")).count();
    assert_eq!(parts, 1, "only what was there");
}
