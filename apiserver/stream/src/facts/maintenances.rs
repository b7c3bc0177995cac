//! The parts of a maintenance that are kept: its message, and its part of each node's message.

use std::collections::BTreeMap;
use std::sync::Arc;

use drydock_api::metav1::is_condition_true;
use drydock_api::node_maintenance::{DRAINED, NodeMaintenance};
use drydock_proto::status::v1alpha1::{Maintenance, NodeProgress};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::State;
use crate::filter::EntityAttributes;
use crate::messages::maintenance::{is_draining, message};
use crate::messages::{fields, is_name, node, timestamp};
use crate::rate::{DrainRate, RateSamples};

/// Creation time and name. A node's message lists the maintenances in this order.
pub(super) type Age = (Timestamp, Arc<str>);

pub(super) struct KnownMaintenance {
    pub(super) age: Age,
    /// By node.
    pub(super) progress: BTreeMap<Arc<str>, Arc<NodeProgress>>,
    message: Maintenance,
    attributes: EntityAttributes,
    samples: RateSamples,
    drain_rate: DrainRate,
    is_going: bool,
}

impl KnownMaintenance {
    /// Takes over the samples of `before`, if that is an earlier state of the same object.
    pub(super) fn new(object: &NodeMaintenance, before: Option<&Self>, now: Timestamp) -> Self {
        let created = object.metadata.creation_timestamp.unwrap_or(Timestamp::MIN);
        let message = message(object, DrainRate::default());
        let nodes = object.status.node_statuses.iter().filter(|status| is_name(&status.node_ref.name));
        let progress = nodes.map(|status| {
            let name = status.node_ref.name.as_str().into();
            (name, Arc::new(node::progress(object, status)))
        });
        let mut samples = before
            .filter(|b| b.message.uid == message.uid)
            .map_or_else(RateSamples::default, |b| b.samples.clone());
        samples.record(now, object.status.outcomes.evicted);
        let progress: BTreeMap<_, _> = progress.collect();
        let mut known = Self {
            age: (created, object.metadata.name.as_str().into()),
            attributes: attributes(object, &progress),
            progress,
            message,
            samples,
            drain_rate: DrainRate::default(),
            is_going: is_draining(object) && !is_condition_true(&object.status.conditions, DRAINED),
        };
        known.update_drain_rate(now);
        known
    }

    /// Computes the rate again.
    pub(super) fn update_drain_rate(&mut self, now: Timestamp) {
        let left = self.message.pods_pending.saturating_add(self.message.pods_evicting);
        let leaves = (left > 0 && self.message.blocked < left).then_some(left);
        self.drain_rate =
            if self.is_going { self.samples.drain_rate(now, leaves) } else { DrainRate::default() };
        self.message.evictions_per_minute = self.drain_rate.evictions_per_minute;
        self.message.estimated_finish_time = self.drain_rate.finish_time.map(timestamp);
    }

    pub(super) fn has_rate(&self) -> bool {
        self.drain_rate.evictions_per_minute.is_some()
    }

    pub(super) fn drain_rate(&self) -> DrainRate {
        self.drain_rate
    }

    pub(super) fn state(&self) -> State {
        State { attributes: self.attributes.clone(), event: fields::updated(&self.message) }
    }
}

fn attributes(
    object: &NodeMaintenance,
    progress: &BTreeMap<Arc<str>, Arc<NodeProgress>>,
) -> EntityAttributes {
    EntityAttributes {
        nodes: progress.keys().map(|name| name.to_string()).collect(),
        maintenances: Vec::new(),
        labels: labels(&object.metadata.labels),
        is_blocked: progress.values().any(|node| node.blocked > 0),
    }
}

/// Returns labels in the form that selectors match.
pub(super) fn labels(labels: &BTreeMap<String, String>) -> Option<Map<String, Value>> {
    let pair = |(key, value): (&String, &String)| (key.clone(), Value::from(value.as_str()));
    (!labels.is_empty()).then(|| labels.iter().map(pair).collect())
}
