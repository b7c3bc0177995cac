//! How a pod is read from JSON: everything that is not listed is skipped without being built, and what tenants can make as
//! long as they like is bounded.

use std::collections::BTreeMap;

use drydock_api::eviction_request::interceptor_annotations;
use drydock_api::text::cut_bytes;
use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::bounded_map::{BoundedMap, TakePairs, WantedPairs, read_pairs};
use super::pod::{DRAIN_TAINT, DaemonSetOwner, MIRROR_ANNOTATION, OwnerRef, Pod, PodPhase, Responder};

/// Most finalizers of a pod that are kept; a message names them.
const MAX_FINALIZERS: usize = 16;
/// Most bytes of a finalizer that are kept.
const MAX_FINALIZER: usize = 512;
/// Most bytes of the value of an annotation that are kept where there are too many. Those of a priority and a role are fewer.
const MAX_ANNOTATION: usize = 64;
/// Most names that are kept of those in the spec of a pod: more than the host takes, and than have turns.
const MAX_NAMES: usize = 100;
/// Most bytes of such a name; no domain name is as long.
const MAX_NAME: usize = 256;
/// Most bytes of the scheduler's reason that are kept.
const MAX_UNSCHEDULABLE: usize = 1024;

struct PodLabels;

impl WantedPairs for PodLabels {
    fn is_wanted(_: &str) -> bool {
        true
    }
    /// Those by which Drydock knows its own pods, and the ReplicaSet's revision of a pod.
    fn is_essential(key: &str) -> bool {
        matches!(key, "app.kubernetes.io/name" | "pod-template-hash")
    }
}

/// The mirror mark, and the annotations about interceptors: all of them, or those that have the first turns.
#[derive(Default)]
struct PodAnnotations {
    pairs: BTreeMap<String, String>,
    left_out: usize,
}

impl TakePairs for PodAnnotations {
    fn is_wanted(key: &str) -> bool {
        key == MIRROR_ANNOTATION || key.starts_with(interceptor_annotations::PREFIX)
    }
    fn take(&mut self, key: String, value: String) {
        self.pairs.insert(key, value);
    }
    /// A host takes 256 KiB of annotations, which are 4,000 interceptors.
    fn end(&mut self) {
        if BoundedMap::<PodLabels>::fits(&self.pairs) {
            return;
        }
        let first = interceptor_annotations::first_in_turn(&self.pairs);
        let before = self.pairs.len();
        self.pairs.retain(|key, _| key == MIRROR_ANNOTATION || first.contains(key));
        self.pairs.values_mut().for_each(|value| *value = cut_bytes(value, MAX_ANNOTATION));
        self.left_out = before - self.pairs.len();
    }
}

impl<'de> Deserialize<'de> for PodAnnotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_pairs(deserializer)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WirePod {
    metadata: WirePodMeta,
    spec: WirePodSpec,
    status: WirePodStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WirePodMeta {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    creation_timestamp: Option<Timestamp>,
    labels: BoundedMap<PodLabels>,
    annotations: PodAnnotations,
    #[serde(deserialize_with = "null_as_default")]
    owner_references: Vec<WireOwner>,
    deletion_timestamp: Option<Timestamp>,
    deletion_grace_period_seconds: Option<i64>,
    #[serde(deserialize_with = "null_as_default")]
    finalizers: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireOwner {
    controller: Option<bool>,
    #[serde(flatten)]
    owner: OwnerRef,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WirePodSpec {
    node_name: Option<String>,
    priority: Option<i32>,
    #[serde(deserialize_with = "null_as_default")]
    tolerations: Vec<WireToleration>,
    #[serde(deserialize_with = "null_as_default")]
    volumes: Vec<WireVolume>,
    workload_ref: Option<IgnoredAny>,
    scheduling_group: Option<IgnoredAny>,
    eviction_interceptors: Option<Vec<WireName>>,
    eviction_responders: Option<Vec<Responder>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireVolume {
    empty_dir: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireName {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireToleration {
    key: String,
    operator: String,
    value: String,
    effect: String,
}

impl WireToleration {
    /// Whether it tolerates [`DRAIN_TAINT`], by the rules with which the host matches tolerations and taints.
    fn is_for_drain_taint(&self) -> bool {
        let is_key = self.key.is_empty() || self.key == DRAIN_TAINT;
        let is_effect = self.effect.is_empty() || self.effect == "NoSchedule";
        let is_value = match self.operator.as_str() {
            "Exists" => true,
            "" | "Equal" => self.value.is_empty(),
            _ => false,
        };
        is_key && is_effect && is_value
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WirePodStatus {
    phase: Option<PodPhase>,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<WireCondition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    reason: String,
    message: String,
}

impl From<WirePod> for Pod {
    fn from(wire: WirePod) -> Self {
        let WirePod { metadata: meta, spec, status } = wire;
        let controller = meta.owner_references.into_iter().find(|o| o.controller == Some(true));
        let controller = controller.map(|o| o.owner).filter(OwnerRef::may_exist);
        let unschedulable = status
            .conditions
            .iter()
            .find(|c| c.type_ == "PodScheduled" && c.status == "False" && c.reason == "Unschedulable");
        let mut pod = Self {
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
            creation_timestamp: meta.creation_timestamp,
            labels_cut_from: meta.labels.cut_from,
            labels: meta.labels.pairs.into(),
            annotations_left_out: meta.annotations.left_out,
            annotations: meta.annotations.pairs.into(),
            controller: controller.map(Into::into),
            daemon_set_owner: DaemonSetOwner::Unnamed,
            deletion_timestamp: meta.deletion_timestamp,
            deletion_grace_period_seconds: meta.deletion_grace_period_seconds,
            finalizers: meta
                .finalizers
                .into_iter()
                .take(MAX_FINALIZERS)
                .map(|it| cut_bytes(&it, MAX_FINALIZER))
                .collect(),
            node_name: spec.node_name.unwrap_or_default(),
            priority: spec.priority.unwrap_or_default(),
            tolerates_drain_taint: spec.tolerations.iter().any(WireToleration::is_for_drain_taint),
            has_empty_dir: spec.volumes.iter().any(|volume| volume.empty_dir.is_some()),
            in_group: spec.workload_ref.is_some() || spec.scheduling_group.is_some(),
            interceptors: spec.eviction_interceptors.map(first_names),
            responders: spec.eviction_responders.map(first_responders),
            phase: status.phase.unwrap_or_default(),
            unschedulable: unschedulable.map(|c| cut_bytes(&c.message, MAX_UNSCHEDULABLE).into()),
            ready: status.conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True"),
        };
        if pod.names_daemon_set() {
            pod.daemon_set_owner = DaemonSetOwner::Undecided;
        }
        pod
    }
}

fn first_names(all: Vec<WireName>) -> Vec<String> {
    all.into_iter().take(MAX_NAMES).map(|it| cut_bytes(&it.name, MAX_NAME)).collect()
}

fn first_responders(mut all: Vec<Responder>) -> Vec<Responder> {
    if all.len() > MAX_NAMES {
        all.sort_by_key(|it| std::cmp::Reverse(it.priority));
        all.truncate(MAX_NAMES);
        all.shrink_to_fit();
    }
    all.iter_mut().for_each(|it| it.name = cut_bytes(&it.name, MAX_NAME));
    all
}

/// Reads `null` as the default, as Go does.
pub(super) fn null_as_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
