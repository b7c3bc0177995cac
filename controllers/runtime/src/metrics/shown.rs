//! Series that are worked out anew as a whole: a scrape shows all of one time.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// A metric that is replaced, and never changed: a family that is cleared and filled again lacks series meanwhile. Clones
/// share it.
#[derive(Clone, Debug, Default)]
pub struct SnapshotMetric<M>(Arc<Mutex<Arc<M>>>);

impl<M> SnapshotMetric<M> {
    /// Shows this from now on.
    pub fn replace(&self, metric: M) {
        *self.0.lock() = Arc::new(metric);
    }

    /// What is shown.
    pub fn get(&self) -> Arc<M> {
        self.0.lock().clone()
    }
}

impl<M: EncodeMetric> EncodeMetric for SnapshotMetric<M> {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.get().encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        self.get().metric_type()
    }
}
