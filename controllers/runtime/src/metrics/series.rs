//! Series that each scrape calculates anew. If there are too many, each namespace gets its share; and all
//! series of a scrape are of one moment.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// Most series of one scrape whose labels are names that tenants choose. That is about 4 MB, and 20 MB with the longest
/// names.
pub const MAX_SERIES: usize = 20_000;

/// Calls `show` with each item, which is given with its namespace. `show` returns how many series the item
/// took. The next item is always one of the namespace whose items have taken the fewest series so far: if the
/// series run out, every namespace has had about as many.
pub fn each<N: Ord, T>(items: impl IntoIterator<Item = (N, T)>, mut show: impl FnMut(T) -> usize) {
    let mut waiting = BTreeMap::<N, Vec<T>>::new();
    for (namespace, item) in items {
        waiting.entry(namespace).or_default().push(item);
    }
    let mut queues = waiting.into_values().map(Vec::into_iter).collect::<Vec<_>>();
    let mut least = (0..queues.len()).map(|queue| Reverse((0, queue))).collect::<BinaryHeap<_>>();
    while let Some(Reverse((taken, queue))) = least.pop() {
        if let Some(item) = queues[queue].next() {
            least.push(Reverse((taken + show(item), queue)));
        }
    }
}

/// A metric that is replaced as a whole: a family that is cleared and filled again would lack series
/// meanwhile. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SnapshotMetric<M>(Arc<Mutex<Arc<M>>>);

impl<M> SnapshotMetric<M> {
    /// Shows this metric from now on.
    pub fn replace(&self, metric: M) {
        *self.0.lock() = Arc::new(metric);
    }

    /// Returns the metric that is shown.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_with_the_least_is_next() {
        let items = (0..6).map(|n| ("many", n)).chain([("one", 10), ("two", 20), ("two", 21)]);
        let mut shown = Vec::new();
        each(items, |item| {
            shown.push(item);
            if item == 0 { 3 } else { 1 }
        });
        assert_eq!(shown, [0, 10, 20, 21, 1, 2, 3, 4, 5]);
    }
}
