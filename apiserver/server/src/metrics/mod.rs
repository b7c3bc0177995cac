//! Metrics by the names that dashboards of kube-apiserver rely on
//! (k8s.io/apiserver pkg/endpoints/metrics), in the Prometheus text format.

mod flow_control;
mod labels;
mod storage;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use drydock_machinery::kind::Names;
use drydock_serving::request::info::{RequestInfo, Verb};
use drydock_storage::cache;
use http::{HeaderMap, Response, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::flow_control::FlowControl;
use labels::{DryRun, Labels, Terminated, Total, dry_run, labels};

/// Labels of the watch metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    group: &'static str,
    version: &'static str,
    resource: &'static str,
}

/// Events that watches have sent, and their sizes.
#[derive(Clone, Debug)]
pub struct WatchEvents {
    sent: Family<WatchLabels, Counter>,
    sizes: Family<WatchLabels, Histogram, fn() -> Histogram>,
}

impl Default for WatchEvents {
    fn default() -> Self {
        Self { sent: Family::default(), sizes: Family::new_with_constructor(|| Histogram::new(SIZES)) }
    }
}

impl WatchEvents {
    /// The events of one kind, looked up once for all that a watch sends.
    pub fn of(&self, names: &Names) -> KindEvents {
        let of = WatchLabels { group: names.group, version: names.version, resource: names.plural };
        KindEvents { sent: self.sent.get_or_create_owned(&of), sizes: self.sizes.get_or_create_owned(&of) }
    }
}

/// Events that the watches of one kind have been sent.
#[derive(Clone, Debug)]
pub struct KindEvents {
    sent: Counter,
    sizes: Histogram,
}

impl KindEvents {
    /// Counts an event of this many bytes.
    pub fn count(&self, bytes: usize) {
        self.sent.inc();
        self.sizes.observe(bytes as f64);
    }
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// The metrics of one server.
pub struct Metrics {
    registry: Registry,
    total: Family<Total, Counter>,
    duration: Histograms<DryRun>,
    indicator: Histograms<Labels>,
    sizes: Histograms<Labels>,
    terminated: Family<Terminated, Counter>,
    long_running: Family<Labels, Gauge>,
    watch_events: WatchEvents,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Registers every metric.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            total: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            indicator: Family::new_with_constructor(|| Histogram::new(SECONDS.into_iter().skip(2))),
            sizes: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1000.0, 10.0, 7))),
            terminated: Family::default(),
            long_running: Family::default(),
            watch_events: WatchEvents::default(),
        };
        metrics.register();
        metrics
    }

    /// The encoder itself appends `_total` to a counter's name.
    fn register(&mut self) {
        let r = &mut self.registry;
        r.register("apiserver_request", "Requests by verb, resource and code", self.total.clone());
        let what = "Response latency of requests that do not stream";
        r.register("apiserver_request_duration_seconds", what, self.duration.clone());
        let what = "Response latency of requests that do not stream and were no dry run";
        r.register("apiserver_request_sli_duration_seconds", what, self.indicator.clone());
        let what = "Sizes of the answers to reading requests, in bytes";
        r.register("apiserver_response_sizes", what, self.sizes.clone());
        let what = "Requests that were ended in self-defence: too many at a time, or out of time";
        r.register("apiserver_request_terminations", what, self.terminated.clone());
        r.register("apiserver_longrunning_requests", "Watches that are open", self.long_running.clone());
        r.register("apiserver_watch_events", "Events sent by watches", self.watch_events.sent.clone());
        let what = "Sizes of events sent by watches, in bytes";
        r.register("apiserver_watch_events_sizes", what, self.watch_events.sizes.clone());
    }

    /// Counts an answered request. `info` must name a resource that is served, or none: each is a series.
    pub fn answered(&self, info: &RequestInfo, applies: bool, code: StatusCode, took: Duration) {
        let request = if applies { labels(info).of_apply() } else { labels(info) };
        let request = DryRun { request, dry_run: dry_run(info) };
        if info.verb != Verb::Watch {
            self.duration.get_or_create(&request).observe(took.as_secs_f64());
            if request.dry_run.is_empty() {
                self.indicator.get_or_create(&request.request).observe(took.as_secs_f64());
            }
        }
        self.total.get_or_create(&Total { request, code: code.as_u16() }).inc();
    }

    /// Counts a request that was ended before it was answered.
    pub fn terminated(&self, info: &RequestInfo, code: StatusCode) {
        self.terminated.get_or_create(&Terminated { request: labels(info), code: code.as_u16() }).inc();
    }

    /// Where the size of an answer is counted, if the request reads objects.
    pub fn sizes(&self, info: &RequestInfo) -> Option<Sizes> {
        let reads = info.is_resource && matches!(info.verb, Verb::Get | Verb::List);
        reads.then(|| Sizes(self.sizes.get_or_create_owned(&labels(info))))
    }

    /// Counts an open watch until the guard is dropped.
    pub fn watch_opened(&self, info: &RequestInfo) -> OpenWatch {
        let gauge = self.long_running.get_or_create_owned(&labels(info));
        gauge.inc();
        OpenWatch(gauge)
    }

    /// Shows the figures of the caches of these kinds.
    pub fn show_caches<'n>(&mut self, caches: impl IntoIterator<Item = (&'n Names, Arc<cache::Metrics>)>) {
        let mut all = storage::Caches::default();
        caches.into_iter().for_each(|(names, cache)| all.add(names, cache));
        self.registry.register_collector(Box::new(all));
    }

    /// Shows the figures of flow control.
    pub fn show_flow_control(&mut self, control: Arc<FlowControl>) {
        self.registry.register_collector(Box::new(flow_control::Levels(control)));
    }

    /// Where others register what they count.
    pub fn registry(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Where watches count what they send.
    pub fn watch_events(&self) -> WatchEvents {
        self.watch_events.clone()
    }

    /// The answer to a scrape with these headers.
    pub fn expose(&self, headers: &HeaderMap) -> Response<Body> {
        drydock_metrics::expose(&self.registry, &[], headers).map(Body::from)
    }
}

/// Counts an open watch while it lives.
pub struct OpenWatch(Gauge);

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Counts the sizes of answers to requests of one sort.
pub struct Sizes(Histogram);

impl Sizes {
    /// Counts an answer of this many bytes.
    pub fn observe(&self, bytes: u64) {
        self.0.observe(bytes as f64);
    }
}

/// Buckets of kube-apiserver's request duration; those of the service level indicator begin at the third.
const SECONDS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

/// Buckets of the sizes of watch events: 1 KiB to 128 KiB.
const SIZES: [f64; 8] = [1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131072.0];
