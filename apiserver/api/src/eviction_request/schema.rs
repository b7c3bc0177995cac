//! The schema of EvictionRequest: the fields, protobuf numbers and descriptions of KEP-4563, with a few changes.
//!
//! The KEP uses the protobuf numbers 2 and 4 twice in InterceptorStatus; here completionTime and message have the
//! next free ones. `kubectl explain` prints the descriptions.

use drydock_machinery::schema::{Field, ListType, Schema, Shape};

use super::interceptors::MAX_TARGET_INTERCEPTORS;
use super::validation::MAX_REQUESTERS;
use crate::meta_schema::{atomic_object, int32, int64, object_meta, string, time, top_level};
use drydock_machinery::schema::common::{conditions_schema, list, object, optional, required};

/// The schema of the whole object.
pub fn schema() -> Schema {
    top_level(
        "EvictionRequest defines a request that should ideally result in a graceful eviction of a .spec.target (e.g. termination of a pod).\n\n`.spec.requesters` field should be set and kept updated to preserve the eviction request.\n\nIf the target is a pod, the .status.targetInterceptors is populated from the pod's annotations interceptor.evictionrequest.coordination.k8s.io/priority_NAME.\n\nInterceptors should observe and communicate through the .status to help with the eviction of the target when they see their name present in .status.activeInterceptors. InterceptorStatus struct should then be periodically updated to indicate the progress or completion of the eviction process by each interceptor in .status.interceptors. If .status.interceptors[].heartbeatTime is not updated within 20 minutes, the eviction request is passed over to the next interceptor.\n\nIf there are no other interceptor and the target is a pod, the last default imperative-eviction.k8s.io interceptor will evict the pod through the eviction API (the subresource pods/eviction).\n\nThe object without its status is at most 65536 bytes of JSON, managed fields included. At most 1000 eviction requests of a namespace may wait for .status.targetInterceptors, or to be deleted, at one time. At most 5000 that are Evicted or Canceled are kept in a namespace.",
        "io.k8s.api.coordination.v1alpha1.EvictionRequest",
        object_meta(
            "Object's metadata. .metadata.name should match the .metadata.uid of the pod being evicted. .metadata.generateName is not supported. The labels of the eviction request object are synchronized with .metadata.labels of the eviction request's target. The labels of the target have a preference. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
        ),
        spec(),
        status(),
    )
}

fn spec() -> Schema {
    let requester = atomic_object(
        "Requester allows you to identify the entity, that requested the eviction of the target. It is atomic: an applier sends its whole entry.",
        "io.k8s.api.coordination.v1alpha1.Requester",
        vec![required(
            "name",
            1,
            string(
                "Name must be a fully qualified domain name of at most 253 characters in length, consisting only of lowercase alphanumeric characters, periods and hyphens (e.g. foo.example.com). This field must be unique for each requester. This field is required.",
            ),
        )],
    );
    let fields = vec![
        required("target", 1, target()),
        optional(
            "requesters",
            2,
            list(
                "Requesters allow you to identify entities, that requested the eviction of the target. At least one requester is required when creating an eviction request. A requester is also required for the eviction request to be processed. Empty list indicates that the eviction request should be canceled.\n\nRequester controllers are expected to reconcile this field and not overwrite any changes made by other controllers (e.g. via Server-Side Apply) in order to prevent conflicts and manage ownership. A requester may not be added once the request is Evicted or Canceled, nor while it is being deleted. Each item is atomic: an applier sends its whole entry.\n\nThe maximum length of the requesters list is 100.",
                requester,
                ListType::Map(&["name"]),
            )
            .at_most(MAX_REQUESTERS),
        ),
    ];
    object(
        "Spec defines the eviction request specification. This field is required. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status",
        "io.k8s.api.coordination.v1alpha1.EvictionRequestSpec",
        fields,
    )
}

fn target() -> Schema {
    let pod = object(
        "Pod references a pod that is subject to eviction/termination. Pods that are part of the workload (.spec.workloadRef or .spec.schedulingGroup is set) are not supported. This field is immutable.",
        "io.k8s.api.coordination.v1alpha1.LocalPodReference",
        vec![
            required("name", 1, string("Name of the pod. This field is required.")),
            required("uid", 2, string("UID of the pod. This field is required.")),
        ],
    );
    object(
        "Target contains a reference to an object (e.g. a pod) that should be evicted. Exactly one member must be set. Target UID must be the same as the EvictionRequest's .metadata.name. This field is immutable.",
        "io.k8s.api.coordination.v1alpha1.EvictionTarget",
        vec![optional("pod", 1, pod)],
    )
}

fn status() -> Schema {
    let activation = "ActivationTime is when .status.activeInterceptors last changed to another interceptor. It is set to the present time with that change and stays when the list is cleared. The deadline of an interceptor that has not set its heartbeatTime runs from here.";
    let mut fields = vec![
        optional(
            "observedGeneration",
            1,
            int64(
                "EvictionRequest's .metadata.generation observed by the eviction request controller. It never goes back. This field is managed by Kubernetes.",
            ),
        ),
        optional(
            "conditions",
            2,
            conditions_schema(
                "Conditions contain information about the eviction request.\n\nEviction request specific conditions are: Evicted or Canceled (managed by Kubernetes). Both are final once True, and never both are.\n\n- Canceled means that the eviction request is no longer being processed by any eviction interceptor because the eviction request has been canceled. Reasons: NoRequesters, ValidationFailed, RequestDeleted (finalizers keep a request that was deleted).\n- Evicted means that the target has been evicted (e.g. a pod has been terminated or deleted). Reasons: PodTerminated, PodDeleted.\n\nConditions of other types are together at most 262144 bytes of JSON.",
            ),
        ),
        optional(
            "targetInterceptors",
            3,
            list(
                "TargetInterceptors reference interceptors that should eventually respond to this eviction request to help with the graceful eviction of a target. These interceptors are selected sequentially, in the order in which they appear in the list and are added to the .status.activeInterceptors in a rolling fashion.\n\nIf the target is a pod, the field is populated from the pod's annotations interceptor.evictionrequest.coordination.k8s.io/priority_NAME: \"PRIORITY/ROLE\". Where the cluster's pods have a field .spec.evictionInterceptors or .spec.evictionResponders, which Kubernetes 1.36 does not, and it is set, the field counts instead. Default interceptors are added to the list according to the target: daemonset.apps.k8s.io for a pod of a DaemonSet, kubelet.k8s.io for a mirror pod, and always imperative-eviction.k8s.io at the end of the list. It creates an Eviction (the subresource pods/eviction). This may not succeed due to PodDisruptionBudgets, which may block the pod termination. It will update the interceptor message and try again with a backoff.\n\nThe maximum length of the interceptors list is 17: 15 of the pod and the defaults. Names under k8s.io are reserved. Each item is atomic: an applier sends its whole entry. This field is immutable once set. This field is managed by Kubernetes.",
                interceptor(),
                ListType::Map(&["name"]),
            )
            .at_most(MAX_TARGET_INTERCEPTORS),
        ),
    ];
    fields.extend(turn_fields());
    fields.push(optional("activationTime", 7, Schema::new(activation, Shape::MicroTime)));
    fields.push(optional("podInfo", 8, pod_info()));
    object(
        "Status represents the most recently observed status of the eviction request. Populated by interceptors and eviction request controller. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status",
        "io.k8s.api.coordination.v1alpha1.EvictionRequestStatus",
        fields,
    )
}

/// The lists of active and processed interceptors, and of their statuses.
fn turn_fields() -> Vec<Field> {
    vec![
        optional(
            "activeInterceptors",
            4,
            list(
                "ActiveInterceptors store a list of interceptors that should currently interact with the eviction process by updating .status.interceptors[], where .name is the active interceptor name. InterceptorStatus fields should be periodically updated to indicate the progress or completion of the eviction process. If .status.interceptors[].heartbeatTime field is not updated within 20 minutes, the eviction request is passed over to the next interceptor.\n\nThe maximum allowed number of active interceptors is 1. When .status.interceptors[].completionTime is set, the next interceptor takes its place. The list is cleared when the request ends. This field is managed by Kubernetes.",
                string(""),
                ListType::Set,
            )
            .at_most(1),
        ),
        optional(
            "processedInterceptors",
            5,
            list(
                "ProcessedInterceptors store a list of interceptors that have previously been selected and added to ActiveInterceptors. These interceptors may have reached completion, been canceled, failed to start or failed to update .interceptors[].heartbeatTime in a timely manner. Please refer to the InterceptorStatus for each interceptor for more details. The maximum length of the list is 17. This field is managed by Kubernetes.",
                string(""),
                ListType::Set,
            )
            .at_most(MAX_TARGET_INTERCEPTORS),
        ),
        optional(
            "interceptors",
            6,
            list(
                "Interceptors represents the eviction process status of each declared interceptor. Only ActiveInterceptors should update the interceptor statuses.\n\nThe interceptor list should be the same length and have the same .name fields as .status.targetInterceptors. Only interceptors with .name that are included in .status.activeInterceptors can be mutated. First initialization of the list is allowed.\n\nEach InterceptorStatus is managed by the designated interceptor. Each item is atomic: an applier sends its whole entry.",
                interceptor_status(),
                ListType::Map(&["name"]),
            )
            .at_most(MAX_TARGET_INTERCEPTORS),
        ),
    ]
}

fn pod_info() -> Schema {
    atomic_object(
        "PodInfo tells where the target pod is and in which part of a drain it belongs, for tools that join and sort eviction requests. It is set together with the first turn and immutable once set. This field is managed by Kubernetes.",
        "io.k8s.api.coordination.v1alpha1.PodInfo",
        vec![
            optional(
                "nodeName",
                1,
                string(
                    "NodeName is the name of the pod's node. It is empty if the pod was not bound to one. The maximum length is 512 characters.",
                ),
            ),
            required("priority", 2, int32("Priority of the pod (.spec.priority), 0 if it has none.")),
            required(
                "podType",
                3,
                string(
                    "PodType is Default, DaemonSet (the pod's controller is a DaemonSet) or Static (it mirrors a static pod), as in the drainPlan of a NodeMaintenance. Clients should accept unknown values. The maximum length is 64 characters.",
                ),
            ),
        ],
    )
}

const BLOCKED: &str = "Blocked tells what keeps the interceptor from evicting the target at present; absent if nothing does. It changes when the cause does, and not with the numbers of a PodDisruptionBudget: read these from the budget. The message has those of the last refused attempt.";
const LAST_BLOCKED: &str = "LastBlocked is what blocked when the owner of the target was last told of it by the event EvictionBlocked. It stays when nothing blocks any more. The requester nodemaintenance.k8s.io keeps an evicted request that has it for an hour.";

fn blocked(description: &'static str) -> Schema {
    atomic_object(
        description,
        "io.k8s.api.coordination.v1alpha1.Blocked",
        vec![
            required(
                "reason",
                1,
                string(
                    "Reason is the kind of cause: PodDisruptionBudget, AdmissionWebhook, Terminating, Finalizer, NodeUpdateRefused, DaemonSetReturns, Other. Clients should accept unknown values. The maximum length is 64 characters.",
                ),
            ),
            optional(
                "name",
                2,
                string(
                    "Name of the PodDisruptionBudget (two, separated by a comma, if several cover the pod), of the admission webhook or policy, of the finalizer, of the node, or of the DaemonSet. The maximum length is 512 characters.",
                ),
            ),
            optional(
                "state",
                3,
                string(
                    "State is the way in which a PodDisruptionBudget blocks: ShortNow (too few pods are healthy now), NeverAllows (desiredHealthy is not below expectedPods), SeveralBudgets (the eviction API does not support more than one), NotObserved (the budget's spec is still being processed), KeepsUnhealthy (the pod is not ready, and unhealthyPodEvictionPolicy keeps it). Clients should accept unknown values. The maximum length is 64 characters.",
                ),
            ),
            optional(
                "sinceTime",
                4,
                time(
                    "SinceTime is since when this reason and name have blocked. Cannot be set to the future time (after taking time skew of up to 10 seconds into account).",
                ),
            ),
        ],
    )
}

fn interceptor() -> Schema {
    atomic_object(
        "Interceptor allows you to identify the interceptor responding to the EvictionRequest. Interceptors should observe and communicate through the EvictionRequest API to help with the graceful eviction of a target (e.g. termination of a pod).",
        "io.k8s.api.coordination.v1alpha1.Interceptor",
        vec![required("name", 1, string(INTERCEPTOR_NAME))],
    )
}

const INTERCEPTOR_NAME: &str = "Name must be a fully qualified domain name of at most 253 characters in length, consisting only of lowercase alphanumeric characters, periods and hyphens (e.g. bar.example.com). This field must be unique for each interceptor. This field is required and immutable.";

fn interceptor_status() -> Schema {
    let fields = vec![
        required("name", 1, string(INTERCEPTOR_NAME)),
        optional(
            "heartbeatTime",
            2,
            time(
                "HeartbeatTime is the last time at which the eviction process was reported to be in progress by the interceptor. Cannot be set to the future time (after taking time skew of up to 10 seconds into account). The time can only be incremented. There must be at least 60 second increments during subsequent updates. The first initialization of this field must also set StartTime.",
            ),
        ),
        optional(
            "expectedFinishTime",
            3,
            time(
                "ExpectedFinishTime is the time at which the eviction process step is expected to end for the interceptor. The time cannot be set to the past. May be empty if no estimate can be made.",
            ),
        ),
        optional(
            "startTime",
            4,
            time(
                "StartTime tracks the time at which the Interceptor first started processing the eviction request. It should be set to the present time (after taking time skew of up to 10 seconds into account). The initialization of this field must also set HeartbeatTime.",
            ),
        ),
        optional(
            "completionTime",
            5,
            time(
                "CompletionTime is when the interceptor ended its turn: its work is done, or as much of it as it can do, and the next interceptor has its turn. An entry with CompletionTime and no StartTime declines the turn. It must be the present time, give or take 10 seconds, and does not change any more.",
            ),
        ),
        required(
            "message",
            6,
            string(
                "Message provides human-readable details about the state of the interceptor and the eviction process. This may be an empty string. The maximum length is 4000 characters.",
            ),
        ),
        optional("blocked", 7, blocked(BLOCKED)),
        optional("lastBlocked", 8, blocked(LAST_BLOCKED)),
    ];
    atomic_object(
        "InterceptorStatus represents the last observed status of the eviction process of the interceptor. It should be only updated by the designated interceptor whose name is .name field. It is atomic: an applier sends its whole entry.",
        "io.k8s.api.coordination.v1alpha1.InterceptorStatus",
        fields,
    )
}
