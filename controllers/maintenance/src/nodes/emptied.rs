//! Nodes that the host itself has said to be empty: a cache may lag, and people power off on it.

use std::collections::HashMap;

use drydock_runtime::Node;
use jiff::{SignedDuration, Timestamp};

use crate::world::View;

/// How long a live read counts when a maintenance is called drained: the watch of the pods may hang, and a pod that has
/// come since would not be seen.
const FRESH: SignedDuration = SignedDuration::from_secs(10);

/// Nodes that were confirmed to be empty, by name, and on which no counted pod has been seen since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Emptied(HashMap<String, Read>);

/// A live read that showed no pod.
#[derive(Clone, Debug)]
struct Read {
    /// UID of the node.
    uid: String,
    /// When a planning learnt of it.
    at: Timestamp,
}

impl Emptied {
    pub(crate) fn look(&mut self, view: &View<'_>) {
        let nodes = &view.world.nodes;
        let confirmed = view.world.since.confirmed.iter().filter_map(|name| nodes.get(name));
        let read = |node: &Node| (node.name.clone(), Read { uid: node.uid.clone(), at: view.now });
        self.0.extend(confirmed.map(|node| read(node)));
        let is_empty = |node: &str| view.is_draining(node) && view.pods_on(node).is_empty();
        self.0.retain(|node, read| is_empty(node) && nodes.get(node).is_some_and(|n| n.uid == read.uid));
    }

    /// Whether a live read has shown the node to be empty, and nothing has been seen there since.
    pub(crate) fn contains(&self, node: &str) -> bool {
        self.0.contains_key(node)
    }

    /// The same, by a read of just now: no other one is needed to call the node drained.
    pub(crate) fn is_fresh(&self, node: &str, now: Timestamp) -> bool {
        self.0.get(node).is_some_and(|read| now.duration_since(read.at) < FRESH)
    }
}
