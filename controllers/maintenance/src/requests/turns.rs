//! The turns that interceptors of a pod have had in requests that others ended: a pod that is asked for again has only the
//! turns that it had not had. The status of a maintenance shows them (`status.podTurns`), and a restart reads them back from
//! there: nobody who may only edit pods and requests can write it. A pod is asked for anew once they are shown, or cannot be
//! shown for a while.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use drydock_api::eviction_request::EarlierTurns;
use drydock_api::node_maintenance::limits::{MAX_POD_TURNS_BYTES, MAX_PODS_WITH_TURNS};
use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage, PodEarlierTurns};
use drydock_machinery::object::json_len;
use drydock_runtime::Pod;
use jiff::Timestamp;

use crate::world::WorldView;

/// How long a pod waits for the status that shows its turns: an API server of an earlier version drops the field, and the
/// write may fail.
const SHOWN_WITHIN: Duration = Duration::from_secs(60);

/// The turns that are known, for pods that are to leave.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShownTurns {
    /// By UID of the pod.
    pods: BTreeMap<String, EarlierTurns>,
    /// What each maintenance is to show, by its name.
    shown: HashMap<String, Vec<PodEarlierTurns>>,
    /// Since when no status shows what is known of a pod, as far as there is room, by its UID.
    hidden: HashMap<String, Timestamp>,
}

impl ShownTurns {
    /// Forgets all pods but these, and reads what the statuses show of them.
    pub(crate) fn recall(&mut self, view: &WorldView<'_>, present: &HashSet<&str>) {
        self.pods.retain(|uid, _| present.contains(uid.as_str()));
        let drains = view.world.maintenances.iter().filter(|m| m.spec.stage == NodeMaintenanceStage::Drain);
        for known in drains.flat_map(|m| &m.status.pod_turns) {
            if present.contains(known.uid.as_str()) {
                self.add(&known.uid, &known.turns);
            }
        }
    }

    /// Adds the turns that a request for a pod has given.
    pub(crate) fn add(&mut self, pod: &str, turns: &EarlierTurns) {
        if !turns.is_empty() {
            self.pods.entry(pod.to_owned()).or_default().merge(turns);
        }
    }

    /// Decides which maintenance shows which pods: the first that drains the pod's node. Where there are too many, those stay
    /// that it shows already.
    pub(crate) fn share_out(&mut self, view: &WorldView<'_>) {
        self.shown.clear();
        if self.pods.is_empty() {
            self.hidden.clear();
            return;
        }
        let mut candidates: HashMap<&str, (&NodeMaintenance, Vec<PodEarlierTurns>)> = HashMap::new();
        for pod in view.counted.values().flatten() {
            let Some(turns) = self.pods.get(&pod.uid) else { continue };
            let Some(drain) = view.drains_of_type(&pod.node_name, pod.pod_type()).next() else { continue };
            let of_drain = candidates.entry(&drain.metadata.name).or_insert_with(|| (drain, Vec::new()));
            of_drain.1.push(PodEarlierTurns { uid: pod.uid.clone(), turns: turns.clone() });
        }
        self.shown = candidates
            .into_iter()
            .map(|(name, (drain, pods))| (name.to_owned(), fitting(drain, pods)))
            .collect();
        self.note_hidden(view);
    }

    fn note_hidden(&mut self, view: &WorldView<'_>) {
        let is_all = |shown: &&PodEarlierTurns| {
            self.pods.get(&shown.uid).is_some_and(|known| shown.turns.includes(known))
        };
        let statuses = view.world.maintenances.iter().flat_map(|m| &m.status.pod_turns);
        let showing: HashSet<&str> = statuses.filter(is_all).map(|shown| shown.uid.as_str()).collect();
        let hidden = self.shown.values().flatten().filter(|pod| !showing.contains(pod.uid.as_str()));
        let since = |uid: &String| self.hidden.get(uid).copied().unwrap_or(view.now);
        self.hidden = hidden.map(|pod| (pod.uid.clone(), since(&pod.uid))).collect();
    }

    /// What the status of a maintenance is to show.
    pub(crate) fn of_maintenance(&self, name: &str) -> Vec<PodEarlierTurns> {
        self.shown.get(name).cloned().unwrap_or_default()
    }

    /// Until when a pod is not asked for anew, so that no restart finds less than is known of it: the statuses are to show that
    /// first, as far as there is room. None if they do, or have not for long.
    pub(crate) fn awaited_until(&self, pod: &Pod, now: Timestamp) -> Option<Timestamp> {
        let until = self.hidden.get(&pod.uid)?.checked_add(SHOWN_WITHIN).unwrap_or(Timestamp::MAX);
        Some(until).filter(|until| now < *until)
    }
}

/// The pods for which a status has room, in the order of their UIDs.
fn fitting(maintenance: &NodeMaintenance, mut pods: Vec<PodEarlierTurns>) -> Vec<PodEarlierTurns> {
    let is_new = |pod: &PodEarlierTurns| maintenance.status.turns_of(&pod.uid).is_none();
    pods.sort_by_cached_key(|pod| (is_new(pod), pod.uid.clone()));
    pods.truncate(MAX_PODS_WITH_TURNS);
    let mut bytes = 0;
    pods.retain(|pod| {
        bytes += json_len(pod) + 1;
        bytes <= MAX_POD_TURNS_BYTES
    });
    pods.sort_by(|a, b| a.uid.cmp(&b.uid));
    pods
}
