//! Nodes: the progress of each maintenance on them, and counts of the evictions of their pods.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_proto::status::v1alpha1::{EvictionCounts, EvictionState, Node, NodeProgress};
use jiff::Timestamp;

use super::maintenances::{Age, KnownMaintenance};
use super::{State, Update};
use crate::filter::{Entity, EntityAttributes};
use crate::messages::eviction::{expected_finish_time, state_of};
use crate::messages::{fields, node};

/// The parts of an eviction that its node's message counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownEviction {
    /// Empty while the node is not known.
    pub(super) node: Arc<str>,
    pub(super) state: EvictionState,
    pub(super) expected_finish_time: Option<Timestamp>,
}

impl KnownEviction {
    pub(super) fn new(request: &EvictionRequest) -> Self {
        Self {
            node: request.status.pod_info.as_ref().map_or("", |pod| pod.node_name.as_str()).into(),
            state: state_of(request),
            expected_finish_time: expected_finish_time(request),
        }
    }
}

#[derive(Default)]
pub(super) struct KnownNodes(HashMap<Arc<str>, KnownNode>);

#[derive(Default)]
struct KnownNode {
    progress: BTreeMap<Age, Arc<NodeProgress>>,
    evictions: NodeEvictions,
}

/// Counts of the evictions on a node.
#[derive(Clone, Debug, Default, PartialEq)]
struct NodeEvictions {
    by_state: EvictionCounts,
    /// The number of interceptors that expect to be done at each time.
    expected: BTreeMap<Timestamp, usize>,
}

impl KnownNodes {
    /// Replaces the progress of a maintenance on its nodes; returns the nodes whose message may have changed.
    pub(super) fn set_progress(
        &mut self,
        before: Option<&KnownMaintenance>,
        after: Option<&KnownMaintenance>,
    ) -> BTreeSet<Arc<str>> {
        let same = |one: Option<&KnownMaintenance>, name: &Arc<str>, said: &Arc<NodeProgress>| {
            one.zip(before).is_some_and(|(a, b)| a.age == b.age)
                && one.and_then(|o| o.progress.get(name)) == Some(said)
        };
        let mut touched = BTreeSet::new();
        for (name, said) in before.iter().flat_map(|known| &known.progress) {
            if !same(after, name, said) {
                touched.insert(name.clone());
                self.change(name, |node| drop(before.and_then(|known| node.progress.remove(&known.age))));
            }
        }
        for (name, said) in after.iter().flat_map(|known| &known.progress) {
            if !touched.contains(name) && before.is_some_and(|known| known.progress.contains_key(name)) {
                continue;
            }
            touched.insert(name.clone());
            self.change(name, |node| {
                drop(after.map(|known| node.progress.insert(known.age.clone(), said.clone())))
            });
        }
        touched
    }

    /// Replaces an eviction; returns the nodes whose message may have changed.
    pub(super) fn set_eviction(
        &mut self,
        before: Option<&KnownEviction>,
        after: Option<&KnownEviction>,
    ) -> BTreeSet<Arc<str>> {
        if before == after {
            return BTreeSet::new();
        }
        if let Some(known) = before {
            self.change(&known.node, |node| node.evictions.remove(known.state, known.expected_finish_time));
        }
        if let Some(known) = after {
            self.change(&known.node, |node| node.evictions.add(known.state, known.expected_finish_time));
        }
        let names = before.iter().chain(&after).map(|known| known.node.clone());
        names.filter(|name| self.0.get(name).is_some_and(|node| !node.progress.is_empty())).collect()
    }

    /// Changes a node, and removes it once it is empty. An empty name stands for no node.
    fn change(&mut self, name: &Arc<str>, change: impl FnOnce(&mut KnownNode)) {
        if name.is_empty() {
            return;
        }
        let node = self.0.entry(name.clone()).or_default();
        change(node);
        if node.progress.is_empty() && node.evictions == NodeEvictions::default() {
            self.0.remove(name);
        }
    }

    /// Returns a node's current state.
    pub(super) fn update(&self, name: &Arc<str>) -> Update {
        let shown = self.0.get(name).filter(|node| !node.progress.is_empty());
        Update { entity: Entity::Node, key: name.clone(), state: shown.map(|node| node.state(name)) }
    }

    /// Returns a node's message; `None` if no maintenance has a status of the node.
    pub(super) fn message(&self, name: &str) -> Option<Node> {
        self.0.get(name).filter(|node| !node.progress.is_empty()).map(|node| node.message(name))
    }

    /// Returns all nodes of which a maintenance has a status.
    pub(super) fn all(&self) -> Vec<Update> {
        let shown = self.0.iter().filter(|(_, node)| !node.progress.is_empty());
        shown.map(|(name, _)| self.update(name)).collect()
    }
}

impl KnownNode {
    fn state(&self, name: &str) -> State {
        let said = || self.progress.values();
        let attributes = EntityAttributes {
            nodes: vec![name.to_owned()],
            maintenances: said().map(|progress| progress.maintenance.clone()).collect(),
            labels: None,
            is_blocked: self.evictions.by_state.blocked > 0 || said().any(|progress| progress.blocked > 0),
        };
        State { attributes, event: fields::updated(&self.message(name)) }
    }

    fn message(&self, name: &str) -> Node {
        let progress = self.progress.values().map(Arc::as_ref);
        node::message(name, progress, self.evictions.by_state, self.evictions.last_expected())
    }
}

impl NodeEvictions {
    fn add(&mut self, state: EvictionState, expected: Option<Timestamp>) {
        if let Some(count) = self.count(state) {
            *count += 1;
        }
        if let Some(time) = expected {
            *self.expected.entry(time).or_default() += 1;
        }
    }

    fn remove(&mut self, state: EvictionState, expected: Option<Timestamp>) {
        if let Some(count) = self.count(state) {
            *count -= 1;
        }
        if let Some(time) = expected
            && let Some(count) = self.expected.get_mut(&time)
        {
            *count -= 1;
            if *count == 0 {
                self.expected.remove(&time);
            }
        }
    }

    /// The count of a state; `None` for requests that have ended.
    fn count(&mut self, state: EvictionState) -> Option<&mut i32> {
        match state {
            EvictionState::Pending => Some(&mut self.by_state.pending),
            EvictionState::Intercepting => Some(&mut self.by_state.intercepting),
            EvictionState::Evicting => Some(&mut self.by_state.evicting),
            EvictionState::Blocked => Some(&mut self.by_state.blocked),
            EvictionState::Unspecified | EvictionState::Evicted | EvictionState::Canceled => None,
        }
    }

    /// Returns when the last interceptor expects to be done.
    fn last_expected(&self) -> Option<Timestamp> {
        self.expected.last_key_value().map(|(time, _)| *time)
    }
}
