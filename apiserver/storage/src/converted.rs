//! The objects of a storage in another version than the stored one (k8s.io/apiserver: the codec of a version over the
//! storage of all versions, pkg/registry/generic/registry/storage_factory.go).
//!
//! ```text
//!   verbs of v1beta1 ──> ConvertedStorage ──┐
//!                                           ├──> watch cache ──> store
//!   verbs of v1alpha1 (stored) ─────────────┘
//! ```
//!
//! Keys, revisions, bookmarks and history are those of the storage below. An object is converted for each read. What a
//! page converts counts against the memory of its reader, because nothing shares it.
//!
//! A stored object that cannot be converted fails the reads in this version that meet it, and no others, as one that
//! k8s.io/apiserver cannot decode does (pkg/storage/etcd3/store.go, watcher.go): a get and a list answer with 500, a
//! watch sends an ERROR event and ends. The error and a warning in the log name the object. It is mended or deleted in
//! the storage version.

mod recent;
mod watcher;

use std::sync::Arc;

use async_trait::async_trait;
use drydock_machinery::field_mask::FieldMask;
use drydock_machinery::kind::Kind;
use drydock_machinery::quote::go_quote;
use drydock_machinery::versions::{ConversionError, Versions};
use drydock_machinery::{ApiError, Object};

use crate::backend::{Revision, Shortage, WriteContext};
use crate::storage::{
    MemoryBudget, NextState, Page, PageOptions, ReadAt, Replaced, Scope, Selection, Storage, StorageError,
    Stored, WatchFrom, Watcher,
};
use crate::work_meter::WorkMeter;
use recent::RecentConversions;
use watcher::ConvertingWatcher;

/// The fields that a conversion leaves as they are, of those that a selector may read.
const UNCONVERTED: [&str; 3] = ["metadata.labels", "metadata.name", "metadata.namespace"];

/// A storage whose objects are read and written in a version that is not the stored one.
pub struct ConvertedStorage {
    inner: Arc<dyn Storage>,
    converter: Arc<Converter>,
}

/// Converts stored objects to one version, and back.
struct Converter {
    versions: Arc<Versions>,
    /// `group/version` of the storage version.
    stored: String,
    /// `group/version` of the other version.
    served: String,
    recent: RecentConversions,
}

impl ConvertedStorage {
    /// Serves the objects of `inner`, which are in the storage version of `versions`, in the version of `kind`.
    pub fn new(inner: Arc<dyn Storage>, versions: Arc<Versions>, kind: &dyn Kind) -> Self {
        let stored = versions.storage_version().names().api_version();
        let served = kind.names().api_version();
        let converter = Converter { versions, stored, served, recent: RecentConversions::default() };
        Self { inner, converter: Arc::new(converter) }
    }

    /// Returns the scope below. A selection that reads what conversions leave as it is, is evaluated on stored
    /// objects; any other one converts each object that it looks at.
    fn stored_scope(&self, scope: &Scope) -> Scope {
        Scope {
            matches: scope.matches.clone().map(|selection| self.storage_selection(selection)),
            ..scope.clone()
        }
    }

    fn storage_selection(&self, selection: Selection) -> Selection {
        if selection.reads.is_within(&FieldMask::of(UNCONVERTED)) {
            return selection;
        }
        let (converter, accepts) = (self.converter.clone(), selection.accepts);
        let accepts = move |object: &Object| {
            // One that cannot be converted is selected: the read then fails instead of hiding it.
            converter.to_served(object.clone()).map_or(true, |served| accepts(&served))
        };
        Selection {
            reads: Arc::new(FieldMask::everything()),
            requires: None,
            bytes: selection.bytes,
            accepts: Arc::new(accepts),
        }
    }
}

impl Converter {
    /// Converts a state, which keeps its key and revision.
    ///
    /// # Errors
    /// 500 if the object cannot be converted; its message names the object.
    fn read(&self, stored: &Stored) -> Result<Arc<Stored>, ApiError> {
        let object = Arc::unwrap_or_clone(stored.object_not_kept());
        let served = self.to_served(object).map_err(|why| {
            tracing::warn!(key = %stored.key, revision = stored.revision.0, %why, "an object cannot be read");
            let object = stored.object_not_kept();
            let name = [object.namespace(), object.name()].map(str::to_owned).join("/");
            ApiError::internal(format!("{}: {why}", go_quote(name.trim_start_matches('/'))))
        })?;
        Ok(Arc::new(Stored::new(stored.key.to_string(), served, stored.revision)))
    }

    /// Converts a state back. By the contract of conversions it is the stored one again.
    ///
    /// # Errors
    /// 400 if the object cannot be converted.
    fn stored(&self, served: &Stored) -> Result<Arc<Stored>, ApiError> {
        let mut object = self.written(Arc::unwrap_or_clone(served.object_not_kept()))?;
        // An equal object is found by the bytes that are stored, which have no resourceVersion.
        object.set_resource_version("");
        Ok(Arc::new(Stored::of_bytes(&served.key, &object.to_json(), served.revision)))
    }

    /// Converts an object that is to be stored.
    ///
    /// # Errors
    /// 400 if it cannot be converted.
    fn written(&self, object: Object) -> Result<Object, ApiError> {
        let kind = self.versions.storage_version().names().kind;
        self.versions.convert(object, &self.served, &self.stored).map_err(|why| {
            let version = go_quote(self.served.rsplit('/').next().unwrap_or_default());
            ApiError::bad_request(format!("{kind} in version {version} cannot be handled as a {kind}: {why}"))
        })
    }

    fn to_served(&self, object: Object) -> Result<Object, ConversionError> {
        self.versions.convert(object, &self.stored, &self.served)
    }

    /// Converts what an error returns to the writer.
    fn error(&self, error: StorageError) -> StorageError {
        match error {
            StorageError::Oversized(object) => match self.to_served(*object) {
                Ok(object) => StorageError::Oversized(Box::new(object)),
                Err(why) => StorageError::Refused(ApiError::internal(why)),
            },
            other => other,
        }
    }
}

#[async_trait]
impl Storage for ConvertedStorage {
    async fn create(
        &self,
        key: &str,
        object: Object,
        context: WriteContext<'_>,
    ) -> Result<Arc<Stored>, StorageError> {
        let object = self.converter.written(object).map_err(StorageError::Refused)?;
        let created = self.inner.create(key, object, context).await;
        let created = created.map_err(|error| self.converter.error(error))?;
        self.converter.read(&created).map_err(StorageError::Refused)
    }

    async fn get(&self, key: &str, at: ReadAt) -> Result<Arc<Stored>, StorageError> {
        let stored = self.inner.get(key, at).await?;
        self.converter.read(&stored).map_err(StorageError::Refused)
    }

    async fn list(
        &self,
        scope: &Scope,
        options: &PageOptions,
        memory: &mut dyn MemoryBudget,
    ) -> Result<Page, StorageError> {
        let page = self.inner.list(&self.stored_scope(scope), options, memory).await?;
        let (mut converted, mut work) = (Vec::new(), WorkMeter::default());
        for stored in page.items.iter() {
            let served = self.converter.read(&stored).map_err(StorageError::Refused)?;
            memory.take(served.json_len()).await.map_err(StorageError::Refused)?;
            converted.push(served);
            work.worked(stored.json_len()).await;
        }
        Ok(Page { items: converted.into(), ..page })
    }

    async fn replace(
        &self,
        key: &str,
        present: &Arc<Stored>,
        next: NextState,
        context: WriteContext<'_>,
    ) -> Result<Replaced, StorageError> {
        let converter = &self.converter;
        let served = |state: Arc<Stored>| converter.read(&state).map_err(StorageError::Refused);
        let (stored, next) = match next {
            NextState::Write(object) => {
                let stored = converter.stored(present).map_err(StorageError::Refused)?;
                let object = converter.written(object).map_err(StorageError::Refused)?;
                (stored, NextState::Write(object))
            }
            NextState::Delete(object) => match (converter.stored(present), converter.written(object)) {
                (Ok(stored), Ok(last)) => (stored, NextState::Delete(last)),
                // An object that cannot be converted back can still be removed: its last state is the stored one.
                _ => match self.inner.get(key, ReadAt::Latest).await {
                    Ok(newest) if newest.revision == present.revision => {
                        let last = Arc::unwrap_or_clone(newest.object_not_kept());
                        (newest, NextState::Delete(last))
                    }
                    Ok(newest) => return Ok(Replaced::Conflict(Some(served(newest)?))),
                    Err(StorageError::NotFound) => return Ok(Replaced::Conflict(None)),
                    Err(error) => return Err(error),
                },
            },
        };
        let replaced = self.inner.replace(key, &stored, next, context).await;
        Ok(match replaced.map_err(|error| converter.error(error))? {
            Replaced::Updated(state) => Replaced::Updated(served(state)?),
            Replaced::Conflict(newest) => Replaced::Conflict(newest.map(served).transpose()?),
        })
    }

    fn would_store(&self, object: Object) -> Result<Object, ApiError> {
        let stored = self.converter.written(object)?;
        self.converter.to_served(stored).map_err(ApiError::internal)
    }

    async fn watch(&self, scope: Scope, from: WatchFrom) -> Result<Box<dyn Watcher>, StorageError> {
        let watcher = self.inner.watch(self.stored_scope(&scope), from).await?;
        Ok(Box::new(ConvertingWatcher::new(watcher, self.converter.clone())))
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.inner.current_revision().await
    }

    fn listed_bytes(&self, scope: &Scope, options: &PageOptions, enough: usize) -> usize {
        self.inner.listed_bytes(&self.stored_scope(scope), options, enough)
    }

    fn shortage(&self) -> Option<Shortage> {
        self.inner.shortage()
    }

    fn ready(&self) -> bool {
        self.inner.ready()
    }
}
