//! EvictionRequest: the fields, protobuf numbers and texts of KEP-4563, with a few changes. The schema is derived from
//! the structs; validation and the controllers read them, and the controllers apply them.
//!
//! The KEP uses the protobuf numbers 2 and 4 twice in InterceptorStatus; here completionTime and message have the next
//! free ones. Unset fields are not serialized, so that a server-side apply sends only the applier's fields.

// The texts are published as they are: they are no Markdown.
#![allow(rustdoc::bare_urls)]

use drydock_machinery::schema::ApiType;
use drydock_machinery::schema::common::{API_VERSION_TEXT, CONDITIONS_MAX, KIND_TEXT};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::interceptors::{MAX_POD_INTERCEPTORS, MAX_TARGET_INTERCEPTORS};
use super::validation::MAX_REQUESTERS;
use drydock_machinery::metav1::{Condition, ObjectMeta, is_default, is_zero, time};

/// Resource name.
pub const RESOURCE: &str = "evictionrequests";

/// EvictionRequest defines a request that should ideally result in a graceful eviction of a .spec.target (e.g.
/// termination of a pod).
///
/// `.spec.requesters` field should be set and kept updated to preserve the eviction request.
///
/// If the target is a pod, the .status.targetInterceptors is populated from the pod's annotations
/// interceptor.evictionrequest.coordination.k8s.io/priority_NAME.
///
/// Interceptors should observe and communicate through the .status to help with the eviction of the target when they
/// see their name present in .status.activeInterceptors. InterceptorStatus struct should then be periodically updated
/// to indicate the progress or completion of the eviction process by each interceptor in .status.interceptors. If
/// .status.interceptors[].heartbeatTime is not updated within 20 minutes, the eviction request is passed over to the
/// next interceptor.
///
/// If there are no other interceptor and the target is a pod, the last default imperative-eviction.k8s.io interceptor
/// will evict the pod through the eviction API (the subresource pods/eviction).
///
/// The object without its status is at most 65536 bytes of JSON, managed fields included and .spec.requesterUsers left
/// out. At most 1000 eviction requests of a namespace may wait for .status.targetInterceptors, or to be deleted, at one
/// time. At most 5000 that are Evicted or Canceled are kept in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct EvictionRequest {
    /// `coordination.k8s.io/v1alpha1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(tag = 0, text = API_VERSION_TEXT)]
    pub api_version: String,
    /// `EvictionRequest`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(tag = 0, text = KIND_TEXT)]
    pub kind: String,
    /// Object's metadata. .metadata.name should match the .metadata.uid of the pod being evicted.
    /// .metadata.generateName is not supported. The labels of the eviction request object are synchronized with
    /// .metadata.labels of the eviction request's target. The labels of the target have a preference. More info:
    /// https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    #[schema(tag = 1, always)]
    pub metadata: ObjectMeta,
    /// Spec defines the eviction request specification. This field is required. More info:
    /// https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
    #[serde(skip_serializing_if = "is_default")]
    #[schema(tag = 2, required)]
    pub spec: EvictionRequestSpec,
    /// Status represents the most recently observed status of the eviction request. Populated by interceptors and
    /// eviction request controller. More info:
    /// https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
    #[serde(skip_serializing_if = "is_default")]
    #[schema(tag = 3, always)]
    pub status: EvictionRequestStatus,
}

/// What to evict, and who requests it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct EvictionRequestSpec {
    /// Target contains a reference to an object (e.g. a pod) that should be evicted. Exactly one member must be set.
    /// Target UID must be the same as the EvictionRequest's .metadata.name. This field is immutable.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(tag = 1, required)]
    pub target: EvictionTarget,
    /// Requesters allow you to identify entities, that requested the eviction of the target. At least one requester
    /// is required when creating an eviction request. A requester is also required for the eviction request to be
    /// processed. Empty list indicates that the eviction request should be canceled.
    ///
    /// Requester controllers are expected to reconcile this field and not overwrite any changes made by other
    /// controllers (e.g. via Server-Side Apply) in order to prevent conflicts and manage ownership. A requester may
    /// not be added once the request is Evicted or Canceled, nor while it is being deleted. Each item is atomic: an
    /// applier sends its whole entry.
    ///
    /// The maximum length of the requesters list is 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 2, list_type = "map", list_map_key = "name", max_items = MAX_REQUESTERS)]
    pub requesters: Vec<Requester>,
    /// RequesterUsers records which user added each requester. It is set by the API server, which ignores what a client
    /// sends. A requester keeps its user until it is removed, whoever else asks in its name; one that was added before
    /// the API server recorded users has none.
    ///
    /// The Eviction of the pod names these users, each once, in its annotations
    /// requester.evictionrequest.coordination.k8s.io/user-N, for the admission policies and webhooks of the cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 3, list_type = "map", list_map_key = "requester", max_items = MAX_REQUESTERS)]
    pub requester_users: Vec<RequesterUser>,
}

/// A union of which exactly one member is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct EvictionTarget {
    /// Pod references a pod that is subject to eviction/termination. Pods that are part of the workload
    /// (.spec.workloadRef or .spec.schedulingGroup is set) are not supported. This field is immutable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 1)]
    pub pod: Option<LocalPodReference>,
}

/// A pod in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct LocalPodReference {
    /// Name of the pod. This field is required.
    #[schema(tag = 1, required)]
    pub name: String,
    /// UID of the pod. This field is required.
    #[schema(tag = 2, required)]
    pub uid: String,
}

/// Requester allows you to identify the entity, that requested the eviction of the target. It is atomic: an applier
/// sends its whole entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1", struct_type = "atomic")]
pub struct Requester {
    /// Name must be a fully qualified domain name of at most 253 characters in length, consisting only of lowercase
    /// alphanumeric characters, periods and hyphens (e.g. foo.example.com). This field must be unique for each
    /// requester. This field is required.
    #[schema(tag = 1, required)]
    pub name: String,
}

/// RequesterUser names the user who added a requester.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1", struct_type = "atomic")]
pub struct RequesterUser {
    /// Requester is the name of the requester.
    #[schema(tag = 1, required)]
    pub requester: String,
    /// Username of the user who added the requester, or of the user whom that one impersonated. The maximum length is
    /// 1024 bytes: a user with a longer name cannot add a requester.
    #[schema(tag = 2, required)]
    pub username: String,
}

/// Interceptor allows you to identify the interceptor responding to the EvictionRequest. Interceptors should observe
/// and communicate through the EvictionRequest API to help with the graceful eviction of a target (e.g. termination
/// of a pod).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1", struct_type = "atomic")]
pub struct Interceptor {
    /// Name must be a fully qualified domain name of at most 253 characters in length, consisting only of lowercase
    /// alphanumeric characters, periods and hyphens (e.g. bar.example.com). This field must be unique for each
    /// interceptor. This field is required and immutable.
    #[schema(tag = 1, required)]
    pub name: String,
}

/// The state of the eviction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct EvictionRequestStatus {
    /// EvictionRequest's .metadata.generation observed by the eviction request controller. It never goes back. This
    /// field is managed by Kubernetes.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(tag = 1)]
    pub observed_generation: i64,
    /// Conditions contain information about the eviction request.
    ///
    /// Eviction request specific conditions are: Evicted or Canceled (managed by Kubernetes). Both are final once
    /// True, and never both are.
    ///
    /// - Canceled means that the eviction request is no longer being processed by any eviction interceptor because
    ///   the eviction request has been canceled. Reasons: NoRequesters, ValidationFailed, RequestDeleted (finalizers
    ///   keep a request that was deleted).
    /// - Evicted means that the target has been evicted (e.g. a pod has been terminated or deleted). Reasons:
    ///   PodTerminated, PodDeleted.
    ///
    /// Conditions of other types are together at most 16384 bytes of JSON.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 2, list_type = "map", list_map_key = "type", max_items = CONDITIONS_MAX)]
    pub conditions: Vec<Condition>,
    /// TargetInterceptors reference interceptors that should eventually respond to this eviction request to help with
    /// the graceful eviction of a target. These interceptors are selected sequentially, in the order in which they
    /// appear in the list and are added to the .status.activeInterceptors in a rolling fashion.
    ///
    /// If the target is a pod, the field is populated from the pod's annotations
    /// interceptor.evictionrequest.coordination.k8s.io/priority_NAME: "PRIORITY/ROLE". Where the cluster's pods have
    /// a field .spec.evictionInterceptors or .spec.evictionResponders, which Kubernetes 1.36 does not, and it is set,
    /// the field counts instead. Default interceptors are added to the list according to the target:
    /// daemonset.apps.k8s.io for a pod of a DaemonSet, kubelet.k8s.io for a mirror pod, and always
    /// imperative-eviction.k8s.io at the end of the list. It creates an Eviction (the subresource pods/eviction).
    /// This may not succeed due to PodDisruptionBudgets, which may block the pod termination. It will update the
    /// interceptor message and try again with a backoff.
    ///
    /// The maximum length of the interceptors list is 17: 15 of the pod and the defaults. Names under k8s.io are
    /// reserved; of these, the ones that no program of the cluster serves are left out. Each item is atomic: an applier sends its whole entry. This field is immutable once set. This field
    /// is managed by Kubernetes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 3, list_type = "map", list_map_key = "name", max_items = MAX_TARGET_INTERCEPTORS)]
    pub target_interceptors: Vec<Interceptor>,
    /// ActiveInterceptors store a list of interceptors that should currently interact with the eviction process by
    /// updating .status.interceptors[], where .name is the active interceptor name. InterceptorStatus fields should
    /// be periodically updated to indicate the progress or completion of the eviction process. If
    /// .status.interceptors[].heartbeatTime field is not updated within 20 minutes, the eviction request is passed
    /// over to the next interceptor.
    ///
    /// The maximum allowed number of active interceptors is 1. When .status.interceptors[].completionTime is set, the
    /// next interceptor takes its place. The list is cleared when the request ends. This field is managed by
    /// Kubernetes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 4, list_type = "set", max_items = 1)]
    pub active_interceptors: Vec<String>,
    /// ProcessedInterceptors store a list of interceptors that have previously been selected and added to
    /// ActiveInterceptors. These interceptors may have reached completion, been canceled, failed to start or failed
    /// to update .interceptors[].heartbeatTime in a timely manner. Please refer to the InterceptorStatus for each
    /// interceptor for more details. The maximum length of the list is 17. This field is managed by Kubernetes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 5, list_type = "set", max_items = MAX_TARGET_INTERCEPTORS)]
    pub processed_interceptors: Vec<String>,
    /// Interceptors represents the eviction process status of each declared interceptor. Only ActiveInterceptors
    /// should update the interceptor statuses.
    ///
    /// The interceptor list should be the same length and have the same .name fields as .status.targetInterceptors.
    /// Only interceptors with .name that are included in .status.activeInterceptors can be mutated. First
    /// initialization of the list is allowed.
    ///
    /// Each InterceptorStatus is managed by the designated interceptor. Each item is atomic: an applier sends its
    /// whole entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 6, list_type = "map", list_map_key = "name", max_items = MAX_TARGET_INTERCEPTORS)]
    pub interceptors: Vec<InterceptorStatus>,
    /// ActivationTime is when .status.activeInterceptors last changed to another interceptor. It is set to the
    /// present time with that change and stays when the list is cleared. The deadline of an interceptor that has not
    /// set its heartbeatTime runs from here.
    #[serde(with = "time::optional_micros", skip_serializing_if = "Option::is_none")]
    #[schema(tag = 7, micro_time)]
    pub activation_time: Option<Timestamp>,
    /// PodInfo tells where the target pod is and in which part of a drain it belongs, for tools that join and sort
    /// eviction requests. It is set together with the first turn and immutable once set. This field is managed by
    /// Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 8)]
    pub pod_info: Option<PodInfo>,
    /// EarlierTurns tells of the turns that interceptors of the pod have had in earlier eviction requests for it, which
    /// others deleted or withdrew while a NodeMaintenance drained its node. They get no other turn, and the pod gets 15
    /// turns of its own interceptors in all. It is set with the first turn at the latest and immutable once set. This
    /// field is managed by Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 9)]
    pub earlier_turns: Option<EarlierTurns>,
    /// InterceptionDeadline is when the turns of the pod's own interceptors are over, whatever they report: the next
    /// default interceptor, which is usually imperative-eviction.k8s.io, then has its turn. It is absent unless the
    /// cluster bounds the sum of these turns (--max-interception of drydock-controller-manager). This field is managed
    /// by Kubernetes.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    #[schema(tag = 10)]
    pub interception_deadline: Option<Timestamp>,
}

/// EarlierTurns tells of the turns that interceptors of a pod have had in earlier eviction requests for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1", struct_type = "atomic")]
pub struct EarlierTurns {
    /// Interceptors that have had a turn: it ended, or its interceptor had not reported when the request was ended. One
    /// that was interrupted while it worked is not among them. The maximum length is 15.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 1, list_type = "atomic", max_items = MAX_POD_INTERCEPTORS)]
    pub interceptors: Vec<String>,
    /// Seconds that these turns took together.
    #[schema(tag = 2, required)]
    pub seconds: i64,
}

/// The pod's node, and the properties that decide when a drain evicts it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1", struct_type = "atomic")]
pub struct PodInfo {
    /// NodeName is the name of the pod's node. It is empty if the pod was not bound to one. The maximum length is 512
    /// characters.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(tag = 1)]
    pub node_name: String,
    /// Priority of the pod (.spec.priority), 0 if it has none.
    #[schema(tag = 2, required)]
    pub priority: i32,
    /// PodType is Default, DaemonSet (the pod's controller is a DaemonSet that is not being deleted) or Static (it
    /// mirrors a static pod), as in the drainPlan of a NodeMaintenance. Clients should accept unknown values. The
    /// maximum length is 64 characters.
    #[schema(tag = 3, required)]
    pub pod_type: String,
}

/// InterceptorStatus represents the last observed status of the eviction process of the interceptor. It should be
/// only updated by the designated interceptor whose name is .name field. It is atomic: an applier sends its whole
/// entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1", struct_type = "atomic")]
pub struct InterceptorStatus {
    /// Name must be a fully qualified domain name of at most 253 characters in length, consisting only of lowercase
    /// alphanumeric characters, periods and hyphens (e.g. bar.example.com). This field must be unique for each
    /// interceptor. This field is required and immutable.
    #[schema(tag = 1, required)]
    pub name: String,
    /// HeartbeatTime is the last time at which the eviction process was reported to be in progress by the
    /// interceptor. Cannot be set to the future time (after taking time skew of up to 10 seconds into account). The
    /// time can only be incremented. There must be at least 60 second increments during subsequent updates. The first
    /// initialization of this field must also set StartTime.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    #[schema(tag = 2)]
    pub heartbeat_time: Option<Timestamp>,
    /// ExpectedFinishTime is the time at which the eviction process step is expected to end for the interceptor. The
    /// time cannot be set to the past. May be empty if no estimate can be made.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    #[schema(tag = 3)]
    pub expected_finish_time: Option<Timestamp>,
    /// StartTime tracks the time at which the Interceptor first started processing the eviction request. It should be
    /// set to the present time (after taking time skew of up to 10 seconds into account). The initialization of this
    /// field must also set HeartbeatTime.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    #[schema(tag = 4)]
    pub start_time: Option<Timestamp>,
    /// CompletionTime is when the interceptor ended its turn: its work is done, or as much of it as it can do, and
    /// the next interceptor has its turn. An entry with CompletionTime and no StartTime declines the turn. It must be
    /// the present time, give or take 10 seconds, and does not change any more.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    #[schema(tag = 5)]
    pub completion_time: Option<Timestamp>,
    /// Message provides human-readable details about the state of the interceptor and the eviction process. This may
    /// be an empty string. The maximum length is 4000 characters.
    #[schema(tag = 6, required)]
    pub message: String,
    /// Blocked tells what keeps the interceptor from evicting the target, as of its last report; absent if nothing
    /// does. Imperative-eviction reports ten seconds after the target began to leave, and no more once it is gone.
    /// It changes when the cause does, and not with the numbers of a PodDisruptionBudget: read these from the budget.
    /// The message has those of the last refused attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 7)]
    pub blocked: Option<Box<Blocked>>,
    /// LastBlocked is what blocked when the owner of the target was last told of it by the event EvictionBlocked. It
    /// stays when nothing blocks any more. The requester nodemaintenance.k8s.io keeps an evicted request that has it
    /// for an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 8)]
    pub last_blocked: Option<Box<Blocked>>,
}

/// What keeps an interceptor from evicting the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1", struct_type = "atomic")]
pub struct Blocked {
    /// Reason is the kind of cause: PodDisruptionBudget, AdmissionWebhook, Terminating, Finalizer, NodeUpdateRefused,
    /// DaemonSetReturns, Other. Clients should accept unknown values. It consists of alphanumeric characters and starts
    /// with an alphabetic character; the maximum length is 64 characters.
    #[schema(tag = 1, required)]
    pub reason: String,
    /// Name of the PodDisruptionBudget (two, separated by a comma, if several cover the pod), of the admission
    /// webhook or policy, of the finalizer, of the node, or of the DaemonSet. It consists of printable ASCII characters;
    /// the maximum length is 512 characters.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(tag = 2)]
    pub name: String,
    /// State is the way in which a PodDisruptionBudget blocks: ShortNow (too few pods are healthy now), NeverAllows
    /// (desiredHealthy is not below expectedPods), SeveralBudgets (the eviction API does not support more than one),
    /// NotObserved (the budget's spec is still being processed), KeepsUnhealthy (the pod is not ready, and
    /// unhealthyPodEvictionPolicy keeps it). Clients should accept unknown values. It consists of alphanumeric characters
    /// and starts with an alphabetic character; the maximum length is 64 characters.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(tag = 3)]
    pub state: String,
    /// SinceTime is since when this reason and name have blocked. Cannot be set to the future time (after taking time
    /// skew of up to 10 seconds into account).
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    #[schema(tag = 4)]
    pub since_time: Option<Timestamp>,
}
