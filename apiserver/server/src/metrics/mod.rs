//! Metrics by the names that dashboards of kube-apiserver rely on
//! (k8s.io/apiserver pkg/endpoints/metrics), in the Prometheus text format.

use std::time::Duration;

use axum::body::Body;
use drydock_machinery::kind::Names;
use http::{Response, StatusCode, header};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::request_info::{RequestInfo, Verb};

/// Labels that tell requests apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    verb: String,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    component: &'static str,
}

/// Labels of `apiserver_request_total`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Total {
    verb: String,
    dry_run: String,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    component: &'static str,
    code: u16,
}

impl From<Labels> for Total {
    fn from(labels: Labels) -> Self {
        let Labels { verb, group, version, resource, subresource, scope, component } = labels;
        let (dry_run, code) = (String::new(), 0);
        Self { verb, dry_run, group, version, resource, subresource, scope, component, code }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    request_kind: &'static str,
}

/// Labels of the watch metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Watched {
    group: &'static str,
    version: &'static str,
    resource: &'static str,
}

/// Events that watches have sent, and their sizes.
#[derive(Clone, Debug)]
pub struct WatchEvents {
    sent: Family<Watched, Counter>,
    sizes: Family<Watched, Histogram, fn() -> Histogram>,
}

impl Default for WatchEvents {
    fn default() -> Self {
        Self { sent: Family::default(), sizes: Family::new_with_constructor(|| Histogram::new(SIZES)) }
    }
}

impl WatchEvents {
    /// Counts an event of this many bytes.
    pub fn count(&self, names: &Names, bytes: usize) {
        let of = Watched { group: names.group, version: names.version, resource: names.plural };
        self.sent.get_or_create(&of).inc();
        self.sizes.get_or_create(&of).observe(bytes as f64);
    }
}

type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The metrics of one server.
pub struct Metrics {
    registry: Registry,
    total: Family<Total, Counter>,
    duration: Histograms,
    in_flight: Family<Kind, Gauge>,
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
        let mut registry = Registry::default();
        let total = Family::default();
        let duration = Histograms::new_with_constructor(|| Histogram::new(BUCKETS));
        let in_flight = Family::default();
        let long_running = Family::default();
        // The encoder itself appends `_total` to a counter's name.
        registry.register("apiserver_request", "Requests by verb, resource and code", total.clone());
        registry.register(
            "apiserver_request_duration_seconds",
            "Response latency of requests that do not stream",
            duration.clone(),
        );
        registry.register(
            "apiserver_current_inflight_requests",
            "Requests that are being answered",
            in_flight.clone(),
        );
        registry.register("apiserver_longrunning_requests", "Watches that are open", long_running.clone());
        let watch_events = WatchEvents::default();
        registry.register("apiserver_watch_events", "Events sent by watches", watch_events.sent.clone());
        registry.register(
            "apiserver_watch_events_sizes",
            "Sizes of events sent by watches, in bytes",
            watch_events.sizes.clone(),
        );
        Self { registry, total, duration, in_flight, long_running, watch_events }
    }

    /// Counts an answered request. `info` must name a resource that is served, or none: each is a series.
    pub fn answered(&self, info: &RequestInfo, code: StatusCode, took: Duration) {
        let labels = labels(info);
        if info.verb != Verb::Watch {
            self.duration.get_or_create(&labels).observe(took.as_secs_f64());
        }
        self.total
            .get_or_create(&Total { dry_run: dry_run(info), code: code.as_u16(), ..labels.into() })
            .inc();
    }

    /// Says how many requests are being answered: reading, mutating.
    pub fn set_in_flight(&self, (reading, mutating): (usize, usize)) {
        for (request_kind, taken) in [("readOnly", reading), ("mutating", mutating)] {
            self.in_flight
                .get_or_create(&Kind { request_kind })
                .set(i64::try_from(taken).unwrap_or(i64::MAX));
        }
    }

    /// Counts an open watch until the guard is dropped.
    pub fn watch_opened(&self, info: &RequestInfo) -> OpenWatch {
        let gauge = self.long_running.get_or_create_owned(&labels(info));
        gauge.inc();
        OpenWatch(gauge)
    }

    /// Where watches count what they send.
    pub fn watch_events(&self) -> WatchEvents {
        self.watch_events.clone()
    }

    /// The answer to a scrape.
    pub fn answer(&self) -> Response<Body> {
        let mut body = String::new();
        let status = match text::encode(&mut body, &self.registry) {
            Ok(()) => StatusCode::OK,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
        response
    }
}

/// Counts an open watch while it lives.
pub struct OpenWatch(Gauge);

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Buckets of kube-apiserver's request duration.
const BUCKETS: [f64; 18] =
    [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0, 30.0, 60.0];

/// Buckets of the sizes of watch events: 1 KiB to 128 KiB.
const SIZES: [f64; 8] = [1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131072.0];

fn labels(info: &RequestInfo) -> Labels {
    let scope = match info {
        i if !i.is_resource => "",
        i if !i.name.is_empty() || i.verb == Verb::Create => "resource",
        i if !i.namespace.is_empty() => "namespace",
        _ => "cluster",
    };
    Labels {
        verb: reported_verb(info),
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        scope,
        component: "apiserver",
    }
}

/// Upper case, with the method in place of a resource verb's name as kube-apiserver reports it.
fn reported_verb(info: &RequestInfo) -> String {
    match &info.verb {
        Verb::Create => "POST".to_owned(),
        Verb::Update => "PUT".to_owned(),
        // Any text can stand for a method, and every one would be a series of its own.
        Verb::Other(method) if !matches!(method.as_str(), "get" | "head" | "post" | "put" | "options") => {
            "OTHER".to_owned()
        }
        verb => verb.as_str().to_ascii_uppercase(),
    }
}

fn dry_run(info: &RequestInfo) -> String {
    info.query.get("dryRun").filter(|v| *v == "All").unwrap_or_default().to_owned()
}
