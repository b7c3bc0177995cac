//! The decision: from what is seen and remembered to what should be written. Pure but for its memory.

use std::time::Duration;

use drydock_api::eviction_request::retention::FIRST_REPORT;
use drydock_runtime::Pod;
use jiff::Timestamp;

use crate::actions::Decision;
use crate::blockers::{Blockers, Known};
use crate::milestones::Milestones;
use crate::nodes::cordon::Flips;
use crate::nodes::emptied::Emptied;
use crate::nodes::gone::Gone;
use crate::nodes::uncordoned::Uncordoned;
use crate::nodes::{conditions, cordon};
use crate::repeats::Repeats;
use crate::requests::failures::Failures;
use crate::requests::outcomes::Outcomes;
use crate::requests::returns::Returns;
use crate::status::settled::Settled;
use crate::status::unscheduled::Evicting;
use crate::status::will_be_lost::BarePods;
use crate::world::View;
use crate::world::World;
use crate::world::left_out::LeftOut;
use crate::{release, requests, status};

/// What the machine is told once.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether nodes of an Idle maintenance get the MaintenancePlanned condition.
    pub advertise_planned: bool,
    /// Namespace of Drydock's own pods.
    pub namespace: String,
    /// Name of the node agent's DaemonSet there, whose pods never count: the agent leaves with the node.
    pub agent: String,
    /// How long an interceptor may be silent before its turn passes on (`--heartbeat-deadline`).
    pub heartbeat_deadline: Duration,
    /// How long a request is kept for the pod's owner when the pod is gone, if the owner was told of it
    /// (`--blocked-request-retention`).
    pub request_retention: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            advertise_planned: false,
            namespace: "drydock-system".to_owned(),
            agent: "drydock-node-agent".to_owned(),
            heartbeat_deadline: Duration::from_secs(1200),
            request_retention: Duration::from_secs(3600),
        }
    }
}

impl Config {
    /// How long an interceptor may be silent before its pod is shown as blocked: twice the time within which KEP-4563 has
    /// it report, or three tenths of its deadline where that is shorter.
    pub(crate) fn silent_after(&self) -> Duration {
        Duration::from_secs(360).min(self.heartbeat_deadline * 3 / 10)
    }

    /// How long an interceptor that has not begun may be silent before people are told that it has never reported.
    pub(crate) fn first_report_within(&self) -> Duration {
        self.silent_after().min(FIRST_REPORT)
    }

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
    pub(crate) flips: Flips,
    pub(crate) uncordoned: Uncordoned,
    pub(crate) emptied: Emptied,
    pub(crate) gone: Gone,
    pub(crate) settled: Settled,
    pub(crate) repeats: Repeats,
    pub(crate) blockers: Blockers,
    pub(crate) returns: Returns,
    pub(crate) failures: Failures,
    pub(crate) evicting: Evicting,
    pub(crate) outcomes: Outcomes,
    pub(crate) left_out: LeftOut,
    pub(crate) bare_pods: BarePods,
    pub(crate) milestones: Milestones,
}

/// One step over all maintenances.
pub fn step(world: &World, memory: &mut Memory, now: Timestamp, config: &Config) -> Decision {
    let mut decision = Decision::default();
    let mut view = View::new(world, config, now, memory.left_out.clone());
    view.waiting = Some(memory.uncordoned.update(&view, &mut decision));
    memory.failures.update(&view);
    memory.emptied.update(&view);
    memory.gone.update(&view, &memory.emptied);
    memory.evicting.update(&view);
    cordon::decide(&view, &mut memory.flips, &mut decision);
    let returned = memory.returns.update(&view, &mut decision);
    memory.outcomes.update(&view, &returned);
    let known = Known { failures: &memory.failures, returns: &memory.returns, flips: &memory.flips };
    memory.blockers.update(&view, &known, &mut decision);
    memory.milestones.update(&view, &memory.blockers, &memory.emptied, &memory.returns, &mut decision);
    requests::decide(&view, &mut memory.failures, &memory.returns, &mut decision);
    conditions::decide(&view, &memory.emptied, &mut decision);
    status::decide(&view, memory, &mut decision);
    release::decide(&view, &memory.failures, &mut decision);
    memory.repeats.update(&view, &mut decision);
    decision
}

#[cfg(test)]
#[path = "machine_tests/mod.rs"]
mod tests;
