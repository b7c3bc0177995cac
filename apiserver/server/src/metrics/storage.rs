//! The figures of the watch caches, by kube-apiserver's names where it has the same (k8s.io/apiserver
//! pkg/storage/cacher/metrics, pkg/storage/etcd3/metrics). They are read at each scrape: nothing is counted for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use drydock_machinery::kind::Names;
use drydock_storage::cache::Metrics as Cache;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The caches of all kinds.
#[derive(Debug, Default)]
pub(super) struct Caches(Vec<(CacheLabels, Arc<Cache>)>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CacheLabels {
    group: &'static str,
    resource: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    group: &'static str,
    resource: &'static str,
    reason: &'static str,
}

/// A figure of a cache.
type CacheFigure = fn(&Cache) -> &AtomicU64;

/// Figures that rise and fall: name, help text and value.
const GAUGES: [(&str, &str, CacheFigure); 7] = [
    ("apiserver_resource_objects", "Objects that are stored", |of| &of.objects),
    ("apiserver_watch_cache_resource_version", "Revision of the cache", |of| &of.revision),
    ("drydock_watch_cache_lag_revisions", "Revisions that the cache was behind when last looked at", |of| {
        &of.lag
    }),
    ("drydock_watch_cache_ring_events", "Changes that are kept for watches", |of| &of.ring_events),
    ("drydock_watch_cache_ring_bytes", "Bytes that are kept for watches", |of| &of.ring_bytes),
    ("drydock_watch_cache_watchers", "Watches that read from the cache", |of| &of.watchers),
    ("drydock_watch_cache_damaged_objects", "Objects that cannot be read", |of| &of.damaged),
];

/// Figures that only rise: name (the encoder appends `_total`), help text and value.
const COUNTERS: [(&str, &str, CacheFigure); 4] = [
    ("apiserver_watch_cache_initializations", "Times that the cache was filled", |of| &of.fills),
    ("apiserver_terminated_watchers", "Watches that were ended as their history was gone", |of| {
        &of.expired_watchers
    }),
    ("drydock_watch_cache_revision_checks", "Progress requests sent to etcd", |of| &of.revision_checks),
    (
        "drydock_watch_cache_reads_fallen_through",
        "Reads served by the backend because the watch cache was behind",
        |of| &of.answered_by_store,
    ),
];

/// Reasons for which a write is refused before it has any effect.
const REASONS: [(&str, CacheFigure); 3] = [
    ("queue-full", |of| &of.refused_busy),
    ("no-space", |of| &of.refused_full),
    ("closed", |of| &of.refused_closed),
];

impl Caches {
    /// The cache of one more kind.
    pub fn add(&mut self, names: &Names, cache: Arc<Cache>) {
        self.0.push((CacheLabels { group: names.group, resource: names.plural }, cache));
    }
}

impl Collector for Caches {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, what, figure) in GAUGES {
            let mut metric = encoder.encode_descriptor(name, what, None, MetricType::Gauge)?;
            for (of, cache) in &self.0 {
                let number = i64::try_from(figure(cache).load(Relaxed)).unwrap_or(i64::MAX);
                ConstGauge::new(number).encode(metric.encode_family(of)?)?;
            }
        }
        for (name, what, figure) in COUNTERS {
            let mut metric = encoder.encode_descriptor(name, what, None, MetricType::Counter)?;
            for (of, cache) in &self.0 {
                ConstCounter::new(figure(cache).load(Relaxed)).encode(metric.encode_family(of)?)?;
            }
        }
        let what = "Writes refused, by reason: queue full (429), no space (507), store closed (503)";
        let mut metric =
            encoder.encode_descriptor("drydock_storage_refused_writes", what, None, MetricType::Counter)?;
        for (CacheLabels { group, resource }, cache) in &self.0 {
            for (reason, figure) in REASONS {
                let of = Refused { group, resource, reason };
                ConstCounter::new(figure(cache).load(Relaxed)).encode(metric.encode_family(&of)?)?;
            }
        }
        Ok(())
    }
}
