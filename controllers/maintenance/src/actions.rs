//! The writes and the events that a step decides on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStatus, PodType};
use drydock_runtime::Node;
use drydock_runtime::events::Severity;
use jiff::Timestamp;

use crate::observed::asked_again::AskedAgain;

/// The subject of an action: there is one action at a time for each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// `spec.unschedulable` and our annotation of a node.
    Cordon(String),
    /// Our conditions of a node.
    Conditions(String),
    /// Our entry in a request, by namespace and the pod's UID.
    Request(String, String),
    /// A maintenance's status.
    Status(String),
    /// A maintenance's finalizer.
    Finalizer(String),
}

/// As the log names it.
impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cordon(node) => write!(f, "cordon of node {node}"),
            Self::Conditions(node) => write!(f, "conditions of node {node}"),
            Self::Request(namespace, pod) => write!(f, "evictionrequest {namespace}/{pod}"),
            Self::Status(maintenance) => write!(f, "status of nodemaintenance {maintenance}"),
            Self::Finalizer(maintenance) => write!(f, "finalizer of nodemaintenance {maintenance}"),
        }
    }
}

/// A write, with the versions that it was decided on as preconditions.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Sets the node's `unschedulable` (none leaves it) and our annotation (none removes it).
    Cordon {
        /// The node as seen.
        node: Arc<Node>,
        /// The value to set.
        unschedulable: Option<bool>,
        /// The annotation to set.
        annotation: Option<&'static str>,
    },
    /// Sets and removes conditions of a node.
    Conditions {
        /// Name of the node.
        node: String,
        /// UID of the node.
        uid: String,
        /// The conditions to set.
        set: Vec<NodeConditionChange>,
        /// Types of the conditions to remove.
        remove: Vec<&'static str>,
        /// The pod type up to which a live read must first confirm that no pods are left on the node, because
        /// the conditions record more than before. None if they do not.
        confirm: Option<PodType>,
    },
    /// Changes our part of a request.
    Request {
        /// Namespace of the pod.
        namespace: String,
        /// UID of the pod: the request's name.
        pod: String,
        /// What is to be done.
        change: RequestChange,
        /// The lane of the write.
        lane: RequestLane,
    },
    /// Writes a maintenance's status.
    Status {
        /// The maintenance as seen.
        maintenance: Arc<NodeMaintenance>,
        /// The status to write.
        status: Box<NodeMaintenanceStatus>,
        /// Nodes of which a live read must first confirm that no pods up to this type are left, because the
        /// status says so now.
        confirm: BTreeMap<String, PodType>,
        /// Events to publish once the status is written.
        events: Vec<EventDraft>,
    },
    /// Removes our finalizer.
    Finalizer {
        /// The maintenance as seen.
        maintenance: Arc<NodeMaintenance>,
        /// The message of the event that is published when it is removed.
        message: String,
    },
}

impl Action {
    /// What the action is about.
    pub fn task(&self) -> Task {
        match self {
            Self::Cordon { node, .. } => Task::Cordon(node.name.clone()),
            Self::Conditions { node, .. } => Task::Conditions(node.clone()),
            Self::Request { namespace, pod, .. } => Task::Request(namespace.clone(), pod.clone()),
            Self::Status { maintenance, .. } => Task::Status(maintenance.metadata.name.clone()),
            Self::Finalizer { maintenance, .. } => Task::Finalizer(maintenance.metadata.name.clone()),
        }
    }

    /// Whether the write moves the drain on, so that it must not be delayed: a cordon, a request for an eviction, or a
    /// status with other drain targets or turns.
    pub(crate) fn moves_on(&self) -> bool {
        let (old, status) = match self {
            Self::Cordon { .. } | Self::Request { change: RequestChange::Ask { .. }, .. } => return true,
            Self::Status { maintenance, status, .. } => (&maintenance.status, status),
            Self::Request { .. } | Self::Conditions { .. } | Self::Finalizer { .. } => return false,
        };
        let targets = |status: &NodeMaintenanceStatus| {
            let nodes = status.node_statuses.iter();
            nodes.map(|s| (s.node_ref.clone(), s.drain_targets.clone())).collect::<Vec<_>>()
        };
        old.drain_plan_position != status.drain_plan_position
            || old.pod_turns != status.pod_turns
            || targets(old) != targets(status)
    }
}

/// A change of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestChange {
    /// Asks for the eviction of a pod.
    Ask {
        /// Name of the pod.
        pod: String,
        /// UID of the request that is there, if one is.
        request: Option<String>,
        /// The value of the request's annotation that names the maintenances.
        maintenances: Arc<str>,
        /// How often the pod was asked for again because others took a request from us: another annotation.
        asked_again: Option<AskedAgain>,
    },
    /// Withdraws from a request.
    Withdraw {
        /// Name of the pod.
        pod: String,
        /// UID of the request.
        request: String,
    },
    /// Deletes a request that is Evicted and in which nobody else asks: the KEP lets requesters do that, and it is
    /// one write where a withdrawal and a removal are two.
    Delete {
        /// UID of the request.
        request: String,
        /// Its resourceVersion: somebody who asks meanwhile keeps the request.
        resource_version: String,
    },
    /// Deletes a request that is canceled or targets another pod, so that the pod's own can be made.
    Replace {
        /// UID of the request. Its target and its end are final, whatever else is written to it.
        request: String,
    },
}

/// The lane of a request's write: maintenances are served in turn, and within each its nodes; requests that
/// no maintenance wants are served in turn by namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestLane {
    /// The maintenance for which it is written, empty if there is none.
    pub maintenance: String,
    /// The node of the pod, or the namespace of the request.
    pub within: String,
}

/// A condition of a node that is to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConditionChange {
    /// Type.
    pub type_: &'static str,
    /// `True` or `False`.
    pub status: &'static str,
    /// The furthest stage.
    pub reason: &'static str,
    /// Names and reasons of the maintenances.
    pub message: String,
    /// Whether the status of the condition changes. The writer sets the time: an action that contained one
    /// would differ at each planning, and would be written each time.
    pub status_changes: bool,
}

/// An event that is to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDraft {
    /// The object that it is about.
    pub about: EventSubject,
    /// Its type.
    pub severity: Severity,
    /// Reason of the event.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// Whether the event is logged too: not if another event or log line says the same.
    pub is_logged: bool,
}

impl EventDraft {
    /// An event about a maintenance.
    pub(crate) fn of(
        maintenance: &NodeMaintenance,
        severity: Severity,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let about = EventSubject::Maintenance(maintenance.metadata.name.clone());
        Self { about, severity, reason, message: message.into(), is_logged: true }
    }

    /// An event about a node that is not logged: its maintenances get the same event, which is.
    pub(crate) fn of_node(node: &str, severity: Severity, reason: &'static str, message: String) -> Self {
        Self { about: EventSubject::Node(node.to_owned()), severity, reason, message, is_logged: false }
    }
}

/// The object that an event is about, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSubject {
    /// A node.
    Node(String),
    /// A maintenance.
    Maintenance(String),
    /// An eviction, by namespace and the pod's UID: the event goes to the owner of the pod, too.
    Eviction(String, String),
}

/// The outcome of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaintenanceDecision {
    /// All writes that are still to be made.
    pub actions: BTreeMap<Task, Action>,
    /// Events to publish now.
    pub events: Vec<EventDraft>,
    /// When to look again, if nothing changes before.
    pub wake: Option<Timestamp>,
}

impl MaintenanceDecision {
    /// Adds an action, in place of another one for its task.
    pub(crate) fn add(&mut self, action: Action) {
        self.actions.insert(action.task(), action);
    }

    /// Adds a Warning event about a node, and one about each of these maintenances. `message` gets the
    /// subject of its sentence: `The node`, or the node with its name.
    pub(crate) fn warn_node_and_maintenances<'m>(
        &mut self,
        node: &str,
        maintenances: impl Iterator<Item = &'m Arc<NodeMaintenance>>,
        reason: &'static str,
        message: impl Fn(&str) -> String,
    ) {
        let named = message(&format!("Node {node}"));
        let of_maintenances: Vec<EventDraft> =
            maintenances.map(|m| EventDraft::of(m, Severity::Warning, reason, named.as_str())).collect();
        let of_node = EventDraft::of_node(node, Severity::Warning, reason, message("The node"));
        self.events.push(EventDraft { is_logged: of_maintenances.is_empty(), ..of_node });
        self.events.extend(of_maintenances);
    }

    /// Asks for the next step at `at` at the latest.
    pub(crate) fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }
}
