//! Which backend keeps the objects, and the cached storage of a kind above it.

use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use anyhow::Context;
use drydock_machinery::kind::Names;
use drydock_storage::backend::Backend;
use drydock_storage::cache::{Cache, Config};
use drydock_storage::compaction;
use drydock_storage::etcd::{EtcdBackend, EtcdConfig};
use drydock_storage::sqlite::{SqliteBackend, SqliteOptions};
use drydock_storage::store::Store;
use tokio_util::sync::CancellationToken;

use crate::flags::Flags;

/// Name of the embedded store's file in --data-dir.
const FILE: &str = "drydock.db";

/// Opens the backend that the flags name.
pub async fn open(flags: &Flags) -> anyhow::Result<Arc<dyn Backend>> {
    if !flags.etcd_servers.is_empty() {
        let backend = EtcdBackend::connect(&etcd(flags)).await.context("--etcd-servers")?;
        return Ok(Arc::new(backend));
    }
    // The objects are for the server alone; a folder that is there already is its owner's business.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&flags.data_dir)
        .with_context(|| format!("--data-dir: {}", flags.data_dir.display()))?;
    let file = flags.data_dir.join(FILE);
    let backend = SqliteBackend::open(&file, SqliteOptions::default())
        .with_context(|| format!("--data-dir: cannot use {}", file.display()))?;
    Ok(Arc::new(backend))
}

/// A kind's storage: the watch cache over the typed store over `backend`.
pub fn cached(backend: &Arc<dyn Backend>, names: &Names) -> Arc<Cache> {
    Arc::new(Cache::start(Store::new(backend.clone(), names.group, names.plural), Config::default()))
}

/// Compacts the backend's history every five minutes until `stop`.
pub fn compact(backend: &Arc<dyn Backend>, stop: CancellationToken) {
    let backend = backend.clone();
    tokio::spawn(async move { compaction::run(backend.as_ref(), compaction::INTERVAL, stop).await });
}

fn etcd(flags: &Flags) -> EtcdConfig {
    EtcdConfig {
        servers: flags.etcd_servers.clone(),
        prefix: flags.etcd_prefix.clone(),
        ca_file: flags.etcd_cafile.clone(),
        cert_file: flags.etcd_certfile.clone(),
        key_file: flags.etcd_keyfile.clone(),
    }
}
