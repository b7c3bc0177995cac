//! The suite on the embedded backend.

use std::sync::Arc;

use drydock_storage::sqlite::{SqliteBackend, SqliteOptions};
use tempfile::TempDir;

use crate::harness::Store;

behaviours!(crate::sqlite::start);

pub async fn start() -> (Store, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    (Arc::new(SqliteBackend::open(path, SqliteOptions::default()).unwrap()), directory)
}
