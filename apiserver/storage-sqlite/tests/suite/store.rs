//! A store in a folder of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drydock_storage::testing::backend_suite::harness::Store;
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};
use tempfile::TempDir;

pub async fn start() -> (Store, TempDir) {
    let (directory, path) = place();
    (open(&path), directory)
}

/// Returns a path for a store.
pub fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    (directory, path)
}

/// Opens the store at a path; creates it if there is none.
pub fn open(path: &Path) -> Store {
    Arc::new(SqliteBackend::open(path, SqliteOptions::default()).unwrap())
}
