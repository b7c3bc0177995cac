//! What became of the requests of each maintenance, counted: the requests are removed some time after their end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use drydock_api::eviction_request::{EvictionRequest, transitions};
use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceOutcomes, PodType, Stage};
use drydock_runtime::Change;
use jiff::Timestamp;

use crate::REQUESTER;
use crate::release::has_finalizer;
use crate::requests::is_before_end;
use crate::world::{Located, View};

/// A change of a request of ours that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestStep {
    /// UID of the pod.
    pod: String,
    /// Where the pod was; none if no interceptor had its turn yet.
    at: Option<Located>,
    end: Option<End>,
    passed_over: i32,
    /// When the request was made.
    made: Option<Timestamp>,
}

/// How a request ended for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is Evicted.
    Evicted,
    /// It is Canceled, or our requester is not in it any more.
    Canceled,
    /// It was removed, and its end was not seen.
    Unseen,
}

impl RequestStep {
    /// What a change means for a request in which we asked.
    pub(crate) fn of(change: &Change<EvictionRequest>) -> Option<Self> {
        let old = change.old.as_ref().filter(|old| old.has_requester(REQUESTER) && !old.is_finished())?;
        let new = change.new.as_ref().filter(|new| new.metadata.uid == old.metadata.uid);
        let end = match new {
            None => Some(End::Unseen),
            Some(new) if new.is_evicted() => Some(End::Evicted),
            Some(new) if new.is_finished() || !new.has_requester(REQUESTER) => Some(End::Canceled),
            Some(_) => None,
        };
        let passed_over = new.map_or(0, |new| passed_over(old, new));
        let info = new.unwrap_or(old).status.pod_info.as_ref().filter(|info| !info.node_name.is_empty());
        let at = info.map(|info| Located { node: info.node_name.clone(), pod_type: type_of(&info.pod_type) });
        let counts = end.is_some() || passed_over > 0;
        let made = old.metadata.creation_timestamp;
        counts.then(|| Self { pod: old.metadata.name.clone(), at, end, passed_over, made })
    }

    fn add_to(&self, outcomes: &mut NodeMaintenanceOutcomes, view: &View<'_>, node: &str) {
        let is_there = || view.pods_on(node).iter().any(|pod| pod.uid == self.pod);
        let count = match self.end {
            Some(End::Evicted) => Some(&mut outcomes.evicted),
            Some(End::Canceled) => Some(&mut outcomes.canceled),
            Some(End::Unseen) if is_there() => Some(&mut outcomes.canceled),
            Some(End::Unseen) => Some(&mut outcomes.evicted),
            None => None,
        };
        if let Some(count) = count {
            *count = count.saturating_add(1);
        }
        outcomes.passed_over = outcomes.passed_over.saturating_add(self.passed_over);
    }
}

/// The pod type of this name.
fn type_of(name: &str) -> PodType {
    serde_json::from_value(name.into()).unwrap_or_default()
}

/// How many interceptors lost their turn with this change, without having completed it. An evicted pod ends every turn.
fn passed_over(old: &EvictionRequest, new: &EvictionRequest) -> i32 {
    if new.is_finished() {
        return 0;
    }
    let before = old.status.processed_interceptors.iter().map(String::as_str).collect::<HashSet<_>>();
    let count = transitions::passed_over(new).filter(|name| !before.contains(name)).count();
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The counts of each maintenance, by its UID. They go on from those in the status: what happens between the last write of
/// a status and a restart is not counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes {
    counts: HashMap<String, NodeMaintenanceOutcomes>,
    /// Nodes of the pods of our requests at the last look, by the pod's UID.
    located: Arc<HashMap<String, Located>>,
}

impl Outcomes {
    /// Takes in what became of requests, and which pods were put where again.
    pub(crate) fn update(&mut self, view: &View<'_>, returned: &[Located]) {
        let mut before = std::mem::take(&mut self.counts);
        for maintenance in view.world.maintenances.iter().filter(|m| is_at_work(m)) {
            let uid = &maintenance.metadata.uid;
            let counts = before.remove(uid).unwrap_or_default();
            self.counts.insert(uid.clone(), greatest(&counts, &maintenance.status.outcomes));
        }
        if !view.world.since.steps.is_empty() || !returned.is_empty() {
            self.count(view, returned);
        }
        self.located = view.world.located.clone();
    }

    /// The counts of a maintenance, unless it is not at work.
    pub(crate) fn of(&self, maintenance: &NodeMaintenance) -> Option<&NodeMaintenanceOutcomes> {
        self.counts.get(&maintenance.metadata.uid)
    }

    fn count(&mut self, view: &View<'_>, returned: &[Located]) {
        let at_work = at_work(view);
        let mut add = |at: &Located, made: Option<Timestamp>, add: &dyn Fn(&mut NodeMaintenanceOutcomes)| {
            let at_work = at_work.get(at.node.as_str()).into_iter().flatten();
            let at_work = at_work.filter(|maintenance| maintenance.spec.drains(at.pod_type));
            for maintenance in at_work.filter(|maintenance| is_before_end(made, maintenance)) {
                self.counts.get_mut(&maintenance.metadata.uid).into_iter().for_each(add);
            }
        };
        for step in &view.world.since.steps {
            if let Some(at) = step.at.as_ref().or_else(|| self.located.get(&step.pod)) {
                add(at, step.made, &|counts| step.add_to(counts, view, &at.node));
            }
        }
        for at in returned {
            add(at, None, &|counts| counts.returned = counts.returned.saturating_add(1));
        }
    }
}

/// The status may have been an old one when the counts began.
fn greatest(a: &NodeMaintenanceOutcomes, b: &NodeMaintenanceOutcomes) -> NodeMaintenanceOutcomes {
    NodeMaintenanceOutcomes {
        evicted: a.evicted.max(b.evicted),
        canceled: a.canceled.max(b.canceled),
        passed_over: a.passed_over.max(b.passed_over),
        returned: a.returned.max(b.returned),
    }
}

/// The maintenances that are at work on each node.
fn at_work<'v>(view: &View<'v>) -> HashMap<&'v str, Vec<&'v NodeMaintenance>> {
    let mut at_work: HashMap<&str, Vec<&NodeMaintenance>> = HashMap::new();
    let maintenances = view.world.maintenances.iter().zip(&view.selected);
    for (maintenance, nodes) in maintenances.filter(|(maintenance, _)| is_at_work(maintenance)) {
        for node in nodes {
            at_work.entry(node.name.as_str()).or_default().push(maintenance);
        }
    }
    at_work
}

/// Whether a maintenance asks for evictions, or withdraws what it has asked for.
fn is_at_work(maintenance: &NodeMaintenance) -> bool {
    match maintenance.spec.stage {
        Stage::Drain => true,
        Stage::Complete => has_finalizer(maintenance),
        _ => false,
    }
}
