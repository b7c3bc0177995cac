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
//! None of these may be written by whoever may only edit pods and requests. When none of these maintenances drains the node
//! any more, all begins anew: the next drain is another one.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Once};

use drydock_api::eviction_request::pod_labels::NODE_MAINTENANCE;
use drydock_api::eviction_request::transitions::turns_had;
use drydock_api::eviction_request::{EarlierTurns, EvictionRequest};
use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage};
use drydock_runtime::{ControllerContext, HostCaches, ObjectChange, Pod};
use jiff::Timestamp;
use parking_lot::Mutex;
use tracing::warn;

/// Most pods whose turns are noted: an entry has 1 KiB at most. Of others only the status of the maintenance tells.
const MAX_PODS: usize = 20_000;
/// The warning that there are so many.
static FULL: Once = Once::new();

/// The turns that are noted, by UID of the pod. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct PastTurns(Arc<Mutex<HashMap<String, NotedTurns>>>);

#[derive(Debug, Default)]
struct NotedTurns {
    turns: EarlierTurns,
    /// The pod's node.
    node: String,
    /// UIDs of the maintenances that drained it.
    drains: Vec<String>,
}

impl NotedTurns {
    /// Whether one of these drains of the pod's node is among those that go on.
    fn is_in(&self, drains: &[Arc<NodeMaintenance>]) -> bool {
        let mut same = drains.iter().filter(|drain| self.drains.contains(&drain.metadata.uid));
        same.any(|drain| drain.status.of_node(&self.node).is_some())
    }
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
            // The watch may have missed that another pod has taken the name.
            let is_gone = |old: &&Arc<Pod>| change.new.as_ref().is_none_or(|new| new.uid != old.uid);
            if let Some(gone) = change.old.as_ref().filter(is_gone) {
                noted.forget(&gone.uid);
            }
        });
        let (noted, caches) = (turns.clone(), context.caches.clone());
        context.caches.maintenances.subscribe(move |change| noted.forget_drained(change, &caches));
        turns
    }

    /// Takes in a change of a request: one of a maintenance that others end, or take from it, leaves its turns behind. When the
    /// maintenance itself withdraws, the node is about to leave the drain.
    fn note(&self, change: &ObjectChange<EvictionRequest>, caches: &HostCaches, now: Timestamp) {
        let goes_on =
            |request: &EvictionRequest| !request.is_finished() && request.has_requester(NODE_MAINTENANCE);
        let Some(old) = change.old.as_ref().filter(|old| goes_on(old)) else { return };
        let same = change.new.as_ref().filter(|new| new.metadata.uid == old.metadata.uid);
        let pod = &old.metadata.name;
        if same.is_some_and(|new| goes_on(new)) || caches.pods.by_uid(pod).is_none() {
            return;
        }
        let turns = turns_had(old, now);
        if turns.is_empty() {
            return;
        }
        let node = old.status.pod_info.as_ref().map_or("", |pod| pod.node_name.as_str());
        let drains = drains_of(node, caches);
        let mut all = self.0.lock();
        if !drains.is_empty() && has_room(&mut all, pod, caches) {
            let noted = all.entry(pod.clone()).or_default();
            noted.turns.merge(&turns);
            (noted.node, noted.drains) = (node.to_owned(), drains);
        }
    }

    /// Forgets the pods on the nodes that leave a drain, if no other drain of theirs goes on.
    fn forget_drained(&self, change: &ObjectChange<NodeMaintenance>, caches: &HostCaches) {
        let mut left = nodes_of(change.old.as_deref());
        let stay = nodes_of(change.new.as_deref());
        left.retain(|node| !stay.contains(node));
        if !left.is_empty() {
            let drains = drains(caches);
            self.0.lock().retain(|_, noted| !left.contains(noted.node.as_str()) || noted.is_in(&drains));
        }
    }

    /// Forgets a pod that is gone.
    fn forget(&self, pod: &str) {
        self.0.lock().remove(pod);
    }

    /// The turns that the interceptors of a pod have had in earlier requests.
    pub(crate) fn of(&self, pod: &str, caches: &HostCaches) -> Option<EarlierTurns> {
        let drains = drains(caches);
        let mut turns = EarlierTurns::default();
        drains.iter().filter_map(|drain| drain.status.turns_of(pod)).for_each(|shown| turns.merge(shown));
        if let Some(noted) = self.0.lock().get(pod).filter(|noted| noted.is_in(&drains)) {
            turns.merge(&noted.turns);
        }
        Some(turns).filter(|turns| !turns.is_empty())
    }
}

/// UIDs of the maintenances that drain a node.
fn drains_of(node: &str, caches: &HostCaches) -> Vec<String> {
    let drains = drains(caches).into_iter().filter(|drain| drain.status.of_node(node).is_some());
    drains.map(|drain| drain.metadata.uid.clone()).collect()
}

/// The maintenances that drain nodes.
fn drains(caches: &HostCaches) -> Vec<Arc<NodeMaintenance>> {
    caches.maintenances.all().into_iter().filter(|m| is_draining(m)).collect()
}

/// The nodes that a maintenance drains.
fn nodes_of(maintenance: Option<&NodeMaintenance>) -> HashSet<&str> {
    let drain = maintenance.filter(|maintenance| is_draining(maintenance));
    let nodes = drain.into_iter().flat_map(|drain| &drain.status.node_statuses);
    nodes.map(|node| node.node_ref.name.as_str()).collect()
}

/// Whether there is room for the turns of a pod, when those of pods that are gone are forgotten.
fn has_room(all: &mut HashMap<String, NotedTurns>, pod: &str, caches: &HostCaches) -> bool {
    if all.len() < MAX_PODS || all.contains_key(pod) {
        return true;
    }
    all.retain(|uid, _| caches.pods.by_uid(uid).is_some());
    let has_room = all.len() < MAX_PODS;
    if !has_room {
        FULL.call_once(|| warn!("the turns of {MAX_PODS} pods are noted; those of others begin anew"));
    }
    has_room
}

fn is_draining(maintenance: &NodeMaintenance) -> bool {
    maintenance.spec.stage == NodeMaintenanceStage::Drain
}

#[cfg(test)]
#[path = "past_turns_tests.rs"]
mod tests;
