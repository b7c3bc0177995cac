//! The turns that interceptors of a pod have had in requests that others ended, while a maintenance drains the pod's node. A
//! pod that is asked for again has only the turns that it had not had: otherwise whoever may delete a request could begin
//! anew before each last turn.
//!
//! ```text
//!   a request ends ──▶ NotedTurns, at once      a request may be made anew before anything is written
//!                  ──▶ status.podTurns of a NodeMaintenance, by the maintenance controller: outlasts a restart
//!   the next request: status.earlierTurns, with its first turn
//! ```
//!
//! None of these may be written by whoever may only edit pods and requests. When no maintenance drains the node any more,
//! all begins anew: the next drain is another one.

use std::collections::HashMap;
use std::sync::Arc;

use drydock_api::eviction_request::transitions::turns_had;
use drydock_api::eviction_request::{EarlierTurns, EvictionRequest};
use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage};
use drydock_runtime::{ControllerContext, HostCaches, ObjectChange, Pod};
use jiff::Timestamp;
use parking_lot::Mutex;

/// Most pods whose turns are noted: an entry has 1 KiB at most. Of others only the status of the maintenance tells.
const MAX_PODS: usize = 20_000;

/// The turns that are noted, by UID of the pod. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct PastTurns(Arc<Mutex<HashMap<String, NotedTurns>>>);

#[derive(Debug, Default)]
struct NotedTurns {
    turns: EarlierTurns,
    /// UIDs of the maintenances that drained the pod's node.
    drains: Vec<String>,
}

impl PastTurns {
    /// Notes turns from now on. A stand-by follows too: requests end while nobody holds the lease. It is called before the
    /// controller runs, so that the next request for a pod finds what the one before it has left.
    pub fn follow(context: &ControllerContext) -> Self {
        let turns = Self::default();
        let (noted, caches, clock) = (turns.clone(), context.caches.clone(), context.clock);
        context.caches.requests.subscribe(move |change| noted.note(change, &caches, clock.now()));
        let noted = turns.clone();
        context.caches.pods.subscribe(move |change: &ObjectChange<Pod>| {
            if let (Some(gone), None) = (&change.old, &change.new) {
                noted.forget(&gone.uid);
            }
        });
        turns
    }

    /// Takes in a change of a request: one that others end leaves its turns behind. Our own requester withdraws only when
    /// no maintenance drains the node.
    fn note(&self, change: &ObjectChange<EvictionRequest>, caches: &HostCaches, now: Timestamp) {
        let Some(old) = change.old.as_ref().filter(|old| !old.is_finished()) else { return };
        let same = change.new.as_ref().filter(|new| new.metadata.uid == old.metadata.uid);
        let pod = &old.metadata.name;
        if same.is_some_and(|new| !new.is_finished()) || caches.pods.by_uid(pod).is_none() {
            return;
        }
        let turns = turns_had(old, now);
        if turns.is_empty() {
            return;
        }
        let node = old.status.pod_info.as_ref().map_or("", |pod| pod.node_name.as_str());
        let drains = drains_of(node, caches);
        let mut all = self.0.lock();
        if !drains.is_empty() && (all.len() < MAX_PODS || all.contains_key(pod)) {
            let noted = all.entry(pod.clone()).or_default();
            noted.turns.merge(&turns);
            noted.drains = drains;
        }
    }

    /// Forgets a pod that is gone.
    fn forget(&self, pod: &str) {
        self.0.lock().remove(pod);
    }

    /// The turns that the interceptors of a pod have had in earlier requests.
    pub(crate) fn of(&self, pod: &str, caches: &HostCaches) -> Option<EarlierTurns> {
        let drains: Vec<_> = caches.maintenances.all().into_iter().filter(|m| is_draining(m)).collect();
        let mut turns = EarlierTurns::default();
        drains.iter().filter_map(|drain| drain.status.turns_of(pod)).for_each(|shown| turns.merge(shown));
        if let Some(noted) = self.0.lock().get(pod) {
            let goes_on = |uid: &String| drains.iter().any(|drain| drain.metadata.uid == *uid);
            if noted.drains.iter().any(goes_on) {
                turns.merge(&noted.turns);
            }
        }
        Some(turns).filter(|turns| !turns.is_empty())
    }
}

/// UIDs of the maintenances that drain a node.
fn drains_of(node: &str, caches: &HostCaches) -> Vec<String> {
    let drains = caches.maintenances.all().into_iter();
    let drains = drains.filter(|drain| is_draining(drain) && drain.status.of_node(node).is_some());
    drains.map(|drain| drain.metadata.uid.clone()).collect()
}

fn is_draining(maintenance: &NodeMaintenance) -> bool {
    maintenance.spec.stage == NodeMaintenanceStage::Drain
}

#[cfg(test)]
#[path = "past_turns_tests.rs"]
mod tests;
