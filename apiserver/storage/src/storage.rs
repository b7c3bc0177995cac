//! The storage interface that the verbs of a server use: objects, revisions, preconditions, watches.
//!
//! The typed store implements it over a [`crate::backend::Backend`], and the watch cache implements it over the
//! store, so a server can use either (Kubernetes: storage/interfaces.go and cacher/delegator.go).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use drydock_machinery::field_mask::FieldMask;
use drydock_machinery::{ApiError, Object};

use crate::backend::{BackendError, Revision, Shortage, WriteContext};

pub use crate::items::Items;
pub use crate::pinned::Pinned;
pub use crate::stored::Stored;

/// How fresh a read must be (Kubernetes: resourceVersion and resourceVersionMatch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// At least as new as every write acknowledged before the read began.
    Latest,
    /// Any state at least this new; 0 accepts any state.
    NotOlderThan(Revision),
    /// The state at exactly this revision.
    Exact(Revision),
}

/// A label and field selection of objects.
#[derive(Clone)]
pub struct Selection {
    /// The fields that the selection reads. The other fields of an object that is kept as bytes are not decoded.
    pub reads: Arc<FieldMask>,
    /// A field value that every selected object has, if the selection requires one. Watchers are indexed by it.
    pub requires: Option<RequiredField>,
    /// The approximate size of the selection in memory, in bytes.
    pub bytes: usize,
    /// Returns whether the selection includes an object. The object has at least the fields in `reads`.
    pub accepts: Arc<dyn Fn(&Object) -> bool + Send + Sync>,
}

/// A field and its value; an absent field has the value "".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredField {
    /// The field names from the root of the object to the field.
    pub path: Arc<[String]>,
    /// The text that the field holds.
    pub value: String,
}

/// The objects that a list or a watch selects.
#[derive(Clone)]
pub struct Scope {
    /// `namespace/` for one namespace, empty for all, or a whole key for one object.
    pub prefix: String,
    /// Whether `prefix` is the whole key of one object.
    pub single: bool,
    /// Label and field selection; `None` selects all.
    pub matches: Option<Selection>,
}

/// A page of a list.
pub struct Page {
    /// Objects in key order.
    pub items: Items,
    /// The revision at which the whole list is read.
    pub revision: Revision,
    /// The key at which the next page starts; `None` for the last page.
    pub next: Option<String>,
    /// The number of objects after this page; `None` for the last page, or if a selection makes it unknown.
    pub remaining: Option<u64>,
}

/// Which page of a list to read.
#[derive(Clone, Debug)]
pub struct PageOptions {
    /// Freshness.
    pub at: ReadAt,
    /// Maximum number of items in the page; 0 means no limit.
    pub limit: usize,
    /// Key to start at (inclusive), from a continue token.
    pub start: Option<String>,
}

/// Where a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFrom {
    /// Events above this revision.
    After(Revision),
    /// The existing objects as ADDED (state at least this new), then a bookmark that marks their end, then events.
    InitialEvents(ReadAt),
}

/// What a watcher receives.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// The object entered the selection.
    Added(Arc<Stored>),
    /// The object changed within the selection.
    Modified(Arc<Stored>),
    /// The object was deleted or left the selection: its last state in the selection, with the event's revision.
    Deleted(Arc<Stored>),
    /// Every event up to this revision was sent; `initial` marks the end of the initial events.
    Bookmark {
        /// The revision.
        revision: Revision,
        /// Whether it marks the end of the initial events of a WatchList.
        initial: bool,
    },
    /// The watch has ended.
    Failed(StorageError),
}

/// A watcher: one cursor into the changes. It is polled, so that an event needs no future and no allocation for each
/// of a thousand watchers.
pub trait Watcher: Send {
    /// Appends the next events, at least one. If there are none yet, returns `Pending` and wakes the task when there
    /// may be some. Returns `false` after `Failed`.
    fn poll_next(&mut self, context: &mut Context<'_>, events: &mut VecDeque<WatchEvent>) -> Poll<bool>;
    /// Returns a revision up to which this watcher has sent every event, for a periodic bookmark; 0 before the
    /// initial events are complete.
    fn progress(&self) -> Revision;
    /// Returns the memory that the watcher keeps: a past state that its initial events are of, and events that it has
    /// read and not sent yet.
    fn pinned(&self) -> Option<Arc<dyn Pinned>> {
        None
    }
}

impl dyn Watcher + '_ {
    /// Returns the next events, at least one, and waits for them. Cancel safe. `None` after `Failed`.
    pub async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        let mut events = VecDeque::new();
        let more = poll_fn(|context| self.poll_next(context, &mut events)).await;
        more.then(|| events.into())
    }
}

/// The state that replaces the present one.
#[derive(Clone, Debug)]
pub enum NextState {
    /// Store this object. If it encodes to the stored bytes, nothing is written.
    Write(Object),
    /// Delete the key. The writer gets this object as the last state.
    Delete(Object),
}

/// The outcome of [`Storage::replace`].
#[derive(Clone, Debug)]
pub enum Replaced {
    /// The state that is stored now; after a deletion the last state, at the revision of the deletion. It has the
    /// revision of the present state if nothing had to be written.
    Updated(Arc<Stored>),
    /// Another write came first, and nothing was written: the newest state, or `None` if the object is gone.
    Conflict(Option<Arc<Stored>>),
}

/// Errors of storage; `server` translates them into Status at its edge.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// No such object.
    #[error("not found")]
    NotFound,
    /// The key is taken.
    #[error("already exists")]
    AlreadyExists,
    /// The requested revision is too old: it is compacted, or no longer in the cache.
    #[error("too old resource version: {requested} ({oldest})")]
    Expired {
        /// The requested revision.
        requested: u64,
        /// The oldest revision that is kept.
        oldest: u64,
    },
    /// The requested revision is above the current one. The cache waits for it for 3 s before it fails.
    #[error("Too large resource version: {requested}, current: {current}")]
    TooLarge {
        /// The requested revision.
        requested: u64,
        /// The current revision.
        current: u64,
    },
    /// The object is larger than the backend accepts. It is returned in the error.
    #[error("the object is too large")]
    Oversized(Box<Object>),
    /// The guard of the write has changed: the writer's fencing term is over.
    #[error("the fencing token is outdated")]
    GuardFailed,
    /// The [`MemoryBudget`] of a list was exhausted, or an object cannot be converted to another version: the error for
    /// the client.
    #[error("{0}")]
    Refused(ApiError),
    /// The cache is not filled yet.
    #[error("storage is (re)initializing")]
    NotReady,
    /// An error of the backend.
    #[error(transparent)]
    Backend(BackendError),
}

impl From<BackendError> for StorageError {
    /// Maps the two errors about the requested revision to variants of their own; every other error stays a backend
    /// error.
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Compacted { requested, oldest } => {
                Self::Expired { requested: requested.0, oldest: oldest.0 }
            }
            BackendError::FutureRevision { requested, current } => {
                Self::TooLarge { requested: requested.0, current: current.0 }
            }
            other => Self::Backend(other),
        }
    }
}

/// Objects of one resource.
#[async_trait]
pub trait Storage: Send + Sync + 'static {
    /// Stores a new object. Fails if the key exists or the guard of `context` has changed.
    async fn create(
        &self,
        key: &str,
        object: Object,
        context: WriteContext<'_>,
    ) -> Result<Arc<Stored>, StorageError>;
    /// Reads one object.
    async fn get(&self, key: &str, at: ReadAt) -> Result<Arc<Stored>, StorageError>;
    /// Reads a page of objects. Objects that no cache holds are read from the backend, after `memory` has granted
    /// memory for them; they stay in memory as long as the page does.
    async fn list(
        &self,
        scope: &Scope,
        options: &PageOptions,
        memory: &mut dyn MemoryBudget,
    ) -> Result<Page, StorageError>;
    /// Replaces the state of `key` by `next` if it is still `present`, in one transaction of the backend. Whether it
    /// is, is checked in the backend even if nothing has to be written, so `present` may come from a cache
    /// (Kubernetes: one turn of the loop in storage/etcd3/store.go, GuaranteedUpdate). Fails if the guard of `context`
    /// has changed, unless nothing has to be written.
    async fn replace(
        &self,
        key: &str,
        present: &Arc<Stored>,
        next: NextState,
        context: WriteContext<'_>,
    ) -> Result<Replaced, StorageError>;
    /// Returns `object` as a write would store it and return it. It writes nothing; a dry run answers with it.
    ///
    /// # Errors
    /// What a write of the object is refused with because it cannot be stored.
    fn would_store(&self, object: Object) -> Result<Object, ApiError> {
        Ok(object)
    }
    /// Opens a watch.
    async fn watch(&self, scope: Scope, from: WatchFrom) -> Result<Box<dyn Watcher>, StorageError>;
    /// Returns the newest revision, read from the database itself.
    async fn current_revision(&self) -> Result<Revision, StorageError>;
    /// Returns about how many bytes of objects a list of `scope` reads. It stops counting at `enough`, and returns
    /// `enough` if the number is not known at once. It reads nothing from the backend.
    fn listed_bytes(&self, scope: &Scope, options: &PageOptions, enough: usize) -> usize;
    /// See [`crate::backend::Backend::shortage`].
    fn shortage(&self) -> Option<Shortage>;
    /// Whether reads can be served.
    fn ready(&self) -> bool;
}

/// Grants memory to a read before it reads objects from the backend that no cache holds, and which are therefore not
/// shared.
#[async_trait]
pub trait MemoryBudget: Send + Sync {
    /// Reserves `bytes` more, and waits for them if necessary.
    ///
    /// # Errors
    /// If there is not enough memory: the error for the client.
    async fn take(&mut self, bytes: usize) -> Result<(), ApiError>;
}

/// Grants any amount: for reads that a program makes for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnlimitedMemory;

#[async_trait]
impl MemoryBudget for UnlimitedMemory {
    async fn take(&mut self, _: usize) -> Result<(), ApiError> {
        Ok(())
    }
}
