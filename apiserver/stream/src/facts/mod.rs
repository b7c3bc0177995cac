//! The current maintenances and evictions, and the entities that a change of one of them changes. Does no I/O: objects
//! and the time go in, the new states of entities come out.
//!
//! ```text
//!   NodeMaintenance ──> maintenance, and each node whose part of its status has changed
//!   EvictionRequest ──> eviction, and the node of its pod (if a maintenance has a status of the node)
//! ```

mod maintenances;
mod nodes;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use drydock_api::eviction_request::EvictionRequest;
use drydock_api::node_maintenance::NodeMaintenance;
use drydock_proto::status::v1alpha1::{EvictionState, Node};
use jiff::Timestamp;

use crate::filter::{Entity, EntityAttributes};
use crate::messages::eviction::message;
use crate::messages::fields;
use crate::rate::DrainRate;
use maintenances::{KnownMaintenance, labels};
use nodes::{KnownEviction, KnownNodes};

/// An entity that may have changed.
#[derive(Debug)]
pub struct Update {
    /// The kind.
    pub entity: Entity,
    /// The key.
    pub key: Arc<str>,
    /// The current state; `None` if it is gone.
    pub state: Option<State>,
}

/// An entity as subscribers see it.
#[derive(Debug)]
pub struct State {
    /// The attributes that filters match.
    pub attributes: EntityAttributes,
    /// The field `updated` of the response, encoded.
    pub event: Bytes,
}

/// All maintenances, evictions and nodes.
pub struct Facts {
    heartbeat_deadline: Duration,
    maintenances: HashMap<Arc<str>, KnownMaintenance>,
    evictions: HashMap<Arc<str>, KnownEviction>,
    nodes: KnownNodes,
}

impl Facts {
    /// Creates it empty. An interceptor that is silent for `heartbeat_deadline` is passed over.
    pub fn new(heartbeat_deadline: Duration) -> Self {
        let (maintenances, evictions, nodes) = Default::default();
        Self { heartbeat_deadline, maintenances, evictions, nodes }
    }

    /// Sets or, without an object, removes a maintenance. The first update is that of the maintenance.
    pub fn set_maintenance(
        &mut self,
        key: &Arc<str>,
        object: Option<&NodeMaintenance>,
        now: Timestamp,
    ) -> Vec<Update> {
        let before = self.maintenances.remove(key);
        let after = object.map(|object| KnownMaintenance::new(object, before.as_ref(), now));
        let touched = self.nodes.set_progress(before.as_ref(), after.as_ref());
        let state = after.as_ref().map(KnownMaintenance::state);
        self.maintenances.extend(after.map(|after| (key.clone(), after)));
        let own = Update { entity: Entity::Maintenance, key: key.clone(), state };
        std::iter::once(own).chain(touched.iter().map(|node| self.nodes.update(node))).collect()
    }

    /// Sets or, without a request, removes an eviction. The first update is that of the eviction.
    pub fn set_eviction(&mut self, key: &Arc<str>, request: Option<&EvictionRequest>) -> Vec<Update> {
        let before = self.evictions.remove(key);
        let after = request.map(KnownEviction::new);
        let touched = self.nodes.set_eviction(before.as_ref(), after.as_ref());
        self.evictions.extend(after.map(|after| (key.clone(), after)));
        let state = request.map(|request| eviction_state(request, self.heartbeat_deadline));
        let own = Update { entity: Entity::Eviction, key: key.clone(), state };
        std::iter::once(own).chain(touched.iter().map(|node| self.nodes.update(node))).collect()
    }

    /// Returns a node's message; `None` if no maintenance has a status of the node.
    pub fn node(&self, name: &str) -> Option<Node> {
        self.nodes.message(name)
    }

    /// Returns all nodes of which a maintenance has a status.
    pub fn all_nodes(&self) -> Vec<Update> {
        self.nodes.all()
    }

    /// Returns the maintenances that have a rate, with their rate as of `now`.
    pub fn rates(&mut self, now: Timestamp) -> Vec<Update> {
        let rated = self.maintenances.iter_mut().filter(|(_, known)| known.has_rate());
        let update = |(key, known): (&Arc<str>, &mut KnownMaintenance)| {
            known.update_drain_rate(now);
            Update { entity: Entity::Maintenance, key: key.clone(), state: Some(known.state()) }
        };
        rated.map(update).collect()
    }

    /// Returns the drain rate of a maintenance that was sent last.
    pub fn drain_rate(&self, maintenance: &str) -> DrainRate {
        self.maintenances.get(maintenance).map(KnownMaintenance::drain_rate).unwrap_or_default()
    }
}

/// Returns the eviction as subscribers see it.
fn eviction_state(request: &EvictionRequest, heartbeat_deadline: Duration) -> State {
    let message = message(request, heartbeat_deadline);
    let attributes = EntityAttributes {
        nodes: Some(message.node.clone()).filter(|node| !node.is_empty()).into_iter().collect(),
        maintenances: message.maintenances.iter().map(|maintenance| maintenance.name.clone()).collect(),
        labels: labels(&request.metadata.labels),
        is_blocked: message.state() == EvictionState::Blocked,
    };
    State { attributes, event: fields::updated(&message) }
}

#[cfg(test)]
mod tests;
