//! Opens the backend that a server's flags select, and the cached storage of a kind above it.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drydock_machinery::kind::{Names, Quota};
use tokio_util::sync::CancellationToken;

use crate::backend::{Backend, BackendError};
use crate::cache::{Cache, Config};
use crate::compaction;
use crate::etcd::{EtcdBackend, EtcdConfig};
use crate::sqlite::{SqliteBackend, SqliteOptions, sync_directory};
use crate::store::Store;

/// Name of the embedded store's file in its folder.
const FILE: &str = "drydock.db";

/// Where objects are kept.
#[derive(Clone, Debug)]
pub enum StorageLocation {
    /// In a file in a folder, which is created if it does not exist.
    Embedded {
        /// The folder.
        folder: PathBuf,
        /// Bytes from which on creates are refused; `None` is limited by the disk only.
        quota: Option<u64>,
    },
    /// In etcd.
    Etcd(EtcdConfig),
}

/// Why a location cannot be used, with the flag that names it.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    /// The folder cannot be made.
    #[error("--data-dir: {}", .0.display())]
    Folder(PathBuf, #[source] std::io::Error),
    /// The file in it cannot be opened.
    #[error("--data-dir: cannot use {}", .0.display())]
    File(PathBuf, #[source] BackendError),
    /// The settings of etcd are wrong.
    #[error("--etcd-servers")]
    Etcd(#[source] BackendError),
}

impl StorageLocation {
    /// Opens the backend.
    ///
    /// # Errors
    /// If the location cannot be used.
    pub async fn open(&self) -> Result<Arc<dyn Backend>, LocationError> {
        let (folder, quota) = match self {
            Self::Etcd(config) => {
                let backend = EtcdBackend::connect(config).await.map_err(LocationError::Etcd)?;
                return Ok(Arc::new(backend));
            }
            Self::Embedded { folder, quota } => (folder, *quota),
        };
        make_folder(folder)?;
        let file = file(folder);
        let opened = SqliteBackend::open(&file, SqliteOptions { quota, ..SqliteOptions::default() });
        Ok(Arc::new(opened.map_err(|why| LocationError::File(file, why))?))
    }

    /// Returns the same location with another quota; 0 means none. etcd has a quota of its own.
    #[must_use]
    pub fn with_quota(self, bytes: u64) -> Self {
        match self {
            Self::Embedded { folder, .. } => Self::Embedded { folder, quota: (bytes > 0).then_some(bytes) },
            etcd @ Self::Etcd(_) => etcd,
        }
    }

    /// Returns the name for logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Embedded { .. } => "embedded",
            Self::Etcd(_) => "etcd",
        }
    }
}

/// Returns the path of the embedded store's file.
pub fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Creates the embedded store's folder, readable by the server alone, and syncs its parents, so that it is as durable
/// as what is written in it. The permissions of an existing folder are not changed.
///
/// # Errors
/// If the folder cannot be created.
pub fn make_folder(folder: &Path) -> Result<(), LocationError> {
    let absent = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let new: Vec<_> = folder.ancestors().take_while(absent).collect();
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    // A new folder is an entry in its parent, which is synced.
    let durable = made.and_then(|()| new.into_iter().try_for_each(sync_directory));
    durable.map_err(|why| LocationError::Folder(folder.to_owned(), why))
}

/// Returns the storage of a kind: the watch cache over the typed store over `backend`. With a quota, its use is
/// counted.
pub fn cached(backend: &Arc<dyn Backend>, names: &Names, quota: Option<Quota>) -> Arc<Cache> {
    let config = Config { quota, ..Config::default() };
    Arc::new(Cache::start(Store::new(backend.clone(), names.group, names.plural), config))
}

/// Compacts the backend's history every five minutes until `stop`.
pub fn compact(backend: &Arc<dyn Backend>, stop: CancellationToken) {
    let backend = backend.clone();
    tokio::spawn(async move { compaction::run(backend.as_ref(), compaction::INTERVAL, stop).await });
}
