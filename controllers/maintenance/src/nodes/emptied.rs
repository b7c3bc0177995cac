//! Nodes that the host itself has said to be empty: a cache may lag, and people power off on it.

use std::collections::HashMap;

use drydock_api::node_maintenance::PodType;
use drydock_runtime::Node;
use jiff::{SignedDuration, Timestamp};

use crate::world::WorldView;

/// How long a live read counts when a maintenance is called drained: the watch of the pods may hang, and a pod that has
/// come since would not be seen.
const FRESH: SignedDuration = SignedDuration::from_secs(10);

/// Nodes that were confirmed to be empty of pods up to a type, by name and that type, and on which no such pod has been seen
/// since.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfirmedEmpty(HashMap<(String, PodType), LiveRead>);

/// A live read that showed no pod.
#[derive(Clone, Debug)]
struct LiveRead {
    /// UID of the node.
    uid: String,
    /// When a planning learnt of it.
    at: Timestamp,
}

impl ConfirmedEmpty {
    pub(crate) fn update(&mut self, view: &WorldView<'_>) {
        let nodes = &view.world.nodes;
        let confirmed = view.world.since.confirmed.iter();
        let confirmed = confirmed.filter_map(|(name, last)| Some((nodes.get(name)?, *last)));
        let read =
            |node: &Node, last| ((node.name.clone(), last), LiveRead { uid: node.uid.clone(), at: view.now });
        self.0.extend(confirmed.map(|(node, last)| read(node, last)));
        let is_empty = |node: &str, last| view.is_draining(node) && view.pods_up_to(node, last).is_empty();
        self.0.retain(|(node, last), read| {
            is_empty(node, *last) && nodes.get(node).is_some_and(|n| n.uid == read.uid)
        });
    }

    /// Whether a live read has shown the node to have no pods up to this type, and none has been seen there since.
    pub(crate) fn contains(&self, node: &str, last: PodType) -> bool {
        self.reads(node, last).next().is_some()
    }

    /// The same, by a read of just now: no other one is needed to call the node drained.
    pub(crate) fn is_fresh(&self, node: &str, last: PodType, now: Timestamp) -> bool {
        self.reads(node, last).any(|read| now.duration_since(read.at) < FRESH)
    }

    /// The reads that have looked for all of these types.
    fn reads<'e>(&'e self, node: &str, last: PodType) -> impl Iterator<Item = &'e LiveRead> {
        let wide = PodType::ALL.into_iter().filter(move |read| last <= *read);
        wide.filter_map(|read| self.0.get(&(node.to_owned(), read)))
    }
}
