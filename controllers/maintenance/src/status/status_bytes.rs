//! The bytes of the node statuses of all maintenances together. The API server bounds the number of maintenances, and what their
//! authors write; what this controller writes into them it bounds itself: 5,000 statuses of the most bytes would take 7 GB in
//! each cache.

use std::collections::HashMap;
use std::sync::Arc;

use drydock_api::node_maintenance::limits::{MAX_ALL_STATUS_BYTES, MIN_NODE_STATUSES_BYTES};
use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStatus};
use drydock_machinery::object::json_len;

use crate::world::World;

/// What the maintenances take, each counted once for each of its versions.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusBytes {
    stored: HashMap<String, (Arc<NodeMaintenance>, usize)>,
    /// With what is about to be written.
    all: usize,
}

impl StatusBytes {
    /// Counts what is stored; returns whether a maintenance has gone, and left room.
    pub(crate) fn update(&mut self, world: &World) -> bool {
        let mut before = std::mem::take(&mut self.stored);
        for maintenance in &world.maintenances {
            let uid = &maintenance.metadata.uid;
            let known = before.remove(uid).filter(|(seen, _)| Arc::ptr_eq(seen, maintenance));
            let counted = || (maintenance.clone(), json_len(&maintenance.status.node_statuses));
            self.stored.insert(uid.clone(), known.unwrap_or_else(counted));
        }
        self.all = self.stored.values().map(|(_, bytes)| bytes).sum();
        !before.is_empty()
    }

    /// The bytes that the node statuses of a maintenance may have: what the others leave, and in any case a few.
    pub(crate) fn room(&self, maintenance: &NodeMaintenance) -> usize {
        let others = self.all.saturating_sub(self.of(maintenance));
        MAX_ALL_STATUS_BYTES.saturating_sub(others).max(MIN_NODE_STATUSES_BYTES)
    }

    /// Records that a status is about to be written.
    pub(crate) fn note(&mut self, maintenance: &NodeMaintenance, status: &NodeMaintenanceStatus) {
        self.all = self.all.saturating_sub(self.of(maintenance)) + json_len(&status.node_statuses);
    }

    fn of(&self, maintenance: &NodeMaintenance) -> usize {
        self.stored.get(&maintenance.metadata.uid).map_or(0, |(_, bytes)| *bytes)
    }
}

#[cfg(test)]
mod tests {
    use drydock_api::node_maintenance::{NodeMaintenanceNodeStatus, NodeReference};

    use super::*;

    fn with(uid: &str, bytes: usize) -> Arc<NodeMaintenance> {
        let mut maintenance = NodeMaintenance::default();
        maintenance.metadata.uid = uid.to_owned();
        let node_ref = NodeReference { name: "n".repeat(bytes) };
        maintenance.status.node_statuses =
            vec![NodeMaintenanceNodeStatus { node_ref, ..NodeMaintenanceNodeStatus::default() }];
        Arc::new(maintenance)
    }

    #[test]
    fn each_has_what_the_others_leave_and_what_is_about_to_be_written_counts() {
        let [small, large] = [with("small", 10), with("large", MAX_ALL_STATUS_BYTES - 1_000_000)];
        let mut world = World { maintenances: vec![small.clone(), large.clone()], ..World::default() };
        let mut bytes = StatusBytes::default();
        assert!(!bytes.update(&world));
        assert!((990_000..1_000_000).contains(&bytes.room(&small)), "{}", bytes.room(&small));
        assert!(bytes.room(&large) > MAX_ALL_STATUS_BYTES - 1000);
        bytes.note(&large, &with("large", MAX_ALL_STATUS_BYTES).status);
        assert_eq!(bytes.room(&small), MIN_NODE_STATUSES_BYTES);
        world.maintenances.pop();
        assert!(bytes.update(&world), "one that is gone leaves room");
        assert!(!bytes.update(&world));
    }
}
