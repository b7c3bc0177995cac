//! The metrics of the stream, for all hubs together.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The metrics of the stream.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    subscribers: Gauge,
    caught_up: Gauge,
    messages: Counter,
    views: Gauge,
    view_entities: Gauge,
    entity_bytes: Gauge,
}

/// What a hub holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Views.
    pub views: usize,
    /// Entities over all views.
    pub view_entities: usize,
    /// Bytes of all entities and kept removals, which views share.
    pub entity_bytes: usize,
}

/// Raises a gauge by one until it is dropped.
pub struct Counted(Gauge);

impl Metrics {
    /// Registers the metrics; the encoder appends `_total` to a counter's name.
    pub fn register(&self, registry: &mut Registry) {
        let mut gauge = |name: &str, what: &str, gauge: &Gauge| registry.register(name, what, gauge.clone());
        gauge("drydock_status_stream_subscribers", "Streams that are open", &self.subscribers);
        let what = "Streams that were sent everything and wait for changes; others are behind, or pause between updates";
        gauge("drydock_status_stream_caught_up_subscribers", what, &self.caught_up);
        gauge("drydock_status_stream_views", "Different filters that streams follow", &self.views);
        let what = "Entities that these filters select, each once for each filter";
        gauge("drydock_status_stream_view_entities", what, &self.view_entities);
        let what = "Bytes of all entities and remembered removals, each once";
        gauge("drydock_status_stream_entity_bytes", what, &self.entity_bytes);
        registry.register(
            "drydock_status_stream_messages",
            "Messages sent by streams",
            self.messages.clone(),
        );
    }

    /// Counts an open stream.
    pub(crate) fn opened(&self) -> Counted {
        counted(&self.subscribers)
    }

    /// Counts a stream that waits for changes.
    pub(crate) fn caught_up(&self) -> Counted {
        counted(&self.caught_up)
    }

    /// Counts a message that a stream sends.
    pub(crate) fn sent(&self) {
        self.messages.inc();
    }

    /// Sets what the hub holds now.
    pub(crate) fn holds(&self, held: Held) {
        let set = |gauge: &Gauge, number| gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
        set(&self.views, held.views);
        set(&self.view_entities, held.view_entities);
        set(&self.entity_bytes, held.entity_bytes);
    }
}

fn counted(gauge: &Gauge) -> Counted {
    gauge.inc();
    Counted(gauge.clone())
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
