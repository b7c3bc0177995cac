//! The decision: from what is seen and remembered to what should be written. Pure but for its memory.

use std::time::Duration;

use drydock_plan::Planner;
use drydock_runtime::Pod;
use jiff::Timestamp;

use crate::actions::{About, Decision, Note};
use crate::blockers::Blocked;
use crate::cordon::Flips;
use crate::failures::Failures;
use crate::view::View;
use crate::world::World;
use crate::{conditions, cordon, release, requests, status};

/// What the machine is told once.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether nodes of an Idle maintenance get the MaintenancePlanned condition.
    pub advertise_planned: bool,
    /// Namespace of Drydock's own pods.
    pub namespace: String,
    /// Name of the node agent's DaemonSet there, whose pods never count: the agent leaves with the node.
    pub agent: String,
    /// How long an interceptor may be silent before its pod is shown as blocked.
    pub silent_after: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            advertise_planned: false,
            namespace: "drydock-system".to_owned(),
            agent: "drydock-node-agent".to_owned(),
            silent_after: Duration::from_secs(300),
        }
    }
}

impl Config {
    /// Whether a pod counts: it is targeted, and left, pending or evacuating. A terminating one counts until its
    /// object is gone.
    pub fn counts(&self, pod: &Pod) -> bool {
        !pod.is_terminal() && !self.is_agent(pod)
    }

    fn is_agent(&self, pod: &Pod) -> bool {
        pod.is_daemon_set_pod()
            && pod.namespace == self.namespace
            && pod.controller.as_ref().is_some_and(|c| c.name == self.agent)
    }
}

/// What is remembered between steps. A new one picks up what matters from the objects.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub(crate) planner: Planner,
    pub(crate) flips: Flips,
    pub(crate) blocked: Blocked,
    pub(crate) failures: Failures,
}

/// One step over all maintenances.
pub fn step(world: &World, memory: &mut Memory, now: Timestamp, config: &Config) -> Decision {
    let mut decision = Decision::default();
    let view = View::new(world, config, &mut memory.planner, now);
    memory.failures.look(&view);
    memory.blocked.look(&view, &memory.failures, &mut decision);
    cordon::decide(&view, &mut memory.flips, &mut decision);
    requests::decide(&view, &mut memory.failures, &mut decision);
    conditions::decide(&view, &mut decision);
    status::decide(&view, &memory.blocked, &mut decision);
    release::decide(&view, &memory.failures, &mut decision);
    tell_fast_forwards(&view, &mut decision);
    decision
}

fn tell_fast_forwards(view: &View<'_>, decision: &mut Decision) {
    for (i, place) in &view.planned {
        let Some(maintenance) = view.world.maintenances.get(*i) else { continue };
        for told in view.outcome.fast_forwards.iter().filter(|f| f.maintenance == *place) {
            let older = &told.older;
            let message = match &told.node {
                Some(node) => format!(
                    "Fast-forwarded on node {node} due to the older maintenance {older}: pods of lower entries of the \
                     drain plan are evacuated together with those that it has reached there"
                ),
                None => format!(
                    "Fast-forwarded to the next entry of the drain plan before it was finished, because the plan \
                     contradicts that of the older maintenance {older}"
                ),
            };
            let about = About::Maintenance(maintenance.metadata.name.clone());
            decision.notes.push(Note { about, warning: true, reason: "DrainFastForwarded", message });
        }
    }
}

#[cfg(test)]
#[path = "machine_tests/mod.rs"]
mod tests;
