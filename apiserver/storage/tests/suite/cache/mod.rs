//! What the cache promises beyond the behaviour of any storage.

mod failures;
mod gate;
mod pins;
mod reads;
mod sleepers;
mod watchers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use drydock_storage::backend::Revision;
use drydock_storage::cache::{Cache, Config};
use drydock_storage::store::Store;
use tempfile::TempDir;

use crate::storage_suite::Fixture;
use gate::Gate;

/// A cache over a gate over SQLite.
struct Setup {
    cache: Arc<Cache>,
    gate: Arc<Gate>,
    fixture: Fixture,
    _directory: TempDir,
}

fn small() -> Config {
    Config { freshness: Duration::from_millis(200), ..Config::default() }
}

async fn gated() -> (Arc<Gate>, TempDir) {
    let (backend, directory) = crate::sqlite::start().await;
    (Arc::new(Gate::new(backend)), directory)
}

fn cache_over(gate: Arc<Gate>, directory: TempDir, config: Config) -> Setup {
    let cache = Arc::new(Cache::start(Store::new(gate.clone(), "test.example", "widgets"), config));
    let fixture = Fixture { storage: cache.clone(), backend: gate.clone() };
    Setup { cache, gate, fixture, _directory: directory }
}

async fn setup(config: Config) -> Setup {
    let (gate, directory) = gated().await;
    let setup = cache_over(gate, directory, config);
    setup.cache.wait_until_ready().await;
    setup
}

impl Setup {
    /// Waits until the cache has seen a revision.
    async fn seen(&self, revision: Revision) {
        use drydock_storage::storage::{ReadAt, Scope};
        while self
            .fixture
            .storage
            .list(&Scope::all(), &crate::storage_suite::all(ReadAt::NotOlderThan(revision)))
            .await
            .is_err()
        {}
    }

    fn metric(&self, which: impl Fn(&drydock_storage::cache::Metrics) -> &AtomicU64) -> u64 {
        which(&self.cache.metrics()).load(SeqCst)
    }
}
