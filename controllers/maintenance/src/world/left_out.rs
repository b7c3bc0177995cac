//! Nodes that the status of their maintenance has no room for. The plan leaves them alone: one whose targets cannot be stored
//! is never drained, and a plan that waited for it would stand still on all nodes.

use std::collections::{HashMap, HashSet};

use drydock_api::node_maintenance::NodeMaintenance;

use crate::world::World;

/// The nodes without room, by UID of the maintenance.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftOut(HashMap<String, NodesLeftOut>);

#[derive(Clone, Debug)]
struct NodesLeftOut {
    generation: i64,
    /// How many nodes it selected.
    selected: usize,
    /// Names of those without room.
    nodes: HashSet<String>,
}

impl LeftOut {
    /// Whether a node is left out of a maintenance that selects so many. All are tried again when it is edited, or selects
    /// fewer.
    pub(crate) fn is(&self, maintenance: &NodeMaintenance, selected: usize, node: &str) -> bool {
        self.of(maintenance, selected).is_some_and(|known| known.nodes.contains(node))
    }

    /// Notes further nodes for which there was no room.
    pub(crate) fn note(&mut self, maintenance: &NodeMaintenance, selected: usize, nodes: Vec<String>) {
        let uid = &maintenance.metadata.uid;
        if self.of(maintenance, selected).is_none() {
            self.0.remove(uid);
        }
        if nodes.is_empty() {
            return;
        }
        let generation = maintenance.metadata.generation;
        let new = || NodesLeftOut { generation, selected, nodes: HashSet::new() };
        let known = self.0.entry(uid.clone()).or_insert_with(new);
        known.selected = selected;
        known.nodes.extend(nodes);
    }

    /// Forgets maintenances that are gone.
    pub(crate) fn update(&mut self, world: &World) {
        let is_there = |uid: &String| world.maintenances.iter().any(|m| m.metadata.uid == *uid);
        self.0.retain(|uid, _| is_there(uid));
    }

    fn of(&self, maintenance: &NodeMaintenance, selected: usize) -> Option<&NodesLeftOut> {
        let known = self.0.get(&maintenance.metadata.uid)?;
        let is_same = known.generation == maintenance.metadata.generation && known.selected <= selected;
        is_same.then_some(known)
    }
}
