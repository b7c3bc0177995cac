//! Counts the outcomes of the requests of each maintenance, because the requests are removed some time after
//! their end.

use std::collections::HashMap;
use std::sync::Arc;

use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceOutcomes, NodeMaintenanceStage};
use jiff::Timestamp;

use crate::observed::PodLocation;
use crate::observed::request_transition::{RequestEnd, RequestTransition};
use crate::requests::is_before_end;
use crate::world::WorldView;

/// The counts of each maintenance, by its UID. They go on from those in the status: what happens between the
/// last write of a status and a restart is not counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes {
    counts: HashMap<String, NodeMaintenanceOutcomes>,
    /// Where the pods of our requests were in the last step, by the pod's UID.
    located: Arc<HashMap<String, PodLocation>>,
}

impl Outcomes {
    /// Takes in how requests have changed, and where pods were put back.
    pub(crate) fn update(&mut self, view: &WorldView<'_>, returned: &[PodLocation]) {
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

    fn count(&mut self, view: &WorldView<'_>, returned: &[PodLocation]) {
        let at_work = at_work(view);
        let mut add =
            |at: &PodLocation, made: Option<Timestamp>, add: &dyn Fn(&mut NodeMaintenanceOutcomes)| {
                let at_work = at_work.get(at.node.as_str()).into_iter().flatten();
                let at_work = at_work.filter(|maintenance| maintenance.spec.drains(at.pod_type));
                for maintenance in at_work.filter(|maintenance| is_before_end(made, maintenance)) {
                    self.counts.get_mut(&maintenance.metadata.uid).into_iter().for_each(add);
                }
            };
        for step in &view.world.since.steps {
            if let Some(at) = step.at.as_ref().or_else(|| self.located.get(&step.pod)) {
                add(at, step.made, &|counts| add_step(step, counts, view, &at.node));
            }
        }
        for at in returned {
            add(at, None, &|counts| counts.returned = counts.returned.saturating_add(1));
        }
    }
}

/// Adds a change of a request to the outcomes of one maintenance.
fn add_step(
    step: &RequestTransition,
    outcomes: &mut NodeMaintenanceOutcomes,
    view: &WorldView<'_>,
    node: &str,
) {
    let is_there = || view.pods_on(node).iter().any(|pod| pod.uid == step.pod);
    let count = match step.end {
        Some(RequestEnd::Evicted) => Some(&mut outcomes.evicted),
        Some(RequestEnd::Canceled) => Some(&mut outcomes.canceled),
        Some(RequestEnd::Unseen) if is_there() => Some(&mut outcomes.canceled),
        Some(RequestEnd::Unseen) => Some(&mut outcomes.evicted),
        None => None,
    };
    if let Some(count) = count {
        *count = count.saturating_add(1);
    }
    outcomes.passed_over = outcomes.passed_over.saturating_add(step.passed_over);
}

/// Returns the greater of each two counts, because the status may have been an old one when the counts began.
fn greatest(a: &NodeMaintenanceOutcomes, b: &NodeMaintenanceOutcomes) -> NodeMaintenanceOutcomes {
    NodeMaintenanceOutcomes {
        evicted: a.evicted.max(b.evicted),
        canceled: a.canceled.max(b.canceled),
        passed_over: a.passed_over.max(b.passed_over),
        returned: a.returned.max(b.returned),
    }
}

/// The maintenances that are at work on each node.
fn at_work<'v>(view: &WorldView<'v>) -> HashMap<&'v str, Vec<&'v NodeMaintenance>> {
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
    maintenance.spec.stage == NodeMaintenanceStage::Drain || maintenance.is_ending()
}
