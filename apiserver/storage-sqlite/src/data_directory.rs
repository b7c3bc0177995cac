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
        self.create()?;
        let file = self.file();
        let options = SqliteOptions { quota: self.quota, ..SqliteOptions::default() };
        let refused = |why| LocationError::new(format!("--data-dir: cannot use {}", file.display()), why);
        Ok(Arc::new(SqliteBackend::open(&file, options).map_err(refused)?))
    }
}

impl DataDirectory {
    /// Returns the path of the store's file.
    pub fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Creates the folder, readable by the server alone, and syncs its parents, so that it is as durable as what is
    /// written in it. The permissions of an existing folder are not changed.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn create(&self) -> Result<(), LocationError> {
        let absent = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let new: Vec<_> = self.folder.ancestors().take_while(absent).collect();
        let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        // A new folder is an entry in its parent, which is synced.
        let durable = created.and_then(|()| new.into_iter().try_for_each(sync_directory));
        durable.map_err(|why| LocationError::new(format!("--data-dir: {}", self.folder.display()), why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_for_a_store_is_made_with_those_above_it() {
        let above = tempfile::tempdir().unwrap();
        let directory = DataDirectory { folder: above.path().join("a/b/c"), quota: None };
        directory.create().unwrap();
        directory.create().unwrap();
        assert!(directory.folder.is_dir());
    }
}
