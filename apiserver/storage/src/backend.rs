//! The byte-level backend interface: ordered keys, one global revision, compare-and-swap, watch from a revision.
//!
//! The semantics are those of etcd's MVCC store, because Kubernetes' resourceVersion is defined by them: every
//! committed write gets the next revision; a read can ask for the state at an earlier revision until that revision is
//! compacted; a watch delivers every event after a revision, in order, exactly once.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;

/// The history of half a minute may take 1/HISTORY of the quota.
const HISTORY: u64 = 8;

/// A revision of the store. It grows with each committed write. There is no revision 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// One key with its value as of `mod_revision`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// The key, `/`-separated, without the installation's prefix.
    pub key: String,
    /// The bytes that were written; empty if the backend found that the stored bytes are damaged (a checksum
    /// differs).
    pub value: Bytes,
    /// The revision of the write that created the key.
    pub create_revision: Revision,
    /// The revision of the last write of the key.
    pub mod_revision: Revision,
}

/// Result of [`Backend::range`].
#[derive(Clone, Debug)]
pub struct RangeResult {
    /// The revision that the whole result is consistent with.
    pub revision: Revision,
    /// The pairs in key order, at most `limit` of them.
    pub items: Vec<KeyValue>,
    /// Number of keys in the range, including those beyond `limit`.
    pub count: u64,
}

/// One compare-and-swap write of one key.
#[derive(Clone, Debug)]
pub struct CompareAndSwap {
    /// The key to write.
    pub key: String,
    /// The write happens only if the key's mod revision is this; `None` means that the key must not exist.
    pub expected: Option<Revision>,
    /// The new value; `None` deletes the key.
    pub value: Option<Bytes>,
    /// Another key that the write depends on: the write happens only if that key is unchanged.
    pub guard: Option<Guard>,
    /// How far the write may use the reserve of a full store.
    pub priority: Priority,
}

/// How far a write may use the reserve of a full store. Deletes may use more of it than any priority here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Refused at the quota; a write that makes its value smaller is refused a little later.
    #[default]
    Ordinary,
    /// May go a little beyond the quota: a write that must not fail because somebody else has filled the store. Whoever
    /// gives it this priority bounds its size.
    Needed,
    /// May go further beyond the quota: a write of a caller that is trusted with the whole store.
    System,
    /// May go further still: a write of an object that is in no namespace. So there is a part of the store that no
    /// namespace can use, and neither can those who are trusted while they write what is in one.
    Cluster,
}

/// What is left in a store that is short of space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Bytes by which history may grow in half a minute.
    pub history: u64,
    /// Whether ordinary writes that make an object larger are refused.
    pub is_full: bool,
}

impl Shortage {
    /// The shortage of a store that holds `used` of `quota` bytes; `None` while less than half is used.
    pub fn of(used: u64, quota: u64) -> Option<Self> {
        is_short(used, quota).then_some(Self { history: quota / HISTORY, is_full: false })
    }

    /// The shortage of a full store that keeps `needed` bytes for needed writes and for those that make objects smaller:
    /// history may take a quarter of them.
    pub fn full(needed: u64) -> Self {
        Self { history: needed / 4, is_full: true }
    }
}

/// Whether the store is so full that it keeps less history.
pub(crate) fn is_short(used: u64, quota: u64) -> bool {
    used >= quota / 2
}

/// What all writes of one caller have in common.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteContext<'a> {
    /// The guard that each write depends on.
    pub guard: Option<&'a Guard>,
    /// How far each write may use the reserve.
    pub priority: Priority,
}

/// A key that a write depends on but does not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The key.
    pub key: String,
    /// The mod revision that the key must have.
    pub revision: Revision,
}

/// Outcome of [`Backend::write`].
#[derive(Clone, Debug)]
pub enum WriteOutcome {
    /// The write is durable; its revision.
    Committed(Revision),
    /// The comparison failed and nothing was written: the pair that is stored now, and the store's revision.
    Conflict(Option<KeyValue>, Revision),
    /// The guard key has another mod revision; nothing was written.
    GuardFailed,
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
    /// The value before the event; `None` if there was none or if it is compacted.
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
    /// The watch has ended and delivers nothing more. A new watch may start after the last revision received, unless
    /// that revision is compacted.
    Failed(BackendError),
}

/// What a replica remembers between two calls of [`Backend::compaction_turn`]. The first call gets the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionTurn {
    /// The logical time of the compaction protocol: the number of turns of all replicas together.
    pub time: u64,
    /// The revision that was current during this turn.
    pub revision: Revision,
}

/// Errors of a backend. Retryable errors have variants of their own, because callers handle them differently.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BackendError {
    /// The requested revision is compacted.
    #[error("revision {requested:?} has been compacted; the oldest is {oldest:?}")]
    Compacted {
        /// The requested revision.
        requested: Revision,
        /// The oldest revision that can be read.
        oldest: Revision,
    },
    /// The requested revision is in the future.
    #[error("revision {requested:?} is in the future; the current one is {current:?}")]
    FutureRevision {
        /// The requested revision.
        requested: Revision,
        /// The current revision.
        current: Revision,
    },
    /// The write queue is full. Nothing was written; the caller may retry later.
    #[error("too many writes are waiting")]
    Overloaded,
    /// The value is larger than the backend accepts.
    #[error("request is too large")]
    TooLarge,
    /// There is no space for the write. Nothing was written; reads still work.
    #[error("no space left to store the write: {0}")]
    NoSpace(String),
    /// The store accepts no more writes: its objects are being moved or were moved to another store, or it cannot
    /// keep what is written to it. Nothing was written; reads still work.
    #[error("the store refuses writes: {0}")]
    Closed(String),
    /// The backend cannot be reached or did not answer in time. A write may or may not have happened.
    #[error("storage is unavailable: {0}")]
    Unavailable(String),
    /// The stored data is damaged, or was not written by this server.
    #[error("storage is damaged: {0}")]
    Corrupt(String),
}

impl BackendError {
    /// The error of a server that starts on a store whose objects were moved.
    pub fn has_moved(place: &str) -> Self {
        Self::Unavailable(format!(
            "the objects were migrated to {place}: start the servers there, or run `reclaim` to use this store as it was before"
        ))
    }

    /// The error of a server that starts on, or writes to, a store that is being moved.
    pub fn is_being_moved(place: &str) -> Self {
        Self::Unavailable(format!(
            "a migration to {place} is running or was interrupted: wait for `migrate`, run it again, or `reclaim` this store"
        ))
    }
}

/// A backend's result.
pub type Result<T, E = BackendError> = std::result::Result<T, E>;

/// The interface that SQLite and etcd implement.
///
/// Guarantees: a committed write is durable before `write` returns and before any watcher receives its event;
/// operations are strictly serializable. If a future of `write` is dropped, the write may or may not have happened.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Returns the newest committed revision, read from the database itself and not from a cache.
    async fn current_revision(&self) -> Result<Revision>;

    /// As [`Backend::current_revision`], but without a request: for a backend that always knows its current revision.
    /// `None` for any other backend.
    fn local_revision(&self) -> Option<Revision> {
        None
    }

    /// Returns one key at revision `at`, or at the latest revision, and the revision that was read.
    async fn get(&self, key: &str, at: Option<Revision>) -> Result<(Option<KeyValue>, Revision)>;

    /// Returns the keys in `keys` (half open, byte order) at revision `at`, or at the latest revision. A `limit` of 0
    /// means no limit.
    async fn range(&self, keys: Range<String>, limit: usize, at: Option<Revision>) -> Result<RangeResult>;

    /// Returns the first `limit` pairs of [`Backend::range`] without counting the rest: counting may take as long as
    /// reading all pairs.
    async fn page(&self, keys: Range<String>, limit: usize, at: Option<Revision>) -> Result<Vec<KeyValue>> {
        Ok(self.range(keys, limit, at).await?.items)
    }

    /// Compares and swaps one key.
    async fn write(&self, write: CompareAndSwap) -> Result<WriteOutcome>;

    /// Sends the events in `keys` with a revision above `after` into a bounded channel. A start below the compaction
    /// boundary delivers `Failed(Compacted)`; a start above the current revision waits for it. Dropping the receiver
    /// ends the watch. A slow receiver delays only its own watch, never a writer.
    async fn watch(&self, keys: Range<String>, after: Revision) -> Result<mpsc::Receiver<WatchItem>>;

    /// Returns why writes are refused at present, while reads still work; `None` if writes are accepted, as far as is
    /// known.
    fn refuses_writes(&self) -> Option<String> {
        None
    }

    /// Returns what is left when space is short; `None` if there is enough space.
    fn shortage(&self) -> Option<Shortage> {
        None
    }

    /// Returns why reads fail too, once they have failed for so long that clients should use another replica; `None`
    /// if reads are answered, as far as is known.
    fn refuses_reads(&self) -> Option<String> {
        None
    }

    /// Returns why the backend has stopped and what to do, if one of its tasks or threads has ended because of a fault;
    /// only a restart of the process helps then. `None` while it works.
    fn ended(&self) -> Option<String> {
        None
    }

    /// Requests a `Progress` item on every running watch of this handle. Each watch sends it as soon as it knows its
    /// progress.
    async fn request_progress(&self) -> Result<()>;

    /// Compacts: discards the history below `at`. The state at `at` stays readable.
    async fn compact(&self, at: Revision) -> Result<()>;

    /// Compacts earlier than the interval when space is short. Runs until it is dropped; a backend that compacts by
    /// itself only waits.
    async fn compact_early(&self) {
        std::future::pending().await
    }

    /// Makes one periodic compaction: discards the history below the revision of the last turn, unless another
    /// replica on the same store does. History is kept for at least the interval between two turns.
    async fn compaction_turn(&self, last: CompactionTurn) -> Result<CompactionTurn> {
        let revision = self.current_revision().await?;
        if last.revision > Revision(0) {
            self.compact(last.revision).await?;
        }
        Ok(CompactionTurn { time: last.time + 1, revision })
    }
}

/// Returns the key range of all keys that start with `prefix`.
pub fn prefix_range(prefix: &str) -> Range<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // The next character. UTF-8 sorts as its characters do, and a range of characters skips the surrogates.
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return prefix.to_owned()..end;
        }
    }
    prefix.to_owned()..char::MAX.to_string()
}
