//! The byte-level seam: ordered keys, one global revision, compare-and-swap, watch from a revision.
//!
//! Semantics are those of etcd's MVCC store, because that is what Kubernetes' resourceVersion means:
//! every committed write gets the next revision; a read can ask for the state at an earlier revision until
//! that revision is compacted; a watch delivers every event after a revision, in order, exactly once.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;

/// A store revision: it grows with each committed write. There is no revision 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// One key with its value as of `mod_revision`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// The key, `/`-separated, without the installation's prefix.
    pub key: String,
    /// The bytes that were written; none if what the backend has is something else, which it noticed.
    pub value: Bytes,
    /// The revision of the write that made the key exist.
    pub create_revision: Revision,
    /// The revision of the last write of the key.
    pub mod_revision: Revision,
}

/// Result of [`Backend::range`].
#[derive(Clone, Debug)]
pub struct RangeResult {
    /// The revision that the whole result is consistent with.
    pub revision: Revision,
    /// The pairs in key order, at most `limit`.
    pub items: Vec<KeyValue>,
    /// Number of keys in the range from the start on, whatever the limit.
    pub count: u64,
}

/// One compare-and-swap write of one key.
#[derive(Clone, Debug)]
pub struct Write {
    /// The key to write.
    pub key: String,
    /// The write happens only if the key's mod revision is this; `None` means that the key must not exist.
    pub expected: Option<Revision>,
    /// The new value; `None` deletes the key.
    pub value: Option<Bytes>,
    /// Another key that must stand where the writer believes it does.
    pub guard: Option<Guard>,
    /// How far it may go into the reserve of a store that is full.
    pub priority: Priority,
}

/// How far a write may go into the reserve of a store that is full. A delete goes further than any of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// It is refused at the quota, or a little later if it makes its value smaller.
    #[default]
    Ordinary,
    /// A little further: whoever fills the store should not stop it.
    Needed,
    /// Further than whoever is not trusted with the whole store.
    System,
}

/// What every write of a caller has in common.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteContext<'a> {
    /// What each of them depends on.
    pub guard: Option<&'a Guard>,
    /// How far each may go into the reserve.
    pub priority: Priority,
}

/// A key on which a write depends without writing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The key.
    pub key: String,
    /// Its mod revision.
    pub revision: Revision,
}

/// Outcome of [`Backend::write`].
#[derive(Clone, Debug)]
pub enum WriteOutcome {
    /// Durable at this revision.
    Committed(Revision),
    /// The comparison failed: nothing was written; here is what stands there now (and the store's revision).
    Conflict(Option<KeyValue>, Revision),
    /// The guard has moved: nothing was written.
    Guarded,
}

/// One change of one key.
#[derive(Clone, Debug)]
pub struct BackendEvent {
    /// The revision of the write.
    pub revision: Revision,
    /// The key that changed.
    pub key: String,
    /// The new value; `None` for a deletion.
    pub value: Option<Bytes>,
    /// The value before, when there was one and it is not compacted.
    pub previous: Option<KeyValue>,
    /// The revision at which the key was created (equal to `revision` for a create).
    pub create_revision: Revision,
}

/// What a watch delivers. All events of one revision come in one batch; batches come in revision order.
#[derive(Clone, Debug)]
pub enum WatchItem {
    /// Changes, each at a revision above the start.
    Events(Vec<BackendEvent>),
    /// Every event up to this revision has been delivered.
    Progress(Revision),
    /// The watch ended and delivers nothing more; a new one may start after the last revision seen,
    /// or nowhere if that is compacted.
    Failed(BackendError),
}

/// What a replica remembers from one [`Backend::compaction_turn`] to the next; the default before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// How many turns all replicas together had.
    pub time: u64,
    /// The revision that was current.
    pub revision: Revision,
}

/// Errors of a backend. The retryable ones are told apart because callers act differently on them.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BackendError {
    /// The revision asked for is no longer held.
    #[error("revision {requested:?} has been compacted; the oldest is {oldest:?}")]
    Compacted {
        /// The revision asked for.
        requested: Revision,
        /// The oldest that can be read.
        oldest: Revision,
    },
    /// The revision asked for lies in the future.
    #[error("revision {requested:?} is in the future; the current one is {current:?}")]
    FutureRevision {
        /// The revision asked for.
        requested: Revision,
        /// The newest there is.
        current: Revision,
    },
    /// The queue of writes is full: try again later. Nothing was written.
    #[error("too many writes are waiting")]
    Overloaded,
    /// The value is larger than the backend takes.
    #[error("request is too large")]
    TooLarge,
    /// No space is left to write. Nothing was written; reads go on.
    #[error("no space left to store the write: {0}")]
    NoSpace(String),
    /// Objects are being moved elsewhere, or were, or the store cannot keep what is written to it: no write is taken any
    /// more. Nothing was written; reads go on.
    #[error("this store takes no writes: {0}")]
    Closed(String),
    /// The backend cannot be reached or did not answer in time. A write may or may not have happened.
    #[error("storage is unavailable: {0}")]
    Unavailable(String),
    /// The stored data is damaged or foreign.
    #[error("storage is damaged: {0}")]
    Corrupt(String),
}

/// A backend's result.
pub type Result<T, E = BackendError> = std::result::Result<T, E>;

/// The seam that SQLite and etcd implement.
///
/// Guarantees: a committed write is durable before `write` returns and before any watcher sees it; operations
/// are strictly serializable; dropping a future of `write` does not tell whether it was written.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// The newest committed revision, read from the authority (not from a cache of it).
    async fn current_revision(&self) -> Result<Revision>;

    /// The same, of a backend that is the authority itself and knows it without asking anybody.
    fn local_revision(&self) -> Option<Revision> {
        None
    }

    /// One key at a revision, or at the latest.
    async fn get(&self, key: &str, at: Option<Revision>) -> Result<(Option<KeyValue>, Revision)>;

    /// The keys in `keys` (half open, byte order) at a revision or at the latest; `limit` 0 is no limit.
    async fn range(&self, keys: Range<String>, limit: usize, at: Option<Revision>) -> Result<RangeResult>;

    /// The first `limit` pairs of [`Backend::range`], for whoever need not know how many follow: to count them may
    /// take as long as to read them all.
    async fn page(&self, keys: Range<String>, limit: usize, at: Option<Revision>) -> Result<Vec<KeyValue>> {
        Ok(self.range(keys, limit, at).await?.items)
    }

    /// Compare-and-swap of one key.
    async fn write(&self, write: Write) -> Result<WriteOutcome>;

    /// Events in `keys` with a revision above `after`, into a bounded channel. A start below the compaction
    /// boundary delivers `Failed(Compacted)`; a start above the current revision waits for it.
    /// Dropping the receiver ends the watch. A slow receiver holds up this watch only, never a writer.
    async fn watch(&self, keys: Range<String>, after: Revision) -> Result<mpsc::Receiver<WatchItem>>;

    /// Why writes are refused at present, while reads go on; `None` where they are taken, as far as is known.
    fn refuses_writes(&self) -> Option<String> {
        None
    }

    /// Bytes that history may take within half a minute, where space runs short; `None` while there is enough.
    fn history_room(&self) -> Option<u64> {
        None
    }

    /// Why reads are refused too, and have been for so long that they should be sent elsewhere; `None` where they are
    /// answered, as far as is known.
    fn refuses_reads(&self) -> Option<String> {
        None
    }

    /// Why it works no more, and what to do: a part of it that ended by a fault comes back by nothing but a restart.
    fn ended(&self) -> Option<String> {
        None
    }

    /// Asks for a `Progress` on every running watch of this handle, as soon as it can be told.
    async fn request_progress(&self) -> Result<()>;

    /// Forgets revisions below `at`; the state at `at` stays readable.
    async fn compact(&self, at: Revision) -> Result<()>;

    /// Gives up history before its time where space runs short, for ever; a backend that does it by itself waits.
    async fn relieve(&self) {
        std::future::pending().await
    }

    /// One turn of keeping history short: forgets what is below the last turn's revision, unless another replica
    /// on the same store does so. Between two turns lies the interval for which history is kept.
    async fn compaction_turn(&self, last: Turn) -> Result<Turn> {
        let revision = self.current_revision().await?;
        if last.revision > Revision(0) {
            self.compact(last.revision).await?;
        }
        Ok(Turn { time: last.time + 1, revision })
    }
}

/// The key range of everything that starts with `prefix`.
pub fn prefix_range(prefix: &str) -> Range<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // The next character; UTF-8 sorts as its characters do, and a range of them skips the surrogates.
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return prefix.to_owned()..end;
        }
    }
    prefix.to_owned()..char::MAX.to_string()
}
