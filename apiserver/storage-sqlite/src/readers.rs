//! The pool of connections that read on blocking threads. A read also reports the revision of its snapshot to the
//! feed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use drydock_storage::backend::{BackendError, KeyValue, RangeResult, Result, Revision};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::error::log_unavailable;
use crate::feed::{EventBatch, EventFeed};
use crate::read::ReadableRevisions;

/// The pool of reading connections.
pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
    feed: Arc<EventFeed>,
}

/// A result of a read, and the revision of its snapshot.
pub(super) trait ReadResult {
    /// Returns the newest revision in the snapshot, if the result contains it.
    fn snapshot(&self) -> Option<Revision>;
}

impl Readers {
    pub fn new(connections: Vec<Connection>, feed: Arc<EventFeed>) -> Self {
        let permits = Arc::new(Semaphore::new(connections.len()));
        Self { idle: Mutex::new(connections), permits, feed }
    }

    /// Runs `work` with a connection, waiting for a free one.
    pub async fn run<T: ReadResult + Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = self.permits.clone().acquire_owned().await.map_err(stopped)?;
        let readers = self.clone();
        let task = move || {
            let _permit = permit;
            let mut connection = readers.idle.lock().pop().ok_or_else(|| stopped("no reader is left"))?;
            // The connection is returned after a panic too: the transaction on it has ended by then.
            let result = catch_unwind(AssertUnwindSafe(|| work(&mut connection)));
            readers.idle.lock().push(connection);
            let result = result.unwrap_or_else(|panic| resume_unwind(panic));
            if let Some(revision) = result.as_ref().ok().and_then(ReadResult::snapshot) {
                readers.feed.saw(revision);
            }
            result
        };
        log_unavailable(tokio::task::spawn_blocking(task).await.map_err(stopped).flatten())
    }
}

fn stopped(error: impl std::fmt::Display) -> BackendError {
    BackendError::Unavailable(format!("reading stopped: {error}"))
}

impl ReadResult for (Option<KeyValue>, Revision) {
    fn snapshot(&self) -> Option<Revision> {
        Some(self.1)
    }
}

impl ReadResult for RangeResult {
    fn snapshot(&self) -> Option<Revision> {
        Some(self.revision)
    }
}

impl ReadResult for Vec<KeyValue> {
    fn snapshot(&self) -> Option<Revision> {
        None
    }
}

impl ReadResult for EventBatch {
    fn snapshot(&self) -> Option<Revision> {
        self.events.last().map(|event| event.revision)
    }
}

impl ReadResult for ReadableRevisions {
    fn snapshot(&self) -> Option<Revision> {
        Some(self.newest)
    }
}

impl ReadResult for () {
    fn snapshot(&self) -> Option<Revision> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqliteOptions, open, read};

    /// Regression: after as many panics as there were connections nothing could be read any more, and
    /// /livez did not report it.
    #[tokio::test]
    async fn reads_go_on_after_work_that_panics() {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteOptions { readers: 1, ..SqliteOptions::default() };
        let opened = open::open(&directory.path().join("store.db"), &options).unwrap();
        let feed = Arc::new(EventFeed::new(opened.revision, 0));
        let readers = Arc::new(Readers::new(opened.readers, feed));
        for _ in 0..3 {
            let panics = |connection: &mut Connection| -> Result<()> {
                let _snapshot = connection.transaction().unwrap();
                panic!("in the middle of a read");
            };
            let error = readers.run(panics).await.unwrap_err().to_string();
            assert!(error.contains("in the middle of a read"), "{error}");
        }
        let bounds = readers.run(read::oldest).await.unwrap();
        assert_eq!((bounds.newest, readers.idle.lock().len()), (Revision(1), 1));
    }
}
