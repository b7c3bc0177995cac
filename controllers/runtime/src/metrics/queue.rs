//! Metrics of work queues by upstream's names (k8s.io/component-base/metrics/prometheus/workqueue).

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::add;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueName {
    name: String,
}

type QueueHistograms = Family<QueueName, Histogram, fn() -> Histogram>;
type SecondsGauge = Gauge<f64, AtomicU64>;

pub(super) struct QueueFamilies {
    depth: Family<QueueName, Gauge>,
    adds: Family<QueueName, Counter>,
    retries: Family<QueueName, Counter>,
    waited: QueueHistograms,
    worked: QueueHistograms,
    unfinished: Family<QueueName, SecondsGauge>,
    longest: Family<QueueName, SecondsGauge>,
}

fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(10e-9, 10.0, 12))
}

impl QueueFamilies {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let mut histograms = |name: &str, help: &str| {
            let new: fn() -> Histogram = histogram;
            let family = Family::new_with_constructor(new);
            registry.register(name, help, family.clone());
            family
        };
        let waited = histograms(
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested",
        );
        let worked = histograms(
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes",
        );
        Self {
            depth: add(registry, "workqueue_depth", "Current depth of workqueue"),
            adds: add(registry, "workqueue_adds", "Total number of adds handled by workqueue"),
            retries: add(registry, "workqueue_retries", "Total number of retries handled by workqueue"),
            waited,
            worked,
            unfinished: add(
                registry,
                "workqueue_unfinished_work_seconds",
                "How many seconds of work has been done that is in progress and hasn't been observed by work_duration",
            ),
            longest: add(
                registry,
                "workqueue_longest_running_processor_seconds",
                "How many seconds has the longest running processor for workqueue been running",
            ),
        }
    }

    pub(super) fn of(&self, name: &str) -> QueueMetrics {
        let label = QueueName { name: name.to_owned() };
        QueueMetrics {
            depth: self.depth.get_or_create_owned(&label),
            adds: self.adds.get_or_create_owned(&label),
            retries: self.retries.get_or_create_owned(&label),
            waited: self.waited.get_or_create_owned(&label),
            worked: self.worked.get_or_create_owned(&label),
            unfinished: self.unfinished.get_or_create_owned(&label),
            longest: self.longest.get_or_create_owned(&label),
        }
    }
}

/// Metrics of one work queue.
pub struct QueueMetrics {
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    waited: Histogram,
    worked: Histogram,
    unfinished: SecondsGauge,
    longest: SecondsGauge,
}

impl QueueMetrics {
    pub(crate) fn added(&self) {
        self.adds.inc();
    }
    pub(crate) fn retried(&self) {
        self.retries.inc();
    }
    pub(crate) fn taken(&self, waited: Duration, depth: usize) {
        self.waited.observe(waited.as_secs_f64());
        self.depth.set(i64::try_from(depth).unwrap_or(i64::MAX));
    }
    pub(crate) fn worked(&self, worked: Duration) {
        self.worked.observe(worked.as_secs_f64());
    }
    pub(crate) fn unfinished(&self, sum: Duration, longest: Duration, depth: usize) {
        self.unfinished.set(sum.as_secs_f64());
        self.longest.set(longest.as_secs_f64());
        self.depth.set(i64::try_from(depth).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use crate::metrics::Metrics;

    /// KEP-4563, Monitoring Requirements, names them.
    #[test]
    fn the_metrics_of_a_queue_have_upstreams_names() {
        let metrics = Metrics::new();
        let _queue = metrics.queue("evictionrequests");
        let text = metrics.render();
        for name in [
            "workqueue_depth",
            "workqueue_adds_total",
            "workqueue_queue_duration_seconds_count",
            "workqueue_work_duration_seconds_count",
            "workqueue_unfinished_work_seconds",
            "workqueue_retries_total",
        ] {
            let series = format!("{name}{{name=\"evictionrequests\"}} 0");
            assert!(text.lines().any(|line| line.starts_with(&series)), "{series} is not in\n{text}");
        }
    }
}
