//! Tracks whether the disk is full, as /readyz reports it.
//!
//! The disk counts as full from a transaction that found no space until a transaction of at least its size succeeds,
//! or could: a smaller one, or one that writes nothing, proves nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use drydock_storage::backend::{BackendError, Result};
use parking_lot::Mutex;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::translate;
use crate::schema;

/// How often to test whether there is space again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// What the writer knows of the disk; the backend has a clone.
#[derive(Clone, Default)]
pub(super) struct DiskFull(Arc<Mutex<Option<FailedTransaction>>>);

/// The transaction that found no space.
struct FailedTransaction {
    why: String,
    /// The bytes that it wrote; at least 1, so that a transaction that writes nothing does not count as large enough.
    bytes: usize,
    /// When to test whether there is space for as much.
    next: Instant,
}

impl DiskFull {
    /// Returns why writes are refused; `None` if they are not.
    pub fn why(&self) -> Option<String> {
        self.0.lock().as_ref().map(|found| found.why.clone())
    }

    /// Whether the disk is known to be full.
    pub fn is_known(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Records the outcome of a transaction of `bytes`. An error of another kind proves nothing about space.
    pub fn note<T>(&self, bytes: usize, made: &Result<T>, now: Instant) {
        let mut full = self.0.lock();
        match (made, full.as_ref().map(|found| found.bytes)) {
            (Err(BackendError::NoSpace(why)), known) => {
                if known.is_none() {
                    tracing::error!(why, "no space left: refusing writes, serving reads");
                }
                *full =
                    Some(FailedTransaction { why: why.clone(), bytes: bytes.max(1), next: now + TRY_AGAIN });
            }
            (Ok(_), Some(needed)) if bytes >= needed => {
                tracing::info!("disk space is available again: accepting writes");
                *full = None;
            }
            _ => {}
        }
    }

    /// Returns how long until the next test; `None` while there is space.
    pub fn patience(&self, now: Instant) -> Option<Duration> {
        self.0.lock().as_ref().map(|found| found.next.saturating_duration_since(now))
    }

    /// Tests whether there is space again, if the test is due.
    pub fn retest(&self, connection: &mut Connection, now: Instant) {
        let due = |found: &mut FailedTransaction| {
            let due = found.next <= now;
            found.next = if due { now + TRY_AGAIN } else { found.next };
            due.then_some(found.bytes)
        };
        let Some(bytes) = self.0.lock().as_mut().and_then(due) else { return };
        let tried = probe(connection, bytes);
        self.note(bytes, &tried, Instant::now());
    }
}

/// Writes `bytes` into the write-ahead log, as a transaction does before its COMMIT, and rolls back: the file does
/// not change. The bytes are random, so that the file system cannot compress them.
fn probe(connection: &mut Connection, bytes: usize) -> Result<()> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(translate)?;
    let filled = transaction.execute(schema::FILL, [bytes]).map_err(translate);
    let written = filled.and_then(|_| transaction.cache_flush().map_err(translate));
    // SQLite may have rolled back already.
    transaction.finish().map_err(translate)?;
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::LogRow;

    const KIB: usize = 1 << 10;

    fn store(pages: u32) -> (tempfile::TempDir, Connection) {
        let directory = tempfile::tempdir().unwrap();
        let connection = open(&directory);
        let options = format!("PRAGMA journal_mode = WAL; PRAGMA max_page_count = {pages};");
        connection.execute_batch(&options).unwrap();
        connection.execute_batch(schema::CREATE).unwrap();
        (directory, connection)
    }

    fn open(directory: &tempfile::TempDir) -> Connection {
        Connection::open(directory.path().join("store.db")).unwrap()
    }

    fn rows(connection: &Connection) -> u64 {
        connection.query_row("SELECT count(*) FROM log", [], |row| row.get(0)).unwrap()
    }

    fn log_size(directory: &tempfile::TempDir) -> u64 {
        std::fs::metadata(directory.path().join("store.db-wal")).unwrap().len()
    }

    fn no_space() -> Result<()> {
        Err(BackendError::NoSpace("full".to_owned()))
    }

    #[test]
    fn it_is_full_until_as_much_was_written_as_found_no_space() {
        let (full, now) = (DiskFull::default(), Instant::now());
        full.note(32 * KIB, &no_space(), now);
        for smaller in [0, 1, 31 * KIB] {
            full.note(smaller, &Ok(()), now);
            assert_eq!(full.why().as_deref(), Some("full"), "{smaller}");
        }
        full.note(64 * KIB, &Err::<(), _>(BackendError::Overloaded), now);
        assert!(full.why().is_some());
        full.note(32 * KIB, &Ok(()), now);
        assert_eq!(full.why(), None);
    }

    #[test]
    fn it_is_looked_at_by_the_clock() {
        let (full, now) = (DiskFull::default(), Instant::now());
        let (_directory, mut connection) = store(1000);
        assert_eq!(full.patience(now), None);
        full.note(KIB, &no_space(), now);
        assert_eq!(full.patience(now), Some(TRY_AGAIN));
        full.retest(&mut connection, now);
        assert!(full.why().is_some(), "it is not time yet");
        full.retest(&mut connection, now + TRY_AGAIN);
        assert_eq!((full.why(), full.patience(now)), (None, None));
    }

    #[test]
    fn space_for_less_than_what_failed_is_not_enough() {
        let (_directory, mut connection) = store(40);
        let full = DiskFull::default();
        let now = Instant::now();
        full.note(256 * KIB, &no_space(), now);
        full.retest(&mut connection, now + TRY_AGAIN);
        assert!(full.why().is_some(), "160 KiB are not 256");
        assert!(matches!(probe(&mut connection, 256 * KIB), Err(BackendError::NoSpace(_))));
        assert!(probe(&mut connection, 32 * KIB).is_ok(), "what failed was taken back");
        connection.execute_batch("PRAGMA max_page_count = 400").unwrap();
        full.retest(&mut connection, Instant::now() + 2 * TRY_AGAIN);
        assert_eq!(full.why(), None);
    }

    #[test]
    fn a_look_writes_to_the_log_and_leaves_the_store_as_it_is() {
        let (directory, mut connection) = store(1000);
        let before = log_size(&directory);
        assert!(probe(&mut connection, 512 * KIB).is_ok());
        assert!(log_size(&directory) >= before + 512 * KIB as u64);
        assert_eq!(rows(&connection), 0);
        let row = LogRow { revision: 2, key: "/a", create_revision: 2, prev_revision: 0, value: Some(b"x") };
        row.insert(&connection).unwrap();
        drop(connection);
        assert_eq!(rows(&open(&directory)), 1);
    }
}
