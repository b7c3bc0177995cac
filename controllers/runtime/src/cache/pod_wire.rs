//! How a pod is read from JSON: everything that is not listed is skipped without being built.

use std::collections::BTreeMap;
use std::fmt;

use drydock_api::eviction_request::interceptor_annotations;
use jiff::Timestamp;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::pod::{DRAIN_TAINT, MIRROR_ANNOTATION, OwnerRef, Pod, PodPhase, Responder};

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
    #[serde(deserialize_with = "null_as_default")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "known_annotations")]
    annotations: BTreeMap<String, String>,
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
        let WirePod { metadata: meta, spec, mut status } = wire;
        let unschedulable = status
            .conditions
            .iter_mut()
            .find(|c| c.type_ == "PodScheduled" && c.status == "False" && c.reason == "Unschedulable");
        Self {
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
            creation_timestamp: meta.creation_timestamp,
            labels: meta.labels.into(),
            annotations: meta.annotations.into(),
            controller: meta
                .owner_references
                .into_iter()
                .find(|o| o.controller == Some(true))
                .map(|o| o.owner.into()),
            deletion_timestamp: meta.deletion_timestamp,
            deletion_grace_period_seconds: meta.deletion_grace_period_seconds,
            finalizers: meta.finalizers,
            node_name: spec.node_name.unwrap_or_default(),
            priority: spec.priority.unwrap_or_default(),
            tolerates_drain_taint: spec.tolerations.iter().any(WireToleration::is_for_drain_taint),
            has_empty_dir: spec.volumes.iter().any(|volume| volume.empty_dir.is_some()),
            in_group: spec.workload_ref.is_some() || spec.scheduling_group.is_some(),
            interceptors: spec.eviction_interceptors.map(|l| l.into_iter().map(|i| i.name).collect()),
            responders: spec.eviction_responders,
            phase: status.phase.unwrap_or_default(),
            unschedulable: unschedulable.map(|c| std::mem::take(&mut c.message).into()),
            ready: status.conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True"),
        }
    }
}

/// Reads `null` as the default, as Go does.
pub(super) fn null_as_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn known_annotations<'de, D: Deserializer<'de>>(d: D) -> Result<BTreeMap<String, String>, D::Error> {
    d.deserialize_option(Annotations)
}

struct Annotations;

impl<'de> Visitor<'de> for Annotations {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }
    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(BTreeMap::new())
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(BTreeMap::new())
    }
    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_map(self)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut kept = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == MIRROR_ANNOTATION || key.starts_with(interceptor_annotations::PREFIX) {
                kept.insert(key, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(kept)
    }
}
