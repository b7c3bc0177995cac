//! Metrics of the interceptor.

use std::collections::HashMap;
use std::sync::Arc;

use drydock_runtime::ObjectKey;
use drydock_runtime::metrics::series::{self, MAX_SERIES};
use drydock_runtime::metrics::{Metrics as Registry, SnapshotMetric};
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    namespace: String,
    name: String,
    pod: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

/// KEP-4563's counter of evictions, and gauges of the pool.
pub(super) struct Metrics {
    failed: Arc<FailedEvictions>,
    answers: Family<ResultLabels, Counter>,
    pub(super) in_flight: Gauge,
    pub(super) waiting: Gauge,
    pub(super) limit: Gauge,
}

/// How many evictions failed for each request that is tracked (KEP-4563, Eviction: 'If the pod eviction
/// fails, the metric is incremented'); equal to the number of retries in its message. A scrape shows at most
/// [`MAX_SERIES`] of them.
struct FailedEvictions {
    requests: Mutex<HashMap<ObjectKey, FailureCount>>,
    shown: SnapshotMetric<Family<RequestLabels, Counter>>,
    left_out: Gauge,
}

struct FailureCount {
    pod: String,
    evictions: u64,
}

impl Metrics {
    pub(super) fn register(registry: &Registry) -> Self {
        let failed = Arc::new(FailedEvictions {
            requests: Mutex::default(),
            shown: registry.add_bare_counter(
                "evictionrequest_controller_imperative_evictions",
                "Evictions that failed for an unfinished EvictionRequest and its Pod",
            ),
            left_out: registry.add(
                "drydock_imperative_eviction_series_left_out",
                "Series of evictionrequest_controller_imperative_evictions that this scrape has no room for",
            ),
        });
        let shown = failed.clone();
        registry.before_scrape(move || shown.show(MAX_SERIES));
        Self {
            failed,
            answers: registry.add("drydock_evictions", "Evictions sent, by how the host answered"),
            in_flight: registry.add("drydock_evictions_in_flight", "Evictions in flight"),
            waiting: registry.add("drydock_evictions_waiting", "Evictions that wait for a slot"),
            limit: registry.add(
                "drydock_evictions_limit",
                "Evictions that may be in flight, of all namespaces together",
            ),
        }
    }

    /// Counts a failed eviction of a request that is tracked.
    pub(super) fn failed_for(&self, request: &ObjectKey, pod: &str) {
        let mut requests = self.failed.requests.lock();
        match requests.get_mut(request) {
            Some(failed) => failed.evictions += 1,
            None => {
                drop(requests.insert(request.clone(), FailureCount { pod: pod.to_owned(), evictions: 1 }))
            }
        }
    }

    /// Counts an answer of the host.
    pub(super) fn answered(&self, result: &'static str) {
        self.answers.get_or_create(&ResultLabels { result }).inc();
    }

    /// Removes a request that is no longer tracked.
    pub(super) fn forget(&self, request: &ObjectKey) {
        self.failed.requests.lock().remove(request);
    }
}

impl FailedEvictions {
    /// Shows at most `most` series, of as many namespaces as there is room for.
    fn show(&self, most: usize) {
        let shown = Family::<RequestLabels, Counter>::default();
        let requests = self.requests.lock();
        let mut left = most;
        series::each(requests.iter().map(|item| (&item.0.namespace, item)), |(request, failed)| {
            let count = usize::from(left > 0);
            if count > 0 {
                shown.get_or_create(&label(request, &failed.pod)).inc_by(failed.evictions);
            }
            left -= count;
            count
        });
        self.shown.replace(shown);
        self.left_out.set(i64::try_from(requests.len().saturating_sub(most)).unwrap_or(i64::MAX));
    }
}

fn label(request: &ObjectKey, pod: &str) -> RequestLabels {
    RequestLabels {
        namespace: request.namespace.to_string(),
        name: request.name.to_string(),
        pod: pod.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Series were given as they came, and lived as long as the request: a tenant with 20,000 blocked requests left
    /// everybody else out.
    #[test]
    fn a_namespace_with_many_blocked_requests_leaves_no_other_out() {
        let registry = Registry::new();
        let metrics = Metrics::register(&registry);
        for name in 0..MAX_SERIES + 5 {
            metrics.failed_for(&ObjectKey::new("loud", &name.to_string()), "p");
        }
        let quiet = ObjectKey::new("quiet", "r");
        (0..3).for_each(|_| metrics.failed_for(&quiet, "p"));
        let text = registry.render();
        let of_quiet =
            "evictionrequest_controller_imperative_evictions{namespace=\"quiet\",name=\"r\",pod=\"p\"} 3";
        assert!(text.lines().any(|line| line == of_quiet));
        assert!(text.contains("drydock_imperative_eviction_series_left_out 6"));
        let series = |text: &str| text.lines().filter(|line| line.contains("namespace=\"")).count();
        assert_eq!(series(&text), MAX_SERIES);
        metrics.forget(&quiet);
        assert!(!registry.render().contains("quiet"));
    }
}
