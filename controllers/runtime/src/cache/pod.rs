//! A pod, trimmed to what the controllers look at.

use std::collections::BTreeMap;
use std::sync::Arc;

use drydock_api::metav1::KnownLabels;
use drydock_api::node_maintenance::PodType;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::cacheable::Cacheable;
use super::pod_wire::WirePod;
use super::shared_parts::SharedParts;

/// Marks a mirror pod (k8s.io/kubernetes/pkg/kubelet/types.ConfigMirrorAnnotationKey).
pub const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
/// Key of the NoSchedule taint of nodes from which DaemonSet pods are being drained. The taint has no value.
pub const DRAIN_TAINT: &str = "nodemaintenance.k8s.io/draining-daemonsets";

/// How long a terminating pod may remain after its grace period before it is overdue.
const GONE_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "WirePod")]
pub struct Pod {
    /// `metadata.name`
    pub name: String,
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.resourceVersion`
    pub resource_version: String,
    /// `metadata.creationTimestamp`
    pub creation_timestamp: Option<Timestamp>,
    /// `metadata.labels`, of which the cache keeps 256 pairs and 16 KiB: the first in the order of their keys, and
    /// the few that are always read.
    pub labels: Arc<BTreeMap<String, String>>,
    /// The first key, in their order, of the labels that are not kept.
    pub labels_cut_from: Option<Box<str>>,
    /// `metadata.annotations`, only those that name interceptors or mark a mirror pod. Of too many, those are kept that name
    /// the interceptors with the highest priorities.
    pub annotations: Arc<BTreeMap<String, String>>,
    /// How many annotations about interceptors are not kept.
    pub annotations_left_out: usize,
    /// The owner that controls the pod, as the writer of the pod says.
    pub controller: Option<Arc<OwnerRef>>,
    /// What is known of the DaemonSet that the pod names as its controller. Not of the pod itself: the cache decides it.
    pub daemon_set_owner: DaemonSetOwner,
    /// `metadata.deletionTimestamp`: when the grace period ends.
    pub deletion_timestamp: Option<Timestamp>,
    /// `metadata.deletionGracePeriodSeconds`
    pub deletion_grace_period_seconds: Option<i64>,
    /// `metadata.finalizers`
    pub finalizers: Vec<String>,
    /// `spec.nodeName`, empty while the pod is not bound.
    pub node_name: String,
    /// `spec.priority`, 0 if absent.
    pub priority: i32,
    /// Whether the pod tolerates [`DRAIN_TAINT`].
    pub tolerates_drain_taint: bool,
    /// Whether the pod has an emptyDir volume (`spec.volumes`).
    pub has_empty_dir: bool,
    /// Whether the pod is part of a Workload or PodGroup (`spec.workloadRef`, `spec.schedulingGroup`).
    pub in_group: bool,
    /// Names in `spec.evictionInterceptors`, the first ones; none if the field is absent.
    pub interceptors: Option<Vec<String>>,
    /// `spec.evictionResponders`, those of the highest priorities; none if the field is absent.
    pub responders: Option<Vec<Responder>>,
    /// `status.phase`
    pub phase: PodPhase,
    /// Whether the Ready condition is True.
    pub ready: bool,
    /// Why the scheduler finds no node for the pod: the message of PodScheduled=False with reason Unschedulable.
    pub unschedulable: Option<Box<str>>,
}

/// An item of `spec.evictionResponders`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Responder {
    /// Name of the responder.
    pub name: String,
    /// Higher comes first.
    pub priority: i32,
}

/// An owner reference with `controller: true`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerRef {
    /// `group/version`
    pub api_version: String,
    /// Kind
    pub kind: String,
    /// Name
    pub name: String,
    /// UID
    pub uid: String,
}

/// What is known of the DaemonSet that a pod names as its controller. Whoever writes a pod names any owner, and the host's
/// garbage collector removes the pod only when no object has the owner's UID: not while a finalizer keeps a DaemonSet that was
/// deleted, whose pods no controller looks after any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DaemonSetOwner {
    /// The pod names none.
    #[default]
    Unnamed,
    /// The cache does not have it, and the host has not been asked: the pod may be new, and its DaemonSet too. Nothing is done
    /// with the pod, and every drain waits for it.
    Undecided,
    /// It exists and is not being deleted.
    Alive,
    /// It does not exist, or is being deleted: the pod is like one without a controller. So is whatever the pod names later,
    /// until the cache shows that to be alive: a writer of the pod could otherwise have it undecided forever.
    Gone,
}

/// Most bytes of a kind, version, name or UID of an object that can exist: a name has 253 at most. The host checks none of
/// them in an owner reference.
const MAX_OWNER_TEXT: usize = 512;

impl OwnerRef {
    /// Whether there can be such an owner. A reference to one that cannot be counts as none.
    pub fn may_exist(&self) -> bool {
        [&self.api_version, &self.kind, &self.name, &self.uid].iter().all(|it| it.len() <= MAX_OWNER_TEXT)
    }
}

/// `status.phase`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum PodPhase {
    /// Not all containers have started.
    #[default]
    Pending,
    /// At least one container runs.
    Running,
    /// All containers ended without an error, and are not started again.
    Succeeded,
    /// All containers ended, at least one of them with an error.
    Failed,
    /// Anything else.
    #[serde(other)]
    Unknown,
}

impl Pod {
    /// The labels that the cache keeps, and from where on there may be others.
    pub fn known_labels(&self) -> KnownLabels<'_> {
        KnownLabels { cut_from: self.labels_cut_from.as_deref(), ..KnownLabels::from(&*self.labels) }
    }
    /// Whether the pod has run to its end (Succeeded or Failed): it counts nowhere.
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }
    /// Whether the pod is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
    /// Whether the pod runs or will run: it is not being deleted, and has not run to its end.
    pub fn is_staying(&self) -> bool {
        !self.is_terminating() && !self.is_terminal()
    }
    /// When a terminating pod should be gone: ten seconds after its grace period, as its kubelet and its
    /// finalizers need a moment. Later it is overdue, which blockers and reports say.
    pub fn overdue_at(&self) -> Option<Timestamp> {
        let ends = self.deletion_timestamp?;
        Some(ends.checked_add(GONE_WITHIN).unwrap_or(Timestamp::MAX))
    }
    /// Whether the pod names a DaemonSet of apps/v1 as its controller. Other versions do not count: the host's garbage
    /// collector deletes a pod whose owner does not exist, but not one whose owner has a version that the
    /// host does not know; such a pod would stay on nodes whose drain leaves DaemonSet pods alone.
    pub fn names_daemon_set(&self) -> bool {
        self.controller.as_ref().is_some_and(|o| o.kind == "DaemonSet" && o.api_version == "apps/v1")
    }
    /// Whether a DaemonSet that exists and is not being deleted controls the pod.
    pub fn is_daemon_set_pod(&self) -> bool {
        self.names_daemon_set() && self.daemon_set_owner == DaemonSetOwner::Alive
    }
    /// Whether it is not known yet if the DaemonSet that the pod names exists. Such a pod is not asked to leave, and counts as
    /// one of type Default, for which every maintenance waits.
    pub fn is_undecided(&self) -> bool {
        self.daemon_set_owner == DaemonSetOwner::Undecided
    }
    /// Whether no controller makes the pod anew.
    pub fn is_bare(&self) -> bool {
        let is_gone = || self.names_daemon_set() && self.daemon_set_owner == DaemonSetOwner::Gone;
        self.controller.is_none() || is_gone()
    }
    /// The type of the pod (KEP-4212, PodType).
    pub fn pod_type(&self) -> PodType {
        if self.is_mirror() {
            PodType::Static
        } else if self.is_daemon_set_pod() {
            PodType::DaemonSet
        } else {
            PodType::Default
        }
    }
    /// Namespace and UID of the DaemonSet that controls the pod. The UID alone is not enough: the writer of
    /// the pod chooses it, and it may be that of a DaemonSet in another namespace.
    pub fn daemon_set(&self) -> Option<String> {
        let owner = self.controller.as_ref().filter(|_| self.is_daemon_set_pod())?;
        Some(format!("{}/{}", self.namespace, owner.uid))
    }
    /// Whether the pod only mirrors a manifest of its kubelet, as the kubelet writes it: with the annotation, and an owner that
    /// is the node on which it is. Both are the words of whoever wrote the pod, who must know the UID of the node: the host's
    /// garbage collector removes a pod whose owner has another.
    pub fn is_mirror(&self) -> bool {
        let is_its_node = |owner: &OwnerRef| {
            owner.kind == "Node" && owner.api_version == "v1" && owner.name == self.node_name
        };
        let is_of_its_node = self.controller.as_ref().is_some_and(|owner| is_its_node(owner));
        is_of_its_node && self.annotations.contains_key(MIRROR_ANNOTATION)
    }
}

impl Cacheable for Pod {
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Pod";
    const PLURAL: &'static str = "pods";

    fn name(&self) -> &str {
        &self.name
    }
    fn namespace(&self) -> &str {
        &self.namespace
    }
    fn uid(&self) -> &str {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.resource_version
    }
    fn node(&self) -> Option<&str> {
        Some(self.node_name.as_str())
    }
    fn compact(&mut self, parts: &mut SharedParts) {
        parts.maps.share(&mut self.labels);
        parts.maps.share(&mut self.annotations);
        if let Some(controller) = &mut self.controller {
            parts.owners.share(controller);
        }
    }
}
