//! Maintenances whose status needs no look: those that are over, and Idle ones for a while. A status of all nodes is more than
//! a megabyte, and the pods of a cluster come and go all the time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use drydock_api::node_maintenance::{NodeMaintenance, Stage};
use jiff::Timestamp;

use crate::world::WorldView;

/// How long an Idle maintenance rests for each of its nodes: its status is written at most so often that this makes no more
/// than about 25 KB a second.
const REST_PER_NODE: Duration = Duration::from_millis(15);
/// The longest rest of an Idle maintenance.
const MAX_REST: Duration = Duration::from_secs(60);

/// Maintenances, by UID, whose status was as it should be, and when that was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settled(HashMap<String, (Arc<NodeMaintenance>, Timestamp)>);

impl Settled {
    /// Forgets maintenances that are gone.
    pub(crate) fn update(&mut self, view: &WorldView<'_>) {
        let uids: HashSet<&str> = view.world.maintenances.iter().map(|m| m.metadata.uid.as_str()).collect();
        self.0.retain(|uid, _| uids.contains(uid.as_str()));
    }

    /// The status of this maintenance is as it should be.
    pub(crate) fn note(&mut self, maintenance: &Arc<NodeMaintenance>, now: Timestamp) {
        let is_over = maintenance.spec.stage == Stage::Complete && !maintenance.has_finalizer();
        if is_over || maintenance.spec.stage == Stage::Idle {
            self.0.insert(maintenance.metadata.uid.clone(), (maintenance.clone(), now));
        }
    }

    /// Until when a maintenance with so many nodes need not be looked at, unless it changes itself.
    pub(crate) fn rests_until(
        &self,
        maintenance: &Arc<NodeMaintenance>,
        nodes: usize,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let (seen, at) = self.0.get(&maintenance.metadata.uid)?;
        if !Arc::ptr_eq(seen, maintenance) {
            return None;
        }
        if maintenance.spec.stage == Stage::Complete {
            return Some(Timestamp::MAX);
        }
        let rest = REST_PER_NODE.saturating_mul(u32::try_from(nodes).unwrap_or(u32::MAX)).min(MAX_REST);
        at.checked_add(rest).ok().filter(|until| now < *until)
    }
}
