//! Metrics of the interceptor.

use drydock_runtime::{Context, ObjectKey};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRequest {
    namespace: String,
    name: String,
    pod: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Result {
    result: &'static str,
}

/// Series of [`OfRequest`], whose names tenants choose.
const SERIES: i64 = 20_000;

/// KEP-4563's counter, whose series live as long as their request, and what shows how the pool is doing.
pub(super) struct Metrics {
    evictions: Family<OfRequest, Counter>,
    /// How many series that has.
    series: Gauge,
    left_out: Counter,
    answers: Family<Result, Counter>,
    pub(super) in_flight: Gauge,
    pub(super) waiting: Gauge,
    pub(super) limit: Gauge,
}

impl Metrics {
    pub(super) fn register(context: &Context) -> Self {
        let all = Self {
            evictions: Family::default(),
            series: Gauge::default(),
            left_out: Counter::default(),
            answers: Family::default(),
            in_flight: Gauge::default(),
            waiting: Gauge::default(),
            limit: Gauge::default(),
        };
        let registry = &context.metrics;
        registry.register_bare_counter(
            "evictionrequest_controller_imperative_evictions",
            "Evictions sent for an unfinished EvictionRequest and its Pod",
            all.evictions.clone(),
        );
        registry.register(
            "drydock_imperative_evictions_left_out",
            "Evictions that evictionrequest_controller_imperative_evictions has no room for: too many other requests have series",
            all.left_out.clone(),
        );
        registry.register(
            "drydock_evictions",
            "Evictions sent, by how the host answered",
            all.answers.clone(),
        );
        registry.register("drydock_evictions_in_flight", "Evictions in flight", all.in_flight.clone());
        registry.register("drydock_evictions_waiting", "Evictions that wait for a slot", all.waiting.clone());
        registry.register("drydock_evictions_limit", "Evictions that may be in flight", all.limit.clone());
        all
    }

    /// An eviction was sent for a request that is remembered.
    pub(super) fn sent_for(&self, request: &ObjectKey, pod: &str) {
        let label = label(request, pod);
        if let Some(sent) = self.evictions.get(&label) {
            sent.inc();
            return;
        }
        if self.series.get() >= SERIES {
            self.left_out.inc();
            return;
        }
        self.series.inc();
        self.evictions.get_or_create(&label).inc();
    }

    /// The host answered.
    pub(super) fn answered(&self, result: &'static str) {
        self.answers.get_or_create(&Result { result }).inc();
    }

    pub(super) fn forget(&self, request: &ObjectKey, pod: &str) {
        if self.evictions.remove(&label(request, pod)) {
            self.series.dec();
        }
    }
}

fn label(request: &ObjectKey, pod: &str) -> OfRequest {
    OfRequest {
        namespace: request.namespace.to_string(),
        name: request.name.to_string(),
        pod: pod.to_owned(),
    }
}
