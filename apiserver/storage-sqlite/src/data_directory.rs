//! The folder of the embedded store, which a server makes when it starts.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use drydock_storage::backend::Backend;
use drydock_storage::location::{LocationError, StorageLocation};

use crate::file::sync_directory;
use crate::{SqliteBackend, SqliteOptions};

/// Name of the embedded store's file in its folder.
const FILE: &str = "drydock.db";

/// The folder of an embedded store; it is created if it does not exist.
#[derive(Clone, Debug)]
pub struct DataDirectory {
    /// The folder: --data-dir.
    pub folder: PathBuf,
    /// Bytes from which on creates are refused (--quota-backend-bytes); `None` is limited by the disk only.
    pub quota: Option<u64>,
}

#[async_trait]
impl StorageLocation for DataDirectory {
    fn name(&self) -> &'static str {
        "embedded"
    }

    async fn open(&self) -> Result<Arc<dyn Backend>, LocationError> {
        make_folder(&self.folder)?;
        let file = file(&self.folder);
        let options = SqliteOptions { quota: self.quota, ..SqliteOptions::default() };
        let refused = |why| LocationError::new(format!("--data-dir: cannot use {}", file.display()), why);
        Ok(Arc::new(SqliteBackend::open(&file, options).map_err(refused)?))
    }
}

/// Returns the path of the store's file.
pub fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Creates the folder, readable by the server alone, and syncs its parents, so that it is as durable as what is
/// written in it. The permissions of an existing folder are not changed.
///
/// # Errors
/// If the folder cannot be created.
pub fn make_folder(folder: &Path) -> Result<(), LocationError> {
    let absent = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let new: Vec<_> = folder.ancestors().take_while(absent).collect();
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    // A new folder is an entry in its parent, which is synced.
    let durable = made.and_then(|()| new.into_iter().try_for_each(sync_directory));
    durable.map_err(|why| LocationError::new(format!("--data-dir: {}", folder.display()), why))
}
