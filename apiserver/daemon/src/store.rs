//! Which backend keeps the objects, and the cached storage of a kind above it.

use std::sync::Arc;

use anyhow::Context;
use drydock_machinery::kind::Names;
use drydock_storage::backend::Backend;
use drydock_storage::cache::{Cache, Config};
use drydock_storage::sqlite::{SqliteBackend, SqliteOptions};
use drydock_storage::store::Store;

use crate::flags::Flags;

/// Name of the embedded store's file in --data-dir.
const FILE: &str = "drydock.db";

/// Opens the backend that the flags name.
pub async fn open(flags: &Flags) -> anyhow::Result<Arc<dyn Backend>> {
    if !flags.etcd_servers.is_empty() {
        return etcd(flags).await;
    }
    std::fs::create_dir_all(&flags.data_dir).with_context(|| format!("--data-dir: {}", flags.data_dir.display()))?;
    let file = flags.data_dir.join(FILE);
    let backend = SqliteBackend::open(&file, SqliteOptions::default())
        .with_context(|| format!("--data-dir: cannot use {}", file.display()))?;
    Ok(Arc::new(backend))
}

/// A kind's storage: the watch cache over the typed store over `backend`.
pub fn cached(backend: &Arc<dyn Backend>, names: &Names) -> Arc<Cache> {
    Arc::new(Cache::start(Store::new(backend.clone(), names.group, names.plural), Config::default()))
}
