//! The typed store: objects of one resource over the byte-level [`Backend`].
//!
//! Keys are `/registry/<group>/<resource>/<key>`; values are the objects' JSON without resourceVersion, which is
//! the revision of the write (Kubernetes: storage/etcd3/store.go).

mod codec;
mod list;
mod own_writes;
mod watch;
mod write;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use drydock_machinery::Object;

use crate::backend::{Backend, KeyValue, Revision, Shortage, WriteContext, prefix_range};
use crate::storage::{
    MemoryBudget, NextState, Page, PageOptions, ReadAt, Replaced, Scope, Storage, StorageError, Stored,
    WatchFrom, Watcher,
};
use crate::stored::Interner;

pub(crate) use codec::decode;
pub(crate) use list::{everything, readable};
pub(crate) use own_writes::OwnWrites;
use watch::StoreWatcher;

/// The prefix of every object's key; its group and resource follow.
pub(crate) const PREFIX: &str = "/registry/";

/// Objects of one resource in a backend.
#[derive(Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    prefix: Arc<str>,
    own_writes: Arc<OwnWrites>,
    interner: Arc<Interner>,
}

impl Store {
    /// The objects of `resource` (plural) in `group`.
    pub fn new(backend: Arc<dyn Backend>, group: &str, resource: &str) -> Self {
        let prefix = format!("{PREFIX}{group}/{resource}/").into();
        Self { backend, prefix, own_writes: Arc::default(), interner: Arc::default() }
    }

    /// The backend below.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// All keys of the resource, as the backend has them.
    pub fn keys(&self) -> Range<String> {
        prefix_range(&self.prefix)
    }

    /// The writes through this store whose events have not arrived, for the task that follows the backend's watch.
    pub(crate) fn own_writes(&self) -> &Arc<OwnWrites> {
        &self.own_writes
    }

    /// The interner for text that the objects have in common.
    pub(crate) fn interner(&self) -> &Interner {
        &self.interner
    }

    /// Returns the part of a backend key below the resource's prefix. Fails if the key does not have the prefix.
    pub(crate) fn relative<'a>(&self, key: &'a str) -> Result<&'a str, StorageError> {
        key.strip_prefix(&*self.prefix).ok_or_else(|| codec::corrupt(key, "outside of the range asked for"))
    }

    /// Returns the object of a pair.
    pub(crate) fn decode(&self, pair: &KeyValue) -> Result<Arc<Stored>, StorageError> {
        codec::decode(self.relative(&pair.key)?, &pair.value, pair.mod_revision)
    }

    fn absolute(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    async fn read(
        &self,
        key: &str,
        at: Option<Revision>,
    ) -> Result<(Option<Arc<Stored>>, Revision), StorageError> {
        let (pair, revision) = self.backend.get(&self.absolute(key), at).await?;
        Ok((pair.as_ref().map(|pair| self.decode(pair)).transpose()?, revision))
    }
}

/// Returns the revision to read from the backend; `None` is the latest.
fn backend_revision(at: ReadAt) -> Option<Revision> {
    match at {
        ReadAt::Latest | ReadAt::NotOlderThan(_) => None,
        ReadAt::Exact(revision) => Some(revision),
    }
}

/// Fails if the latest revision is older than the one that the client has seen elsewhere.
fn fresh_enough(at: ReadAt, current: Revision) -> Result<(), StorageError> {
    match at {
        ReadAt::NotOlderThan(requested) if requested > current => {
            Err(StorageError::TooLarge { requested: requested.0, current: current.0 })
        }
        _ => Ok(()),
    }
}

#[async_trait]
impl Storage for Store {
    async fn create(
        &self,
        key: &str,
        object: Object,
        context: WriteContext<'_>,
    ) -> Result<Arc<Stored>, StorageError> {
        match write::put(self, key, None, codec::encode(object), context).await? {
            Replaced::Updated(stored) => Ok(stored),
            Replaced::Conflict(_) => Err(StorageError::AlreadyExists),
        }
    }

    async fn get(&self, key: &str, at: ReadAt) -> Result<Arc<Stored>, StorageError> {
        let (stored, revision) = self.read(key, backend_revision(at)).await?;
        fresh_enough(at, revision)?;
        stored.ok_or(StorageError::NotFound)
    }

    async fn list(
        &self,
        scope: &Scope,
        options: &PageOptions,
        memory: &mut dyn MemoryBudget,
    ) -> Result<Page, StorageError> {
        list::page(self, scope, options, memory).await
    }

    async fn replace(
        &self,
        key: &str,
        present: &Arc<Stored>,
        next: NextState,
        context: WriteContext<'_>,
    ) -> Result<Replaced, StorageError> {
        match next {
            NextState::Write(object) => write::overwrite(self, key, present, object, context).await,
            NextState::Delete(last) => write::delete(self, key, present, last, context).await,
        }
    }

    async fn watch(&self, scope: Scope, from: WatchFrom) -> Result<Box<dyn Watcher>, StorageError> {
        Ok(Box::new(StoreWatcher::open(self, scope, from).await?))
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        Ok(self.backend.current_revision().await?)
    }

    fn listed_bytes(&self, _scope: &Scope, _options: &PageOptions, enough: usize) -> usize {
        enough
    }

    fn shortage(&self) -> Option<Shortage> {
        self.backend.shortage()
    }

    fn ready(&self) -> bool {
        true
    }
}
