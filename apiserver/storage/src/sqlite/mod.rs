//! The embedded backend: one SQLite file, for an API server on one machine.
//!
//! ```text
//!   write ──> bounded queue ──> writer thread ── COMMIT (fsync) ──> Feed ──> answers
//!                                    │                               │ ring of recent events, head revision
//!   get, range ──> Readers ──────────┤ log table                     ▼
//!                                    └──────── catch-up ───────> one pump a watch ──> channel
//! ```
//!
//! One thread writes: all writes that wait share one transaction and so one fsync, each with a revision of its
//! own. Nothing is answered or shown to a watch before COMMIT has returned. Watches pull: a slow one reads the
//! log later, and never holds up the writer.

mod apply;
mod check;
mod checkpoints;
mod compaction;
mod connect;
mod copy;
mod error;
mod feed;
mod file;
mod full;
mod history;
mod import;
mod lock;
mod moved;
mod open;
mod open_files;
mod part;
mod pressure;
mod queue;
mod quota;
mod read;
mod readers;
mod row;
mod schema;
mod stamp;
mod store_fault;
mod watch;
mod writer;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;

use crate::backend::{Backend, BackendError, KeyValue, RangeResult, Result, Revision, Write, WriteOutcome};
use crate::retention::Retention;
pub use check::{Contents, check};
pub use copy::{backup, restore};
use feed::Feed;
pub(crate) use file::sync_directory;
pub use import::{Import, imported};
pub use moved::reclaim;
pub(crate) use moved::{attempt, begin_move, end_move, undo_move};
use queue::Work;
use readers::Readers;
use writer::WriterHandle;

/// Settings of the embedded backend.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Writes that may wait for the writer; more are refused with [`BackendError::Overloaded`].
    pub queue: usize,
    /// Connections that read at the same time.
    pub readers: usize,
    /// Largest value taken, in bytes (etcd: --max-request-bytes, 1.5 MiB).
    pub max_value: usize,
    /// Most bytes the file may grow to; `None` is the disk's size.
    pub max_file: Option<u64>,
    /// Bytes of objects and history beyond which ordinary creates and growing writes are refused
    /// (etcd: --quota-backend-bytes). Other writes go on within a reserve of a sixteenth, from 1 MiB to 512 MiB.
    pub quota: Option<u64>,
    /// How long history is kept when the quota is used by half and more.
    pub retention: Retention,
    /// Pages in the write-ahead log at which the writer copies them into the file.
    pub checkpoint_pages: u32,
    /// Bytes of recent events that are held in memory for watches.
    pub recent_bytes: usize,
    /// Whether a store is opened, too, whose objects are being moved elsewhere: by whoever moves them.
    pub leaving: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            queue: 4096,
            readers: 4,
            max_value: 3 << 19,
            max_file: None,
            quota: None,
            retention: Retention::default(),
            checkpoint_pages: 4000,
            recent_bytes: 8 << 20,
            leaving: false,
        }
    }
}

/// A [`Backend`] in one SQLite file. Dropping it finishes the queued writes and releases the file.
pub struct SqliteBackend {
    /// Closed before the writer, which copies the log into the file when it is the last to close.
    readers: Arc<Readers>,
    writer: WriterHandle,
    feed: Arc<Feed>,
    max_value: usize,
}

impl SqliteBackend {
    /// Opens the file at `path`, or makes it if there is none. A file that is foreign, damaged, made by a newer
    /// version, or in use is refused and stays as it is.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self> {
        let opened = open::open(path.as_ref(), &options)?;
        let feed = Arc::new(Feed::new(opened.revision, options.recent_bytes));
        let readers = Arc::new(Readers::new(opened.readers, feed.clone()));
        let writer = WriterHandle::start(opened.writer, opened.lock, opened.files, feed.clone(), &options)?;
        Ok(Self { writer, readers, feed, max_value: options.max_value })
    }
}

#[async_trait]
impl Backend for SqliteBackend {
    /// This process is the only writer (see the lock file), so what it has published is the authority.
    async fn current_revision(&self) -> Result<Revision> {
        Ok(self.feed.committed())
    }

    fn local_revision(&self) -> Option<Revision> {
        Some(self.feed.committed())
    }

    async fn get(&self, key: &str, at: Option<Revision>) -> Result<(Option<KeyValue>, Revision)> {
        let key = key.to_owned();
        self.readers.run(move |connection| read::get(connection, &key, at)).await
    }

    async fn range(&self, keys: Range<String>, limit: usize, at: Option<Revision>) -> Result<RangeResult> {
        self.readers.run(move |connection| read::range(connection, &keys, limit, at)).await
    }

    async fn page(&self, keys: Range<String>, limit: usize, at: Option<Revision>) -> Result<Vec<KeyValue>> {
        self.readers.run(move |connection| read::page(connection, &keys, limit, at)).await
    }

    async fn write(&self, write: Write) -> Result<WriteOutcome> {
        if write.key.len() + write.value.as_ref().map_or(0, |value| value.len()) > self.max_value {
            return Err(BackendError::TooLarge);
        }
        error::told(self.writer.ask(Work::Write(write)).await)
    }

    async fn watch(
        &self,
        keys: Range<String>,
        after: Revision,
    ) -> Result<mpsc::Receiver<crate::backend::WatchItem>> {
        Ok(watch::start(self.readers.clone(), self.feed.subscribe(), keys, after))
    }

    fn refuses_writes(&self) -> Option<String> {
        self.writer.refuses()
    }

    fn history_room(&self) -> Option<u64> {
        self.writer.history_room()
    }

    fn ended(&self) -> Option<String> {
        self.writer.ended()
    }

    async fn request_progress(&self) -> Result<()> {
        self.feed.request_progress();
        Ok(())
    }

    async fn compact(&self, at: Revision) -> Result<()> {
        self.writer.ask(Work::Compact(at)).await.map(|_| ())
    }
}
