//! What clients, watchers and faults share: the servers of the store, the recorder, and the end of the run.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::Result;
use drydock_storage::backend::{Backend, BackendError};
use drydock_storage::cache::{Config, Metrics, WatchCache};
use drydock_storage::storage::{Storage, StorageError};
use drydock_storage::store::Store;
use drydock_testkit::wait::LIMIT;
use parking_lot::Mutex;
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::inject::{FaultInjector, FaultKind};
use crate::object::{GROUP, PREFIX, RESOURCE};
use crate::place::StorePlace;
use crate::record::Rev;
use crate::recorder::Recorder;

/// How long a request is tried on members of etcd (drydock_storage_etcd), but for what a clock rounds.
pub const BACKEND_DEADLINE: Duration = Duration::from_millis(9_900);
/// How long a cache that lags is waited for ([`Config::freshness`]), likewise.
pub const CACHE_DEADLINE: Duration = Duration::from_millis(2_900);

/// One server's layers over the store, from its opening to its end.
pub struct StoreServer {
    pub backend: Arc<dyn Backend>,
    pub store: Arc<dyn Storage>,
    pub cache: Arc<dyn Storage>,
    metrics: Arc<Metrics>,
    /// Cancelled when it is taken down: requests that wait for an answer get none.
    pub gone: CancellationToken,
}

/// All that is shared.
pub struct HistoryContext {
    pub recorder: Recorder,
    /// All keys that are written.
    pub prefix: &'static str,
    pub place: Arc<dyn StorePlace>,
    inject: Option<Arc<FaultInjector>>,
    servers: Vec<watch::Sender<Option<Arc<StoreServer>>>>,
    /// The version of each key that a client or watcher saw last.
    known: Mutex<BTreeMap<String, Option<Rev>>>,
    /// The revision up to which the full watch has seen everything: what it still needs is not compacted.
    pub observed: AtomicU64,
    /// Cancelled when no more is asked for.
    pub over: CancellationToken,
}

impl HistoryContext {
    /// Opens every server of a place. Where no others write to the store, every revision is a write of its clients.
    pub async fn open(
        place: Arc<dyn StorePlace>,
        prefix: &'static str,
        injected: Option<FaultKind>,
        judges_deadlines: bool,
    ) -> Result<Arc<Self>> {
        let servers = (0..place.servers()).map(|_| watch::Sender::new(None)).collect();
        let start = place.open(0).await?.current_revision().await?;
        let context = Arc::new(Self {
            recorder: Recorder::new(start.0, prefix == PREFIX, judges_deadlines),
            prefix,
            place,
            inject: injected.map(|injected| Arc::new(FaultInjector::new(injected))),
            servers,
            known: Mutex::default(),
            observed: AtomicU64::new(start.0),
            over: CancellationToken::new(),
        });
        for which in 0..context.servers.len() {
            context.raise(which).await?;
        }
        Ok(context)
    }

    /// A server, once it is up.
    pub async fn server(&self, which: usize) -> Arc<StoreServer> {
        let mut servers = self.servers[which % self.servers.len()].subscribe();
        loop {
            if let Some(server) = servers.borrow_and_update().clone() {
                return server;
            }
            // The sender lives in `self`.
            let _ = servers.changed().await;
        }
    }

    /// Takes a server down in the middle of whatever it does, and opens it again.
    pub async fn restart(&self, which: usize) -> Result<()> {
        if let Some(server) = self.servers[which].send_replace(None) {
            server.gone.cancel();
        }
        self.raise(which).await
    }

    async fn raise(&self, which: usize) -> Result<()> {
        let backend = self.place.open(which).await?;
        let backend = match &self.inject {
            Some(inject) => inject.over(backend),
            None => backend,
        };
        let store = || Store::new(backend.clone(), GROUP, RESOURCE);
        let cache = WatchCache::start(store(), Config::default());
        let (gone, metrics) = (CancellationToken::new(), cache.metrics());
        let server = StoreServer { metrics, store: Arc::new(store()), cache: Arc::new(cache), backend, gone };
        self.servers[which].send_replace(Some(Arc::new(server)));
        Ok(())
    }

    /// The version of a key that was seen last.
    pub fn known(&self, key: &str) -> Option<Rev> {
        self.known.lock().get(key).copied().flatten()
    }

    /// Records that a client or watcher saw a version.
    pub fn saw(&self, key: &str, version: Option<Rev>) {
        self.known.lock().insert(key.to_owned(), version);
        self.recorder.reached(version.unwrap_or_default());
    }

    /// The revision up to which the full watch has seen everything.
    pub fn observed(&self) -> Rev {
        self.observed.load(SeqCst)
    }
}

impl StoreServer {
    /// Whether compaction overtook the cache, which was then filled anew and ended its watchers. It does so
    /// here and not in a server: turns of compaction keep an interval of minutes.
    pub fn was_filled_anew(&self) -> bool {
        self.metrics.fills.load(SeqCst) > 1
    }

    /// Waits for an answer, unless the server goes down, or the client drops the request, which it sometimes
    /// does.
    pub async fn ask<T, E>(
        &self,
        rng: &mut StdRng,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Option<Result<T, TimedFailure<E>>> {
        let patience = match rng.random_ratio(1, 40) {
            true => Duration::from_micros(rng.random_range(0..3_000)),
            false => LIMIT,
        };
        let began = Instant::now();
        tokio::select! {
            answer = answer => Some(answer.map_err(|error| TimedFailure { error, waited: began.elapsed() })),
            () = self.gone.cancelled() => None,
            () = tokio::time::sleep(patience) => None,
        }
    }
}

/// A request that the store failed.
#[derive(Debug)]
pub struct TimedFailure<E> {
    /// Why.
    pub error: E,
    /// After which time.
    waited: Duration,
}

impl TimedFailure<BackendError> {
    /// Whether the store tried for as long as it may.
    pub fn had_its_time(&self) -> bool {
        self.waited >= BACKEND_DEADLINE
    }
}

impl TimedFailure<StorageError> {
    /// Whether the store tried for as long as it may.
    pub fn had_its_time(&self) -> bool {
        let is_of_cache = matches!(self.error, StorageError::TooLarge { .. } | StorageError::NotReady);
        self.waited >= if is_of_cache { CACHE_DEADLINE } else { BACKEND_DEADLINE }
    }
}
