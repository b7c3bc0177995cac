//! The schema of NodeMaintenance: KEP-4212's fields and words, and what api.md settles besides.
//!
//! The seed gives no protobuf numbers; these are ours, in the order of its structs.

use drydock_machinery::schema::{ListType, Schema, Shape};

use super::enumerations::{POD_TYPES, STAGES};
use super::types::MAX_BLOCKERS;
use super::validation::{MAX_DRAIN_PLAN, MAX_NODES};
use crate::meta_schema::{
    conditions, field, int32, int64, label_selector, list, node_selector, object, object_meta, required,
    string, time, top_level,
};

/// The schema of the whole object.
pub fn schema() -> Schema {
    top_level(
        "NodeMaintenance serves as an intent to remove or migrate pods from a set of nodes.\n\nStages of the maintenance:\n\n1. Planning: let the users know that maintenance will be performed on a particular set of nodes in the future. Configured with .spec.stage=Idle.\n2. Cordon: stop accepting (scheduling) new pods. Configured with .spec.stage=Cordon.\n3. Drain: gives an intent to drain all selected nodes by creating EvictionRequest objects for the node's pods. Configured with .spec.stage=Drain.\n4. Drain Complete: all targeted pods have been drained from all the selected nodes. The nodes can be upgraded, restarted, or shut down. The configuration is still kept at .spec.stage=Drain and Drained condition is set to \"True\".\n5. Maintenance Complete: make the nodes schedulable again once the node maintenance is done. Configured with .spec.stage=Complete.",
        "io.k8s.api.coordination.v1alpha1.NodeMaintenance",
        object_meta(
            "Object's metadata. The finalizer nodemaintenance.k8s.io/maintenance-completion is placed on the object when a stage other than Idle is set, to ensure that the nodes are released on deletion. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
        ),
        spec(),
        status(),
    )
}

fn spec() -> Schema {
    let stage = Schema {
        default: Some("\"Idle\""),
        enumeration: STAGES,
        ..string(
            "Stage of the maintenance. The order of the stages is Idle -> Cordon -> Drain -> Complete; it can only move forward, and stages can be skipped.\n\n- Idle does not interact with the cluster.\n- Cordon cordons all selected nodes by making them unschedulable.\n- Drain cordons all selected nodes and gives an intent to drain them by creating EvictionRequest objects for the node's pods.\n- Complete withdraws from all EvictionRequest objects requested by this NodeMaintenance and uncordons all selected nodes by making them schedulable again, unless there is another maintenance in progress.\n\nThe NodeMaintenance object is moved to the Complete stage on deletion unless the Idle stage has been set. The default value is Idle.",
        )
    };
    let plan = "DrainPlan is executed from the first entry to the last entry during the Drain stage. DrainPlanEntry podType fields should be in the following order: Default -> DaemonSet -> Static. DrainPlanEntry priority fields should be in ascending order for each podType. If the priority and podType are the same, concrete selectors are executed first.\n\nThe following entries are injected into the drainPlan where they are absent, for each podType: podPriority 1000000000 (highest priority for user defined priority classes), 2000000000 (system-cluster-critical priority class), 2000001000 (system-node-critical priority class) and 2147483647 (maximum value).\n\nDuplicate entries are not allowed, and entries out of order are rejected. All podSelectors together may have at most 1000 labels and expressions and 4096 values. The maximum length of the list is 512. The list is atomic. This field is immutable.";
    let fields = vec![
        required(
            "nodeSelector",
            1,
            node_selector(
                "NodeSelector selects nodes for this node maintenance. Nodes that leave the selection are released, nodes that join start at the current drain target. All terms together may have at most 1000 requirements and 4096 values. This field is required.",
            ),
        ),
        field("stage", 2, stage),
        field("drainPlan", 3, list(plan, drain_plan_entry(), ListType::Atomic).at_most(MAX_DRAIN_PLAN)),
        field("reason", 4, string("Reason for the maintenance.")),
    ];
    object(
        "Spec defines which nodes are maintained, how far, and in which order their pods leave. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status",
        "io.k8s.api.coordination.v1alpha1.NodeMaintenanceSpec",
        fields,
    )
}

fn drain_plan_entry() -> Schema {
    let pod_type = Schema {
        default: Some("\"Default\""),
        enumeration: POD_TYPES,
        ..string(
            "PodType selects pods according to the pod type:\n\n- Default selects all pods except DaemonSet and Static pods.\n- DaemonSet selects DaemonSet pods.\n- Static selects static pods.\n\nThe default value is Default.",
        )
    };
    let fields = vec![
        field(
            "podSelector",
            1,
            label_selector(
                "PodSelector selects pods according to their labels. This can help to select which pods of the same priority should be evacuated first. An empty selector is the same as none.",
            ),
        ),
        required(
            "podPriority",
            2,
            int32(
                "PodPriority specifies a pod priority. Pods with a priority less or equal to this value are selected.",
            ),
        ),
        field("podType", 3, pod_type),
    ];
    object(
        "DrainPlanEntry selects pods by their type, their priority and their labels.",
        "io.k8s.api.coordination.v1alpha1.DrainPlanEntry",
        fields,
    )
}

fn status() -> Schema {
    let stage_status = object(
        "StageStatus tracks the status of a started stage.",
        "io.k8s.api.coordination.v1alpha1.StageStatus",
        vec![
            required("name", 1, Schema { enumeration: STAGES, ..string("Name of the Stage.") }),
            field(
                "startTimestamp",
                2,
                time("StartTimestamp is the time that indicates the start of this stage."),
            ),
        ],
    );
    let fields = vec![
        field(
            "observedGeneration",
            1,
            int64("NodeMaintenance's .metadata.generation observed by the node maintenance controller."),
        ),
        field(
            "stageStatuses",
            2,
            list(
                "StageStatuses tracks the statuses of started stages. The API server notes a stage in the write that sets it; the node maintenance controller adds the time.",
                stage_status,
                ListType::Map(&["name"]),
            )
            .at_most(STAGES.len()),
        ),
        field(
            "nodeStatuses",
            3,
            list(
                "List of a maintenance statuses for all nodes targeted by this maintenance. A node stands in it once. The list is atomic. It holds at most 4000 nodes.",
                node_status(),
                ListType::Atomic,
            )
            .at_most(MAX_NODES),
        ),
        field(
            "conditions",
            4,
            conditions(
                "Conditions contain information about the node maintenance.\n\nDrained signals whether all pods pending termination have terminated on all target nodes when drain is requested by the maintenance object. It is absent before the Drain stage; False with reason Draining or NoNodesSelected; True with reason AllPodsTerminated; False again when a pod appears during Drain; and does not change any more in the Complete stage (False with reason Canceled if it was not True).",
            ),
        ),
    ];
    object(
        "Status represents the most recently observed status of the node maintenance. Populated by the node maintenance controller. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status",
        "io.k8s.api.coordination.v1alpha1.NodeMaintenanceStatus",
        fields,
    )
}

fn node_status() -> Schema {
    let node_ref = object(
        "NodeRef identifies a Node.",
        "io.k8s.api.coordination.v1alpha1.NodeReference",
        vec![required("name", 1, string("Name of the node."))],
    );
    let targets = "DrainTargets specifies which pods on this node are currently being targeted for evacuation. Once evacuation of the Default PodType finishes, DaemonSet PodType entries appear. Once the evacuation of DaemonSet PodType finishes, Static PodType entries appear. The PodPriority for these entries is increased over time according to the .spec.drainPlan as the lower-priority pods finish evacuation. The next entry in the .spec.drainPlan is selected once all the nodes have reached their DrainTargets.\n\nIf there are multiple NodeMaintenances for a node, the least powerful DrainTargets among them are selected and set for all the NodeMaintenances for that node. Thus, the DrainTargets do not have to correspond to the entries in .spec.drainPlan for a single NodeMaintenance instance.\n\nDrainTargets cannot backtrack and will target more pods with each update until all pods on the node are targeted. The list is atomic.";
    let blockers = "Blockers are the pods that have been kept from leaving for the longest time, at most ten. The list is atomic.";
    let fields = vec![
        required("nodeRef", 1, node_ref),
        field("drainTargets", 2, list(targets, drain_plan_entry(), ListType::Atomic).at_most(MAX_DRAIN_PLAN)),
        field(
            "drainMessage",
            3,
            string(
                "DrainMessage may specify a state of the drain on this node and a reason why the drain targets are set to a particular values.",
            ),
        ),
        required(
            "podsPendingEvacuation",
            4,
            int32(
                "Number of pods that have not yet started evacuation: those on the node, targeted or not, without an unfinished EvictionRequest.",
            ),
        ),
        required(
            "podsEvacuating",
            5,
            int32(
                "Number of pods that have started evacuation and have a matching EvictionRequest object, whoever requested it.",
            ),
        ),
        field("blockers", 6, list(blockers, blocker(), ListType::Atomic).at_most(MAX_BLOCKERS)),
        field("blockedPods", 7, int32("Number of pods that something keeps from leaving.")),
    ];
    object(
        "NodeMaintenanceNodeStatus is the status of the maintenance on one node.",
        "io.k8s.api.coordination.v1alpha1.NodeMaintenanceNodeStatus",
        fields,
    )
}

fn blocker() -> Schema {
    let pod = object(
        "Pod that does not leave.",
        "io.k8s.api.coordination.v1alpha1.PodReference",
        vec![
            required("namespace", 1, string("Namespace of the pod.")),
            required("name", 2, string("Name of the pod.")),
            required("uid", 3, string("UID of the pod.")),
        ],
    );
    object(
        "Blocker is a pod that something keeps from leaving its node.",
        "io.k8s.api.coordination.v1alpha1.Blocker",
        vec![
            required("pod", 1, pod),
            required(
                "reason",
                2,
                string(
                    "Reason is one of PodDisruptionBudget, AdmissionWebhook, Interceptor, Terminating, Finalizer, WorkloadPod, DaemonSetReturns, NoNodeAgent, RequestWithdrawn, WrongTarget, NoSchedulableNode, Other. Clients must accept unknown values.",
                ),
            ),
            field(
                "message",
                3,
                string(
                    "Message provides human-readable details: which budget, webhook, interceptor or finalizer, and why.",
                ),
            ),
            field(
                "sinceTime",
                4,
                Schema::new("SinceTime is when the pod was first seen to be blocked.", Shape::Time),
            ),
        ],
    )
}
