//! How the machine is set up: the names under which it writes, what flags set, and which pods count.

use std::time::Duration;

use drydock_api::eviction_request::pod_labels::NODE_MAINTENANCE;
use drydock_api::eviction_request::retention::FIRST_REPORT;
use drydock_runtime::Pod;

/// Our entry in the requesters of an EvictionRequest, and the field manager that applies it.
pub const REQUESTER: &str = NODE_MAINTENANCE;

/// The settings of the machine.
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
    /// How long a request is kept for the pod's owner when the pod is gone, if the owner had an event about it
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
    /// How long an interceptor may be silent before its pod is shown as blocked: 6 minutes, which is twice
    /// the time between reports in KEP-4563, or three tenths of the heartbeat deadline if that is shorter.
    pub(crate) fn silent_after(&self) -> Duration {
        Duration::from_secs(360).min(self.heartbeat_deadline * 3 / 10)
    }

    /// How long an interceptor that has not begun may be silent before a blocker says that it has never reported.
    pub(crate) fn first_report_within(&self) -> Duration {
        self.silent_after().min(FIRST_REPORT)
    }

    /// Whether a pod counts: it has not run to its end, and is not one of the node agent's. A terminating pod
    /// counts until its object is gone.
    pub fn counts(&self, pod: &Pod) -> bool {
        !pod.is_terminal() && !self.is_agent(pod)
    }

    fn is_agent(&self, pod: &Pod) -> bool {
        pod.is_daemon_set_pod()
            && pod.namespace == self.namespace
            && pod.controller.as_ref().is_some_and(|c| c.name == self.agent)
    }
}
