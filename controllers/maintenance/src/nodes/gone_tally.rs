//! Counts the nodes that have left the cluster while one maintenance drained them, and names as many as fit into a
//! status.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use drydock_api::node_maintenance::limits::MAX_NODES;
use drydock_api::node_maintenance::{
    NodeMaintenanceGoneNodes, NodeMaintenanceNodeStatus, NodeReference, NodeSelector,
};
use drydock_api::text::number;
use drydock_runtime::Node;

/// The drain message of a node that has gone undrained, which identifies it after a restart.
pub(super) const LEFT_UNDRAINED: &str = "The node left the cluster before it was drained";

/// The nodes of a maintenance.
#[derive(Clone, Debug, Default)]
pub(crate) struct GoneNodesTally {
    /// Names of the nodes that have gone drained; at most as many as a status holds.
    pub(super) drained: HashSet<String>,
    /// How many more have gone drained.
    pub(super) drained_unnamed: usize,
    /// Names of the nodes that have gone undrained, and how many pods they had; at most as many as a status
    /// holds.
    pub(super) undrained: BTreeMap<String, usize>,
    /// How many more have gone undrained.
    pub(super) undrained_unnamed: usize,
    /// The nodes that the maintenance selected in the last step.
    pub(super) selected: HashSet<String>,
    /// The selector of the maintenance in that step; none if it is not known.
    pub(super) selector: Option<NodeSelector>,
}

impl GoneNodesTally {
    /// How many have gone.
    pub(crate) fn counts(&self) -> NodeMaintenanceGoneNodes {
        NodeMaintenanceGoneNodes {
            drained: number(self.drained.len() + self.drained_unnamed),
            undrained: number(self.undrained.len() + self.undrained_unnamed),
        }
    }

    /// The node statuses of those that have gone undrained, as far as their names are known. `workloads` is
    /// the tally for pods of type Default.
    pub(crate) fn statuses(
        &self,
        workloads: Option<&Self>,
    ) -> impl Iterator<Item = NodeMaintenanceNodeStatus> {
        self.undrained.iter().map(move |(node, pods)| NodeMaintenanceNodeStatus {
            node_ref: NodeReference { name: node.clone() },
            drain_message: LEFT_UNDRAINED.to_owned(),
            pods_pending_evacuation: number(*pods),
            workloads_drained: workloads.is_some_and(|tally| tally.drained.contains(node)),
            ..Default::default()
        })
    }

    /// A node that has gone undrained, and how many pods it had; one with pods if there is one.
    pub(crate) fn example(&self) -> Option<(&str, usize)> {
        let with_pods = self.undrained.iter().find(|(_, pods)| **pods > 0);
        with_pods.or(self.undrained.first_key_value()).map(|(node, pods)| (node.as_str(), *pods))
    }

    /// Records which nodes the maintenance selects now.
    pub(super) fn select(&mut self, nodes: &[&Arc<Node>]) {
        let is_same =
            nodes.len() == self.selected.len() && nodes.iter().all(|n| self.selected.contains(&n.name));
        if !is_same {
            self.selected = nodes.iter().map(|node| node.name.clone()).collect();
        }
    }

    /// Counts all nodes that have gone as drained.
    pub(super) fn drain_all(&mut self) {
        for node in std::mem::take(&mut self.undrained).into_keys() {
            self.has_gone_drained(&node);
        }
        self.drained_unnamed += std::mem::take(&mut self.undrained_unnamed);
    }

    /// Counts one that has gone drained.
    pub(super) fn has_gone_drained(&mut self, node: &str) {
        if self.drained.len() < MAX_NODES {
            self.drained.insert(node.to_owned());
        } else {
            self.drained_unnamed += 1;
        }
    }

    /// Counts one that has gone undrained, with `pods` pods.
    pub(super) fn has_gone_undrained(&mut self, node: &str, pods: usize) {
        if self.undrained.len() < MAX_NODES {
            self.undrained.insert(node.to_owned(), pods);
        } else {
            self.undrained_unnamed += 1;
        }
    }
}
