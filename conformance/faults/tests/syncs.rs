//! Syncs that fail, on a disk whose system takes what it could not write for written, as Linux does: what was
//! acknowledged is there when the power has gone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use drydock_faults::{Faults, disk};
use drydock_storage::backend::{Backend, BackendError, CompareAndSwap, WriteOutcome};
use drydock_storage_sqlite::{self as sqlite, Progress, SqliteBackend, SqliteOptions};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

/// Pages in the log at which it is copied.
const PAGES: u32 = 60;

static COPIED: AtomicUsize = AtomicUsize::new(0);
static SYNCED: AtomicUsize = AtomicUsize::new(0);

/// A store on the disk, of which a process has one: tests take turns.
struct Setup {
    path: PathBuf,
    acknowledged: BTreeMap<String, String>,
    written: usize,
    _folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Setup {
    async fn new() -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        let turn = TURN.lock().await;
        drydock_faults::install();
        disk().on_change(Box::new(|what| match what {
            "checkpoint-write" => drop(COPIED.fetch_add(1, SeqCst)),
            "checkpoint-sync" => drop(SYNCED.fetch_add(1, SeqCst)),
            _ => {}
        }));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        Self { path, acknowledged: BTreeMap::new(), written: 0, _folder: folder, _turn: turn }
    }

    fn open(&self) -> Result<SqliteBackend, BackendError> {
        SqliteBackend::open(&self.path, SqliteOptions { checkpoint_pages: PAGES, ..SqliteOptions::default() })
    }

    /// Creates one more object, of two pages.
    async fn write(&mut self, store: &SqliteBackend) -> Result<(), BackendError> {
        self.written += 1;
        let name = format!("object-{:03}", self.written);
        let key = format!("/registry/g/plural/{name}");
        let value = format!(r#"{{"metadata":{{"name":"{name}"}},"filling":"{}"}}"#, "x".repeat(7000));
        let write = CompareAndSwap {
            key: key.clone(),
            expected: None,
            value: Some(value.clone().into()),
            guard: None,
            priority: Default::default(),
        };
        let outcome = store.write(write).await?;
        assert!(matches!(outcome, WriteOutcome::Committed(_)), "{outcome:?}");
        self.acknowledged.insert(key, value);
        Ok(())
    }

    /// Writes so many times, or until a write is refused; returns that error.
    async fn write_on(&mut self, store: &SqliteBackend, times: usize) -> Option<BackendError> {
        for _ in 0..times {
            if let Err(error) = self.write(store).await {
                return Some(error);
            }
        }
        None
    }

    /// The sync of a checkpoint fails behind one that copied a part of the log, while a reader held up the rest.
    async fn fail_behind_a_part(&mut self, store: &SqliteBackend, reader: &Connection) {
        assert!(self.write_on(store, 8).await.is_none());
        reader.execute_batch("BEGIN; SELECT count(*) FROM log").unwrap();
        let (copied, synced) = (COPIED.load(SeqCst), SYNCED.load(SeqCst));
        while COPIED.load(SeqCst) == copied {
            self.write(store).await.unwrap();
        }
        assert_eq!(SYNCED.load(SeqCst), synced, "it was a part");
        assert_eq!(store.ended(), None);
        reader.execute_batch("COMMIT").unwrap();
        disk().fail_sync(&self.path);
        while SYNCED.load(SeqCst) == synced {
            self.write(store).await.unwrap();
        }
    }

    /// The power goes while the store is open, and comes back: all that was acknowledged is there.
    async fn lose_power(&self, store: SqliteBackend) {
        disk().arm(0, 0, Faults::default());
        drop(store);
        self.come_back().await;
    }

    async fn come_back(&self) {
        disk().power_cycle().unwrap();
        sqlite::check(&self.path, &Progress::silent()).unwrap();
        let store = self.open().unwrap();
        for (key, value) in &self.acknowledged {
            let found = store.get(key, None).await.unwrap().0.unwrap_or_else(|| panic!("{key} is lost"));
            assert!(found.value == value, "{key} is another");
        }
    }
}

/// Somebody else who has the file open, and leaves the log as it is.
fn other(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    connection
}

/// The part was not copied again, and a later sync that succeeded let the log begin anew without it.
#[tokio::test]
async fn a_failed_sync_behind_a_part_of_the_log_ends_writes_and_loses_none() {
    let mut setup = Setup::new().await;
    let store = setup.open().unwrap();
    let reader = other(&setup.path);
    setup.fail_behind_a_part(&store, &reader).await;
    let ended = store.ended();
    let refusal = setup.write_on(&store, 100).await;
    let refuses = store.refuses_writes();
    drop(reader);
    setup.lose_power(store).await;
    let why = ended.expect("/livez fails at once");
    assert!(why.contains("fsync failed") && why.contains("restart the server"), "{why}");
    assert_eq!(refuses.as_ref(), Some(&why));
    assert!(matches!(&refusal, Some(BackendError::Closed(told)) if *told == why), "{refusal:?}");
}

/// While a process has the file open, SQLite continues from the last checkpoint, and so did the next server.
#[tokio::test]
async fn whoever_opens_it_after_a_failed_sync_copies_all_of_the_log() {
    let mut setup = Setup::new().await;
    let store = setup.open().unwrap();
    let stays = other(&setup.path);
    setup.fail_behind_a_part(&store, &stays).await;
    drop(store);
    let early = setup.open();
    if let Ok(store) = early {
        assert!(setup.write_on(&store, 100).await.is_none());
        drop(stays);
        setup.lose_power(store).await;
        panic!("it was opened while somebody else had it");
    }
    let why = early.err().unwrap().to_string();
    assert!(why.contains("the disk has failed to sync it, and another process has it open"), "{why}");
    drop(stays);
    let store = setup.open().unwrap();
    assert!(setup.write_on(&store, 100).await.is_none());
    setup.lose_power(store).await;
}

/// A commit that the disk does not sync is rolled back. Whoever opened the store after that found it in the log as
/// the system showed it, and lost with it what was written behind it.
#[tokio::test]
async fn what_is_written_behind_a_commit_that_failed_is_not_lost_with_it() {
    let mut setup = Setup::new().await;
    let store = setup.open().unwrap();
    let stays = other(&setup.path);
    stays.execute_batch("SELECT count(*) FROM log").unwrap();
    assert!(setup.write_on(&store, 3).await.is_none());
    disk().fail_sync(&setup.path.with_extension("db-wal"));
    let failed = setup.write(&store).await;
    assert!(matches!(failed, Err(BackendError::Unavailable(_))), "{failed:?}");
    assert_eq!(store.ended(), None);
    // As if the server were killed: the log is not copied.
    drop(store);
    drop(stays);
    let store = setup.open().unwrap();
    assert!(setup.write_on(&store, 3).await.is_none());
    setup.lose_power(store).await;
}
