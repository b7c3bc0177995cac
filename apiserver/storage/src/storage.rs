//! What the verbs of a server ask of storage: objects, revisions, preconditions, watches.
//!
//! The store implements it over a [`crate::backend::Backend`]; the watch cache implements it over the store, so
//! that either can stand behind a server (Kubernetes: storage/interfaces.go and cacher/delegator.go).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use drydock_machinery::excerpt::Excerpt;
use drydock_machinery::{ApiError, Object};

use crate::backend::{BackendError, Revision, WriteContext};

pub use crate::items::Items;
pub use crate::pinned::Pinned;
pub use crate::room::Room;
pub use crate::stored::Stored;

/// How fresh a read must be (Kubernetes: resourceVersion and resourceVersionMatch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// At least as new as every write acknowledged before the read began.
    Latest,
    /// Any state at least this new; 0 is any state at all.
    NotOlderThan(Revision),
    /// Exactly this state.
    Exact(Revision),
}

/// Label and field selection of objects.
#[derive(Clone)]
pub struct Selection {
    /// What it looks at: of an object that is kept as bytes, the rest is not decoded.
    pub looks_at: Arc<Excerpt>,
    /// What every object that it selects has, if there is such a thing: watchers are woken by it.
    pub requires: Option<Term>,
    /// About how many bytes it takes in memory.
    pub bytes: usize,
    /// Whether it selects an object that has these fields at least.
    pub accepts: Arc<dyn Fn(&Object) -> bool + Send + Sync>,
}

/// A field with its value; an absent one is the empty string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The names that lead to the field.
    pub path: Arc<[String]>,
    /// Its text.
    pub value: String,
}

/// Which objects a list or a watch is about.
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
    /// The revision of the whole list.
    pub revision: Revision,
    /// Where the next page starts, when there is more.
    pub next: Option<String>,
    /// How many objects follow this page; `None` where a selection makes it unknown.
    pub remaining: Option<u64>,
}

/// Options of a list.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// Freshness.
    pub at: ReadAt,
    /// Most items in the page; 0 is no limit.
    pub limit: usize,
    /// Key to start at (inclusive), from a continue token.
    pub start: Option<String>,
}

/// Where a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFrom {
    /// Events above this revision.
    After(Revision),
    /// The present objects as ADDED (state at least this new), then a bookmark that says so if asked for, then events.
    InitialEvents(ReadAt),
}

/// What a watcher receives.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// The object entered the selection.
    Added(Arc<Stored>),
    /// The object changed within the selection.
    Modified(Arc<Stored>),
    /// The object was deleted or left the selection: its last state within, carrying the event's revision.
    Deleted(Arc<Stored>),
    /// Every event up to here was sent; `initial` ends the initial events.
    Bookmark {
        /// The revision.
        revision: Revision,
        /// Whether it ends the initial events of a WatchList.
        initial: bool,
    },
    /// The watch is over.
    Failed(StorageError),
}

/// One watcher's cursor. It is polled, so that an event costs each of a thousand watchers no future and no allocation.
pub trait Watcher: Send {
    /// Adds the next events, at least one; if there are none yet, the task is woken when there may be. `false` after
    /// `Failed`.
    fn poll_next(&mut self, context: &mut Context<'_>, events: &mut VecDeque<WatchEvent>) -> Poll<bool>;
    /// A revision up to which this watcher has been told everything, for a periodic bookmark; 0 while the initial
    /// events are on their way, when there is no such revision.
    fn progress(&self) -> Revision;
    /// What the watcher holds for its initial events, where it has them from a past state.
    fn pinned(&self) -> Option<Arc<dyn Pinned>> {
        None
    }
}

impl dyn Watcher + '_ {
    /// The next events, at least one; waits for one. Cancel safe. `None` after `Failed`.
    pub async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        let mut events = VecDeque::new();
        let more = poll_fn(|context| self.poll_next(context, &mut events)).await;
        more.then(|| events.into())
    }
}

/// What an update closure decides.
pub enum Change {
    /// Store this object. If it encodes to the same bytes, nothing is written.
    Write(Object),
    /// Remove the key; the object is the last state that watchers see.
    Delete(Object),
    /// Leave it as it is.
    Keep,
}

/// Decides the next state from the present one (`None` when there is none). May be called again after a lost race.
pub type Updater<'a> = &'a mut (dyn FnMut(Option<&Stored>) -> Result<Change, ApiError> + Send);

/// Errors of storage; `server` translates them into Status at its edge.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// No such object.
    #[error("not found")]
    NotFound,
    /// The key is taken.
    #[error("already exists")]
    AlreadyExists,
    /// The revision asked for is gone.
    #[error("too old resource version: {requested} ({oldest})")]
    Expired {
        /// Asked for.
        requested: u64,
        /// Oldest held.
        oldest: u64,
    },
    /// The revision asked for did not come within 3 s.
    #[error("Too large resource version: {requested}, current: {current}")]
    TooLarge {
        /// Asked for.
        requested: u64,
        /// Newest held.
        current: u64,
    },
    /// The object is more than the backend stores; it comes back.
    #[error("the object is too large")]
    Oversized(Box<Object>),
    /// The guard of a write has moved.
    #[error("the writer's term is over")]
    Guarded,
    /// The closure of an update refused, or there was no [`Room`] for a list.
    #[error("{0}")]
    Refused(ApiError),
    /// The cache is not filled yet.
    #[error("storage is (re)initializing")]
    NotReady,
    /// From below.
    #[error(transparent)]
    Backend(BackendError),
}

impl From<BackendError> for StorageError {
    /// The two errors that say something about the revision asked for are the caller's; the rest is the backend's.
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
    /// Stores a new object, if the guard of `context` stands.
    async fn create(
        &self,
        key: &str,
        object: Object,
        context: WriteContext<'_>,
    ) -> Result<Arc<Stored>, StorageError>;
    /// Reads one object.
    async fn get(&self, key: &str, at: ReadAt) -> Result<Arc<Stored>, StorageError>;
    /// Reads a page of objects. Those that are not in memory are read as `room` is made for them, and are the reader's
    /// for as long as it has the page.
    async fn list(
        &self,
        scope: &Scope,
        options: &ListOptions,
        room: &mut dyn Room,
    ) -> Result<Page, StorageError>;
    /// Compare-and-swap loop: `updater` sees the present state (from the cache at first, then live after a lost
    /// race or a refusal on possibly stale data) and says what to do. Returns the resulting state (for `Delete` the
    /// last state at the deletion's revision) and whether something was written. Writes only if the guard of
    /// `context` stands.
    async fn update(
        &self,
        key: &str,
        context: WriteContext<'_>,
        updater: Updater<'_>,
    ) -> Result<(Arc<Stored>, bool), StorageError>;
    /// Opens a watch.
    async fn watch(&self, scope: Scope, from: WatchFrom) -> Result<Box<dyn Watcher>, StorageError>;
    /// The newest revision, as the authority has it.
    async fn current_revision(&self) -> Result<Revision, StorageError>;
    /// About how many bytes of objects a list of `scope` looks at, counted no further than `enough`; `enough` where
    /// that is not known at once. It reads nothing from the backend.
    fn listed_bytes(&self, scope: &Scope, options: &ListOptions, enough: usize) -> usize;
    /// [`crate::backend::Backend::history_room`].
    fn history_room(&self) -> Option<u64>;
    /// Whether reads can be served.
    fn ready(&self) -> bool;
}
