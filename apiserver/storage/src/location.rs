//! Where a server keeps its objects, and the cached storage of a kind there.
//!
//! A server opens its location when it starts, and knows no more of it than this trait. So a program has only the
//! dependencies of the backends that it offers.

use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use drydock_machinery::kind::{Names, Quota};

use crate::backend::Backend;
use crate::cache::{Config, WatchCache};
use crate::store::Store;

/// Where objects are kept: each backend has a location of its own (k8s.io/apiserver: storagebackend.Config).
#[async_trait]
pub trait StorageLocation: Debug + Send + Sync {
    /// Returns the name for logs.
    fn name(&self) -> &'static str;

    /// Opens the backend.
    ///
    /// # Errors
    /// If the location cannot be used.
    async fn open(&self) -> Result<Arc<dyn Backend>, LocationError>;
}

/// Why a location cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct LocationError {
    what: String,
    source: Box<dyn Error + Send + Sync>,
}

impl LocationError {
    /// `what` names the flag, and what of it cannot be used.
    pub fn new(what: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { what: what.into(), source: source.into() }
    }
}

/// Returns the storage of a kind: the watch cache over the typed store over `backend`. With a quota, its use is
/// counted.
pub fn cached(backend: &Arc<dyn Backend>, names: &Names, quota: Option<Quota>) -> Arc<WatchCache> {
    let config = Config { quota, ..Config::default() };
    Arc::new(WatchCache::start(Store::new(backend.clone(), names.group, names.plural), config))
}
