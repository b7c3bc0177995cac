//! The suite on the embedded backend.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drydock_storage::sqlite::{SqliteBackend, SqliteOptions};
use tempfile::TempDir;

use crate::harness::Store;

behaviours!(crate::sqlite::start);

pub async fn start() -> (Store, TempDir) {
    let (directory, path) = place();
    (open(&path), directory)
}

/// Where a store may be made.
pub fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    (directory, path)
}

/// The store of a path, made if there is none.
pub fn open(path: &Path) -> Store {
    Arc::new(SqliteBackend::open(path, SqliteOptions::default()).unwrap())
}
