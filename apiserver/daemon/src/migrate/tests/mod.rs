//! Moves between the embedded store and etcd. They need etcd: `DRYDOCK_ETCD` names its binary, and
//! `conformance/test storage` sets it.

mod ends;
mod guards;
mod lossy_proxy;
mod marks;
mod moves;
mod pages;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drydock_storage::testing::backend_suite::harness::Store;
use drydock_storage_sqlite::{Progress, SqliteBackend, SqliteOptions};
use tempfile::TempDir;

const SILENT: fn() -> Progress = Progress::silent;

/// Returns a path for a store.
fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    (directory, path)
}

/// Opens the store at a path; creates it if there is none.
fn open(path: &Path) -> Store {
    Arc::new(SqliteBackend::open(path, SqliteOptions::default()).unwrap())
}
