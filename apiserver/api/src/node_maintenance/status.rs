//! The status of a NodeMaintenance.

use drydock_machinery::schema::ApiType;
use drydock_machinery::schema::common::CONDITIONS_MAX;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::limits::{MAX_DRAIN_PLAN, MAX_NODES, MAX_PODS_WITH_TURNS};
use super::types::{DrainPlanEntry, NodeMaintenanceStage, PodType};
use crate::eviction_request::EarlierTurns;
use drydock_machinery::metav1::time;
use drydock_machinery::metav1::{Condition, LabelSelector, is_default, is_zero};

/// Condition: no pods of types up to `spec.lastPodType` are left on any selected node.
pub const DRAINED: &str = "Drained";
/// Condition: no pods of type Default are left on any selected node.
pub const WORKLOADS_DRAINED: &str = "WorkloadsDrained";
/// Condition: every selected node is unschedulable.
pub const CORDONED: &str = "Cordoned";
/// Condition: pods without a controller, or with an emptyDir volume, will be evicted.
pub const PODS_WILL_BE_LOST: &str = "PodsWillBeLost";
/// Condition: pods that replace evicted ones cannot be scheduled.
pub const EVICTED_PODS_UNSCHEDULABLE: &str = "EvictedPodsUnschedulable";
/// The types of all conditions that the controller sets.
pub const OUR_CONDITIONS: [&str; 5] =
    [DRAINED, WORKLOADS_DRAINED, CORDONED, PODS_WILL_BE_LOST, EVICTED_PODS_UNSCHEDULABLE];

/// The state of the maintenance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct NodeMaintenanceStatus {
    /// NodeMaintenance's .metadata.generation observed by the node maintenance controller.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(tag = 1)]
    pub observed_generation: i64,
    /// StageStatuses tracks the statuses of started stages. The API server notes a stage in the write that sets it;
    /// the node maintenance controller adds the time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 2, list_type = "map", list_map_key = "name", max_items = NodeMaintenanceStage::VALUES.len())]
    pub stage_statuses: Vec<StageStatus>,
    /// NodeStatuses says for each selected node how far it is: which pods are asked to leave, how many are left, and
    /// what blocks. A node that left the cluster undrained stays in it. Each node stands in it once. The list is
    /// atomic and holds at most 4000 nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 3, list_type = "atomic", max_items = MAX_NODES)]
    pub node_statuses: Vec<NodeMaintenanceNodeStatus>,
    /// Conditions contain information about the node maintenance.
    ///
    /// Cordoned signals whether every selected node is unschedulable. It is absent before the Cordon stage; True with
    /// reason AllNodesCordoned; False with reason Cordoning, NodeUpdateRefused (a node cannot be made unschedulable;
    /// the message has the words of the refusal) or NoNodesSelected; and False with reason Uncordoned in the Complete
    /// stage.
    ///
    /// PodsWillBeLost signals from the Cordon stage on, so that it can be read before the drain, that pods which are
    /// to leave have no controller, so that nobody creates them again, or have an emptyDir volume, whose data is
    /// lost. Its message counts them. Mirror pods of static pods are not among them. False with reason Completed in
    /// the Complete stage: pods that are still there stay.
    ///
    /// Drained signals whether all pods pending termination have terminated on all target nodes when drain is
    /// requested by the maintenance object. It is absent before the Drain stage; False with reason Draining,
    /// NoNodesSelected, StatusTooLarge (the status has no room for nodes or drain targets: select fewer nodes), or
    /// NodeLabelsUnknown (a node has more labels than are kept, and may be selected or not);
    /// True with reason AllPodsTerminated; False again when a pod appears during Drain; and does not change any more
    /// in the Complete stage (False with reason Canceled if it was not True). A node that leaves the cluster after it
    /// was drained counts as drained; one that leaves it before keeps Drained False. Pods of types after lastPodType
    /// do not count. While only pods are left of DaemonSets that return or of a node without an agent, its message
    /// has the commands with which to go on.
    ///
    /// WorkloadsDrained is as Drained, and counts pods of type Default alone: wait for it where DaemonSets return as
    /// often as their pods are deleted, or static pods stay.
    ///
    /// EvictedPodsUnschedulable signals that pods which controllers made in the place of evicted ones find no other
    /// node; its message counts them by controller and has the scheduler's words. It is absent until there was such a
    /// pod, and False with reason Completed in the Complete stage, when nobody follows it any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 4, list_type = "map", list_map_key = "type", max_items = CONDITIONS_MAX)]
    pub conditions: Vec<Condition>,
    /// DrainPlanPosition is the index of the current entry of .spec.drainPlan: pods that this entry or an earlier one
    /// selects have been reached. It goes back when a node joins the maintenance whose pods an earlier entry selects,
    /// so that this node is drained in order too. It is absent before the Drain stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 5)]
    pub drain_plan_position: Option<i32>,
    /// DrainedNodes is the number of nodes that are drained: those selected now that all pods have left, and those
    /// that left the cluster after that. A node that left the cluster before does not count.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(tag = 6)]
    pub drained_nodes: i32,
    /// Outcomes counts what became of the eviction requests of this maintenance. The counts stay when the requests
    /// are gone. What happens shortly before the controller is restarted may be missing.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(tag = 7)]
    pub outcomes: NodeMaintenanceOutcomes,
    /// GoneNodes counts the nodes that left the cluster while this maintenance drained them.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(tag = 8)]
    pub gone_nodes: NodeMaintenanceGoneNodes,
    /// PodTurns tells, of pods whose eviction request others deleted or withdrew in the Drain stage, which interceptors
    /// have had a turn: these get no other when the pod is asked to leave again. It is ordered by the UID of the pod, and
    /// forgets pods that have left. The list is atomic and holds at most 1000 pods and 65536 bytes of JSON; of pods
    /// beyond that, only the eviction request and the memory of the controller tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 9, list_type = "atomic", max_items = MAX_PODS_WITH_TURNS)]
    pub pod_turns: Vec<PodEarlierTurns>,
    /// Creator is the name of the user who created the maintenance, or, for a service account, the group of all service
    /// accounts of its namespace. The API server notes it, and nobody changes it. Where there is no room for all
    /// maintenances, in series of metrics and in events, each creator has a share.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(tag = 10)]
    pub creator: String,
}

/// PodEarlierTurns tells of the turns that interceptors of a pod have had in eviction requests that others ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct PodEarlierTurns {
    /// UID of the pod.
    #[schema(tag = 1, required)]
    pub uid: String,
    /// Turns that its interceptors have had.
    #[schema(tag = 2, required)]
    pub turns: EarlierTurns,
}

impl NodeMaintenanceStatus {
    /// When a stage was started. `None` if it was not started, or if the controller has not set the time yet.
    pub fn started(&self, stage: NodeMaintenanceStage) -> Option<Timestamp> {
        self.stage_statuses.iter().find(|status| status.name == stage)?.start_timestamp
    }

    /// The turns that interceptors of a pod have had in requests that others ended.
    pub fn turns_of(&self, pod: &str) -> Option<&EarlierTurns> {
        let at = self.pod_turns.binary_search_by(|known| known.uid.as_str().cmp(pod)).ok()?;
        self.pod_turns.get(at).map(|known| &known.turns)
    }

    /// The status of a node.
    pub fn of_node(&self, node: &str) -> Option<&NodeMaintenanceNodeStatus> {
        self.node_statuses.iter().find(|status| status.node_ref.name == node)
    }
}

/// Counts of the nodes that left the cluster while a maintenance drained them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct NodeMaintenanceGoneNodes {
    /// Drained is the number of nodes that left the cluster after they were drained.
    #[schema(tag = 1)]
    pub drained: i32,
    /// Undrained is the number of nodes that left the cluster with pods on them, or before their last pod was
    /// confirmed to have left. They keep Drained False until they come back, or until .spec.nodeSelector is changed
    /// so that it selects them no longer. .status.nodeStatuses names them where it has room.
    // It can return to 0, which a merge patch must send: zeros are serialized.
    #[schema(tag = 2)]
    pub undrained: i32,
}

/// Counts of how the EvictionRequests of a maintenance ended.
// Zeros are serialized: a merge patch that omits a field does not change it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct NodeMaintenanceOutcomes {
    /// Evicted is the number of eviction requests that ended as Evicted.
    #[schema(tag = 1)]
    pub evicted: i32,
    /// Canceled is the number of eviction requests that were canceled, withdrawn or deleted before their pod had
    /// left. A pod that is asked to leave again counts each time.
    #[schema(tag = 2)]
    pub canceled: i32,
    /// PassedOver is the number of turns that passed to the next interceptor because nothing was heard of the active
    /// one.
    #[schema(tag = 3)]
    pub passed_over: i32,
    /// Returned is the number of pods that were put on a node again after another pod of their workload had been
    /// evicted from there; or of their namespace, if no workload explains them that was there before the drain.
    #[schema(tag = 4)]
    pub returned: i32,
}

/// StageStatus tracks the status of a started stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct StageStatus {
    /// Name of the Stage.
    #[schema(tag = 1, required)]
    pub name: NodeMaintenanceStage,
    /// StartTimestamp is the time that indicates the start of this stage.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    #[schema(tag = 2)]
    pub start_timestamp: Option<Timestamp>,
}

/// NodeMaintenanceNodeStatus is the status of the maintenance on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct NodeMaintenanceNodeStatus {
    /// NodeRef identifies a Node.
    #[schema(tag = 1, required)]
    pub node_ref: NodeReference,
    /// DrainTargets specifies which pods on this node are currently being targeted for evacuation. Once evacuation of
    /// the Default PodType finishes, DaemonSet PodType entries appear. Once the evacuation of DaemonSet PodType
    /// finishes, Static PodType entries appear. The PodPriority for these entries is increased over time according to
    /// the .spec.drainPlan as the lower-priority pods finish evacuation. The next entry in the .spec.drainPlan is
    /// selected once all the nodes have reached their DrainTargets.
    ///
    /// If there are multiple NodeMaintenances for a node, the least powerful DrainTargets among them are selected and
    /// set for all the NodeMaintenances for that node. Thus, the DrainTargets do not have to correspond to the
    /// entries in .spec.drainPlan for a single NodeMaintenance instance.
    ///
    /// DrainTargets cannot backtrack and will target more pods with each update until all pods on the node are
    /// targeted. The list is atomic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 2, list_type = "atomic", max_items = MAX_DRAIN_PLAN)]
    pub drain_targets: Vec<DrainPlanEntry>,
    /// DrainMessage says in a few words what goes on here: Evacuating, or Waiting for another node, or Drained. It
    /// names the maintenance that keeps this one from going further here, or that takes it further than its own plan
    /// says. It is empty outside the Drain stage.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(tag = 3)]
    pub drain_message: String,
    /// Number of pods that have not yet started evacuation: those on the node, targeted or not, without an unfinished
    /// EvictionRequest.
    #[schema(tag = 4, required)]
    pub pods_pending_evacuation: i32,
    /// Number of pods that have started evacuation and have a matching EvictionRequest object, whoever requested it.
    #[schema(tag = 5, required)]
    pub pods_evacuating: i32,
    /// Blockers are the pods that have been kept from leaving for the longest time, at most ten. The node itself
    /// comes first where it cannot be made unschedulable, which keeps all of its pods. The list is atomic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 6, list_type = "atomic", max_items = MAX_BLOCKERS)]
    pub blockers: Vec<Blocker>,
    /// Number of blockers: of pods that something keeps from leaving, and the node itself where it blocks.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(tag = 7)]
    pub blocked_pods: i32,
    /// Left counts the pods that are left on the node by the entry of .spec.drainPlan with which they leave, in the
    /// order of the plan. Entries without such a pod are absent, and all are where the object has no room for them.
    /// The list is atomic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 8, list_type = "atomic", max_items = MAX_DRAIN_PLAN)]
    pub left: Vec<PodsLeft>,
    /// WorkloadsDrained is true in the Drain stage while no pod of type Default is left on the node, which a live
    /// read of its pods has confirmed. A node that then leaves the cluster counts as drained for the condition
    /// WorkloadsDrained.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(tag = 9)]
    pub workloads_drained: bool,
}

/// PodsLeft is the number of pods that leave with one entry of the drain plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct PodsLeft {
    /// PodType of the entry.
    #[schema(tag = 1, required)]
    pub pod_type: PodType,
    /// Priority is the podPriority of the entry.
    #[schema(tag = 2, required)]
    pub priority: i32,
    /// PodSelector of the entry. None selects all pods of the type and priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 3)]
    pub pod_selector: Option<LabelSelector>,
    /// Number of pods.
    #[schema(tag = 4, required)]
    pub count: i32,
}

/// A node by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct NodeReference {
    /// Name of the node.
    #[schema(tag = 1, required)]
    pub name: String,
}

/// Blocker is a pod that something keeps from leaving its node, or a node that cannot be made unschedulable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct Blocker {
    /// Pod that does not leave. Its fields are empty where the node itself blocks.
    #[schema(tag = 1, required)]
    pub pod: PodReference,
    /// Reason is one of PodDisruptionBudget, AdmissionWebhook, Interceptor, Terminating, Finalizer, WorkloadPod,
    /// WorkloadReturns, DaemonSetReturns, NodeUnreachable, NodeUpdateRefused, NoNodeAgent, RequestWithdrawn,
    /// WrongTarget, NoSchedulableNode, Other. Clients must accept unknown values.
    #[schema(tag = 2, required)]
    pub reason: String,
    /// Message provides human-readable details: which budget, webhook, interceptor, finalizer, workload or node, and
    /// why. What an interceptor says that is not Drydock's stands in quotes behind its name, and its reason is
    /// Interceptor. It names the heading of controllers/README.md that tells what to do. While the same blocks, the
    /// message changes once a minute at most.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(tag = 3)]
    pub message: String,
    /// SinceTime is when the pod or node was first seen to be blocked.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    #[schema(tag = 4)]
    pub since_time: Option<Timestamp>,
}

/// A pod in any namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct PodReference {
    /// Namespace of the pod.
    #[schema(tag = 1, required)]
    pub namespace: String,
    /// Name of the pod.
    #[schema(tag = 2, required)]
    pub name: String,
    /// UID of the pod.
    #[schema(tag = 3, required)]
    pub uid: String,
}

/// Maximum number of blockers in the status of a node.
pub const MAX_BLOCKERS: usize = 10;
