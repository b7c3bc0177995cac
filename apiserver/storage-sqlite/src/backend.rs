//! The backend: a writer thread, connections that read, and the feed that watches are served from.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use drydock_storage::backend::{
    Backend, BackendError, CompareAndSwap, KeyValue, RangeResult, Result, Revision, Shortage, WatchItem,
    WriteOutcome,
};
use drydock_storage::retention::Retention;
use tokio::sync::mpsc;

use crate::feed::EventFeed;
use crate::queue::WriterCommand;
use crate::readers::Readers;
use crate::writer::WriterHandle;
use crate::{error, open, read, watch};

/// Settings of the embedded backend.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Size of the write queue; more writes are refused with [`BackendError::Overloaded`].
    pub queue: usize,
    /// Connections that read at the same time.
    pub readers: usize,
    /// Largest key and value accepted, together in bytes (etcd: --max-request-bytes, 1.5 MiB).
    pub max_value: usize,
    /// Largest size of the file in bytes; `None` is limited by the disk only.
    pub max_file: Option<u64>,
    /// Bytes of objects and history at which ordinary creates and growing writes are refused (etcd:
    /// --quota-backend-bytes). Other writes may use a reserve of a sixteenth of the quota, at least 1 MiB and at most
    /// 512 MiB.
    pub quota: Option<u64>,
    /// How long history is kept while half of the quota or more is used.
    pub retention: Retention,
    /// Number of pages in the write-ahead log at which the writer runs a checkpoint.
    pub checkpoint_pages: u32,
    /// Bytes of recent events kept in memory for watches.
    pub recent_bytes: usize,
    /// Whether to open a store that is marked as being moved. Only the command that moves it sets this.
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

/// A [`Backend`] in one SQLite file. Dropping it completes the queued writes and releases the file.
pub struct SqliteBackend {
    /// Dropped before the writer, so that the writer's connection is the last one and copies the log into the file.
    readers: Arc<Readers>,
    writer: WriterHandle,
    feed: Arc<EventFeed>,
    max_value: usize,
}

impl SqliteBackend {
    /// Opens the file at `path`, or creates it. Fails without changing the file if it belongs to another application,
    /// is damaged, was created by a newer version, or is in use.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self> {
        let opened = open::open(path.as_ref(), &options)?;
        let feed = Arc::new(EventFeed::new(opened.revision, options.recent_bytes));
        let readers = Arc::new(Readers::new(opened.readers, feed.clone()));
        let writer = WriterHandle::start(opened.writer, opened.lock, opened.files, feed.clone(), &options)?;
        Ok(Self { writer, readers, feed, max_value: options.max_value })
    }
}

#[async_trait]
impl Backend for SqliteBackend {
    /// This process is the only writer (it holds the lock file), so the revision that it has published is the newest
    /// one.
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

    async fn write(&self, write: CompareAndSwap) -> Result<WriteOutcome> {
        if write.key.len() + write.value.as_ref().map_or(0, |value| value.len()) > self.max_value {
            return Err(BackendError::TooLarge);
        }
        error::log_unavailable(self.writer.ask(WriterCommand::Write(write)).await)
    }

    async fn watch(&self, keys: Range<String>, after: Revision) -> Result<mpsc::Receiver<WatchItem>> {
        Ok(watch::start(self.readers.clone(), self.feed.subscribe(), keys, after))
    }

    fn refuses_writes(&self) -> Option<String> {
        self.writer.refuses()
    }

    fn shortage(&self) -> Option<Shortage> {
        self.writer.shortage()
    }

    fn ended(&self) -> Option<String> {
        self.writer.ended()
    }

    async fn request_progress(&self) -> Result<()> {
        self.feed.request_progress();
        Ok(())
    }

    async fn compact(&self, at: Revision) -> Result<()> {
        self.writer.ask(WriterCommand::Compact(at)).await.map(|_| ())
    }
}
