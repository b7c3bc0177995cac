//! What the cache guarantees beyond the behaviour of any storage.

mod failures;
mod gated_backend;
mod pins;
mod reads;
mod resumed;
mod steps;
mod wakeups;
mod watchers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use drydock_storage::backend::Revision;
use drydock_storage::cache::{Cache, Config};
use drydock_storage::memory_budget::UnlimitedMemory;
use drydock_storage::store::Store;
use tempfile::TempDir;

use crate::storage_suite::Fixture;
use gated_backend::GatedBackend;

/// A cache over a gate over SQLite, or over the backend that `alive` keeps running.
struct Setup<A = TempDir> {
    cache: Arc<Cache>,
    gate: Arc<GatedBackend>,
    fixture: Fixture,
    _alive: A,
}

fn small() -> Config {
    Config { freshness: Duration::from_millis(200), ..Config::default() }
}

async fn gated() -> (Arc<GatedBackend>, TempDir) {
    let (backend, directory) = crate::sqlite::start().await;
    (Arc::new(GatedBackend::new(backend)), directory)
}

fn cache_over<A>(gate: Arc<GatedBackend>, alive: A, config: Config) -> Setup<A> {
    let cache = Arc::new(Cache::start(Store::new(gate.clone(), "test.example", "widgets"), config));
    let fixture = Fixture { storage: cache.clone(), backend: gate.clone() };
    Setup { cache, gate, fixture, _alive: alive }
}

async fn setup(config: Config) -> Setup {
    let (gate, directory) = gated().await;
    let setup = cache_over(gate, directory, config);
    setup.cache.wait_until_ready().await;
    setup
}

impl<A> Setup<A> {
    /// Waits until the cache has reached a revision.
    async fn seen(&self, revision: Revision) {
        use drydock_storage::storage::{ReadAt, Scope};
        while self
            .fixture
            .storage
            .list(
                &Scope::all(),
                &crate::storage_suite::all(ReadAt::NotOlderThan(revision)),
                &mut UnlimitedMemory,
            )
            .await
            .is_err()
        {}
    }

    fn metric(&self, which: impl Fn(&drydock_storage::cache::Metrics) -> &AtomicU64) -> u64 {
        which(&self.cache.metrics()).load(SeqCst)
    }
}
