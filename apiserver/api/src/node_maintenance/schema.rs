//! The schema of NodeMaintenance: the fields and descriptions of KEP-4212, with a few changes.
//!
//! The KEP gives no protobuf numbers. They are assigned here, in the order of its structs; a new field takes the next free
//! number, and never one that was used.

use drydock_machinery::schema::{ListType, Schema};

use super::enumerations::{POD_TYPES, STAGES};
use super::limits::MAX_DRAIN_PLAN;
use super::status_schema::status;
use crate::meta_schema::{int32, object_meta, string, top_level};
use drydock_machinery::schema::common::{
    label_selector_schema, list, node_selector_schema, object, optional, required,
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
    let plan = "DrainPlan is executed from the first entry to the last entry during the Drain stage. DrainPlanEntry podType fields should be in the following order: Default -> DaemonSet -> Static. DrainPlanEntry priority fields should be in ascending order for each podType. If the priority and podType are the same, concrete selectors are executed first.\n\nThe following entries are injected into the drainPlan where they are absent, for each podType up to lastPodType: podPriority 1000000000 (highest priority for user defined priority classes), 2000000000 (system-cluster-critical priority class), 2000001000 (system-node-critical priority class) and 2147483647 (maximum value).\n\nDuplicate entries are not allowed, and entries out of order are rejected. All podSelectors together may have at most 1000 labels and expressions and 4096 values. The maximum length of the list is 512. The list is atomic. This field is immutable.";
    let fields = vec![
        required(
            "nodeSelector",
            1,
            node_selector_schema(
                "NodeSelector selects nodes for this node maintenance. Nodes that leave the selection are released, nodes that join are drained in the order of the plan, and never below what the node already shows. All terms together may have at most 1000 requirements and 4096 values. This field is required.",
            ),
        ),
        optional("stage", 2, stage),
        optional("drainPlan", 3, list(plan, drain_plan_entry(), ListType::Atomic).at_most(MAX_DRAIN_PLAN)),
        optional("reason", 4, string("Reason for the maintenance.")),
        optional("lastPodType", 5, last_pod_type()),
    ];
    object(
        "Spec defines which nodes are maintained, how far, and in which order their pods leave. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status",
        "io.k8s.api.coordination.v1alpha1.NodeMaintenanceSpec",
        fields,
    )
}

fn last_pod_type() -> Schema {
    Schema {
        default: Some("\"Static\""),
        enumeration: POD_TYPES,
        ..string(
            "LastPodType is the last pod type that this maintenance drains, in the order Default -> DaemonSet -> Static. Pods of later types do not exist for it: they stay, they are not counted, they are not in the drainPlan, and they keep the Drained condition from nothing. Another maintenance on the same nodes drains them if they are up to its own lastPodType.\n\n- Default leaves DaemonSet and static pods alone, as `kubectl drain --ignore-daemonsets` does. Choose it where DaemonSets tolerate all taints, and so come back as often as their pods are deleted, or where static pods run and no node agent does.\n- DaemonSet leaves static pods alone.\n- Static drains every pod.\n\nThe default value is Static. This field is immutable.",
        )
    }
}

pub(super) fn drain_plan_entry() -> Schema {
    let pod_type = Schema {
        default: Some("\"Default\""),
        enumeration: POD_TYPES,
        ..string(
            "PodType selects pods according to the pod type:\n\n- Default selects all pods except DaemonSet and Static pods.\n- DaemonSet selects DaemonSet pods.\n- Static selects static pods.\n\nThe default value is Default.",
        )
    };
    let fields = vec![
        optional(
            "podSelector",
            1,
            label_selector_schema(
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
        optional("podType", 3, pod_type),
    ];
    object(
        "DrainPlanEntry selects pods by their type, their priority and their labels.",
        "io.k8s.api.coordination.v1alpha1.DrainPlanEntry",
        fields,
    )
}
