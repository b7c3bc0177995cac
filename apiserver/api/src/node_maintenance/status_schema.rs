//! The schema of NodeMaintenance's status.

use drydock_machinery::schema::{ListType, Schema, Shape};

use super::enumerations::{POD_TYPES, STAGES};
use super::limits::{MAX_DRAIN_PLAN, MAX_NODES};
use super::schema::drain_plan_entry;
use super::status::MAX_BLOCKERS;
use crate::meta_schema::{boolean, int32, int64, string, time};
use drydock_machinery::schema::common::{
    conditions_schema, label_selector_schema, list, object, optional, required,
};

/// The schema of `status`.
pub(super) fn status() -> Schema {
    let fields = vec![
        optional(
            "observedGeneration",
            1,
            int64("NodeMaintenance's .metadata.generation observed by the node maintenance controller."),
        ),
        optional(
            "stageStatuses",
            2,
            list(
                "StageStatuses tracks the statuses of started stages. The API server notes a stage in the write that sets it; the node maintenance controller adds the time.",
                stage_status(),
                ListType::Map(&["name"]),
            )
            .at_most(STAGES.len()),
        ),
        optional(
            "nodeStatuses",
            3,
            list(
                "NodeStatuses says for each selected node how far it is: which pods are asked to leave, how many are left, and what blocks. A node that left the cluster undrained stays in it. Each node stands in it once. The list is atomic and holds at most 4000 nodes.",
                node_status(),
                ListType::Atomic,
            )
            .at_most(MAX_NODES),
        ),
        optional(
            "conditions",
            4,
            conditions_schema(
                "Conditions contain information about the node maintenance.\n\nCordoned signals whether every selected node is unschedulable. It is absent before the Cordon stage; True with reason AllNodesCordoned; False with reason Cordoning, NodeUpdateRefused (a node cannot be made unschedulable; the message has the words of the refusal) or NoNodesSelected; and False with reason Uncordoned in the Complete stage.\n\nPodsWillBeLost signals from the Cordon stage on, so that it can be read before the drain, that pods which are to leave have no controller, so that nobody creates them again, or have an emptyDir volume, whose data is lost. Its message counts them. Mirror pods of static pods are not among them. False with reason Completed in the Complete stage: pods that are still there stay.\n\nDrained signals whether all pods pending termination have terminated on all target nodes when drain is requested by the maintenance object. It is absent before the Drain stage; False with reason Draining, NoNodesSelected, or StatusTooLarge (the status has no room for nodes or drain targets: select fewer nodes); True with reason AllPodsTerminated; False again when a pod appears during Drain; and does not change any more in the Complete stage (False with reason Canceled if it was not True). A node that leaves the cluster after it was drained counts as drained; one that leaves it before keeps Drained False. Pods of types after lastPodType do not count. While only pods are left of DaemonSets that return or of a node without an agent, its message has the commands with which to go on.\n\nWorkloadsDrained is as Drained, and counts pods of type Default alone: wait for it where DaemonSets return as often as their pods are deleted, or static pods stay.\n\nEvictedPodsUnschedulable signals that pods which controllers made in the place of evicted ones find no other node; its message counts them by controller and has the scheduler's words. It is absent until there was such a pod, and False with reason Completed in the Complete stage, when nobody follows it any more.",
            ),
        ),
        optional(
            "drainPlanPosition",
            5,
            int32(
                "DrainPlanPosition is the index of the current entry of .spec.drainPlan: pods that this entry or an earlier one selects have been reached. It goes back when a node joins the maintenance whose pods an earlier entry selects, so that this node is drained in order too. It is absent before the Drain stage.",
            ),
        ),
        optional(
            "drainedNodes",
            6,
            int32(
                "DrainedNodes is the number of nodes that are drained: those selected now that all pods have left, and those that left the cluster after that. A node that left the cluster before does not count.",
            ),
        ),
        optional("outcomes", 7, outcomes()),
        optional("goneNodes", 8, gone_nodes()),
    ];
    object(
        "Status represents the most recently observed status of the node maintenance. Populated by the node maintenance controller. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status",
        "io.k8s.api.coordination.v1alpha1.NodeMaintenanceStatus",
        fields,
    )
}

fn gone_nodes() -> Schema {
    let fields = vec![
        optional(
            "drained",
            1,
            int32("Drained is the number of nodes that left the cluster after they were drained."),
        ),
        optional(
            "undrained",
            2,
            int32(
                "Undrained is the number of nodes that left the cluster with pods on them, or before their last pod was confirmed to have left. They keep Drained False until they come back, or until .spec.nodeSelector is changed so that it selects them no longer. .status.nodeStatuses names them where it has room.",
            ),
        ),
    ];
    object(
        "GoneNodes counts the nodes that left the cluster while this maintenance drained them.",
        "io.k8s.api.coordination.v1alpha1.NodeMaintenanceGoneNodes",
        fields,
    )
}

fn outcomes() -> Schema {
    let fields = vec![
        optional("evicted", 1, int32("Evicted is the number of eviction requests that ended as Evicted.")),
        optional(
            "canceled",
            2,
            int32(
                "Canceled is the number of eviction requests that were canceled, withdrawn or deleted before their pod had left. A pod that is asked to leave again counts each time.",
            ),
        ),
        optional(
            "passedOver",
            3,
            int32(
                "PassedOver is the number of turns that passed to the next interceptor because nothing was heard of the active one.",
            ),
        ),
        optional(
            "returned",
            4,
            int32(
                "Returned is the number of pods that were put on a node again after another pod of their workload had been evicted from there; or of their namespace, if no workload explains them that was there before the drain.",
            ),
        ),
    ];
    object(
        "Outcomes counts what became of the eviction requests of this maintenance. The counts stay when the requests are gone. What happens shortly before the controller is restarted may be missing.",
        "io.k8s.api.coordination.v1alpha1.NodeMaintenanceOutcomes",
        fields,
    )
}

fn stage_status() -> Schema {
    object(
        "StageStatus tracks the status of a started stage.",
        "io.k8s.api.coordination.v1alpha1.StageStatus",
        vec![
            required("name", 1, Schema { enumeration: STAGES, ..string("Name of the Stage.") }),
            optional(
                "startTimestamp",
                2,
                time("StartTimestamp is the time that indicates the start of this stage."),
            ),
        ],
    )
}

fn node_status() -> Schema {
    let node_ref = object(
        "NodeRef identifies a Node.",
        "io.k8s.api.coordination.v1alpha1.NodeReference",
        vec![required("name", 1, string("Name of the node."))],
    );
    let targets = "DrainTargets specifies which pods on this node are currently being targeted for evacuation. Once evacuation of the Default PodType finishes, DaemonSet PodType entries appear. Once the evacuation of DaemonSet PodType finishes, Static PodType entries appear. The PodPriority for these entries is increased over time according to the .spec.drainPlan as the lower-priority pods finish evacuation. The next entry in the .spec.drainPlan is selected once all the nodes have reached their DrainTargets.\n\nIf there are multiple NodeMaintenances for a node, the least powerful DrainTargets among them are selected and set for all the NodeMaintenances for that node. Thus, the DrainTargets do not have to correspond to the entries in .spec.drainPlan for a single NodeMaintenance instance.\n\nDrainTargets cannot backtrack and will target more pods with each update until all pods on the node are targeted. The list is atomic.";
    let blockers = "Blockers are the pods that have been kept from leaving for the longest time, at most ten. The node itself comes first where it cannot be made unschedulable, which keeps all of its pods. The list is atomic.";
    let fields = vec![
        required("nodeRef", 1, node_ref),
        optional("drainTargets", 2, list(targets, drain_plan_entry(), ListType::Atomic).at_most(MAX_DRAIN_PLAN)),
        optional(
            "drainMessage",
            3,
            string(
                "DrainMessage says in a few words what goes on here: Evacuating, or Waiting for another node, or Drained. It names the maintenance that keeps this one from going further here, or that takes it further than its own plan says. It is empty outside the Drain stage.",
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
        optional("blockers", 6, list(blockers, blocker(), ListType::Atomic).at_most(MAX_BLOCKERS)),
        optional(
            "blockedPods",
            7,
            int32(
                "Number of blockers: of pods that something keeps from leaving, and the node itself where it blocks.",
            ),
        ),
        optional(
            "left",
            8,
            list(
                "Left counts the pods that are left on the node by the entry of .spec.drainPlan with which they leave, in the order of the plan. Entries without such a pod are absent, and all are where the object has no room for them. The list is atomic.",
                pods_left(),
                ListType::Atomic,
            )
            .at_most(MAX_DRAIN_PLAN),
        ),
        optional(
            "workloadsDrained",
            9,
            boolean(
                "WorkloadsDrained is true in the Drain stage while no pod of type Default is left on the node, which a live read of its pods has confirmed. A node that then leaves the cluster counts as drained for the condition WorkloadsDrained.",
            ),
        ),
    ];
    object(
        "NodeMaintenanceNodeStatus is the status of the maintenance on one node.",
        "io.k8s.api.coordination.v1alpha1.NodeMaintenanceNodeStatus",
        fields,
    )
}

fn pods_left() -> Schema {
    let selector = "PodSelector of the entry. None selects all pods of the type and priority.";
    let fields = vec![
        required("podType", 1, Schema { enumeration: POD_TYPES, ..string("PodType of the entry.") }),
        required("priority", 2, int32("Priority is the podPriority of the entry.")),
        optional("podSelector", 3, label_selector_schema(selector)),
        required("count", 4, int32("Number of pods.")),
    ];
    object(
        "PodsLeft is the number of pods that leave with one entry of the drain plan.",
        "io.k8s.api.coordination.v1alpha1.PodsLeft",
        fields,
    )
}

fn blocker() -> Schema {
    let pod = object(
        "Pod that does not leave. Its fields are empty where the node itself blocks.",
        "io.k8s.api.coordination.v1alpha1.PodReference",
        vec![
            required("namespace", 1, string("Namespace of the pod.")),
            required("name", 2, string("Name of the pod.")),
            required("uid", 3, string("UID of the pod.")),
        ],
    );
    object(
        "Blocker is a pod that something keeps from leaving its node, or a node that cannot be made unschedulable.",
        "io.k8s.api.coordination.v1alpha1.Blocker",
        vec![
            required("pod", 1, pod),
            required(
                "reason",
                2,
                string(
                    "Reason is one of PodDisruptionBudget, AdmissionWebhook, Interceptor, Terminating, Finalizer, WorkloadPod, WorkloadReturns, DaemonSetReturns, NodeUnreachable, NodeUpdateRefused, NoNodeAgent, RequestWithdrawn, WrongTarget, NoSchedulableNode, Other. Clients must accept unknown values.",
                ),
            ),
            optional(
                "message",
                3,
                string(
                    "Message provides human-readable details: which budget, webhook, interceptor, finalizer, workload or node, and why. What an interceptor says that is not Drydock's stands in quotes behind its name, and its reason is Interceptor. It names the heading of controllers/README.md that tells what to do. While the same blocks, the message changes once a minute at most.",
                ),
            ),
            optional(
                "sinceTime",
                4,
                Schema::new("SinceTime is when the pod or node was first seen to be blocked.", Shape::Time),
            ),
        ],
    )
}
