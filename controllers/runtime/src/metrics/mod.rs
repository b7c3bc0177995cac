//! Metrics in the Prometheus text format, under the names that Kubernetes operators know.

mod queue;
pub mod series;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use axum::routing::get;
use parking_lot::Mutex;
use prometheus_client::registry::{Metric, Registry};

use queue::QueueFamilies;
pub use queue::QueueMetrics;
pub use series::SnapshotMetric;

/// The registry. Clones share it.
#[derive(Clone)]
pub struct Metrics {
    shared: Arc<Shared>,
}

struct Shared {
    registry: Mutex<Registry>,
    before_scrape: Mutex<Vec<Box<dyn Fn() + Send + Sync>>>,
    /// Counters whose name does not end in `_total`.
    bare_counters: Mutex<Vec<String>>,
    queues: QueueFamilies,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// An empty registry, with the work queues' metrics.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let queues = QueueFamilies::register(&mut registry);
        Self {
            shared: Arc::new(Shared {
                registry: Mutex::new(registry),
                before_scrape: Mutex::default(),
                bare_counters: Mutex::default(),
                queues,
            }),
        }
    }

    /// Adds a metric. A counter's name is given without `_total`, which is added.
    pub fn register(&self, name: &str, help: &str, metric: impl Metric) {
        self.shared.registry.lock().register(name, help, metric);
    }

    /// Adds a metric that begins at its default, and returns it. A counter's name is given without `_total`.
    pub fn add<M: Metric + Clone + Default>(&self, name: &str, help: &str) -> M {
        add(&mut self.shared.registry.lock(), name, help)
    }

    /// Adds a counter whose name does not end in `_total` (names that a KEP fixes).
    pub fn add_bare_counter<M: Metric + Clone + Default>(&self, name: &str, help: &str) -> M {
        self.shared.bare_counters.lock().push(name.to_owned());
        self.add(name, help)
    }

    /// Calls `hook` before each scrape, for gauges that are worked out then.
    pub fn before_scrape(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.shared.before_scrape.lock().push(Box::new(hook));
    }

    /// Metrics of one work queue.
    pub fn queue(&self, name: &str) -> QueueMetrics {
        self.shared.queues.of(name)
    }

    /// The answer to a scrape with these headers.
    pub fn expose(&self, headers: &HeaderMap) -> Response<String> {
        self.shared.before_scrape.lock().iter().for_each(|hook| hook());
        drydock_metrics::expose(&self.shared.registry.lock(), &self.shared.bare_counters.lock(), headers)
    }

    /// All metrics in the text format 0.0.4.
    pub fn render(&self) -> String {
        self.expose(&HeaderMap::new()).into_body()
    }
}

/// Serves `/metrics` to every caller: the port authorizes callers.
pub fn router(metrics: Metrics) -> Router {
    let scrape = async |State(metrics): State<Metrics>, headers: HeaderMap| metrics.expose(&headers);
    Router::new().route("/metrics", get(scrape)).with_state(metrics)
}

fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}
