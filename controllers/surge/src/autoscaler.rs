//! A HorizontalPodAutoscaler, trimmed to what decides about a surge.

use std::collections::BTreeMap;

use drydock_api::metav1::ManagedFieldsEntry;
use drydock_runtime::surge_record::{FoundRecord, RECORD};
use drydock_runtime::{Cacheable, ObjectKey};
use serde::Deserialize;

use crate::scale::{Scale, applied_by};

/// Most bytes of the name of an object.
const LONGEST_NAME: usize = 253;

/// A HorizontalPodAutoscaler.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "WireAutoscaler")]
pub struct HorizontalPodAutoscaler {
    /// `metadata.name`
    pub name: String,
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.resourceVersion`
    pub resource_version: String,
    /// Namespace and name of what it scales.
    pub target: ObjectKey,
    /// Whether that is a Deployment.
    pub is_of_deployment: bool,
    /// `spec.minReplicas`
    pub min_replicas: i32,
    /// `spec.maxReplicas`
    pub max_replicas: i32,
    /// A manager that owns `spec.minReplicas` by a server-side apply.
    pub applied_by: Option<String>,
    /// The record of a surge.
    pub record: FoundRecord,
}

impl HorizontalPodAutoscaler {
    /// Its number, while the Deployment is to have this many replicas.
    pub fn scale(&self, replicas: i32) -> Scale<'_> {
        Scale {
            holder: format!("HorizontalPodAutoscaler {}", self.name),
            field: "spec.minReplicas",
            number: self.min_replicas,
            replicas,
            most: Some(self.max_replicas),
            applied_by: self.applied_by.as_deref(),
            record: &self.record,
        }
    }
}

impl Cacheable for HorizontalPodAutoscaler {
    const GROUP: &'static str = "autoscaling";
    const VERSION: &'static str = "v2";
    const KIND: &'static str = "HorizontalPodAutoscaler";
    const PLURAL: &'static str = "horizontalpodautoscalers";

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
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireAutoscaler {
    metadata: WireAutoscalerMeta,
    spec: WireAutoscalerSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireAutoscalerMeta {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    annotations: Option<BTreeMap<String, String>>,
    managed_fields: Option<Vec<ManagedFieldsEntry>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireAutoscalerSpec {
    scale_target_ref: WireScaleTarget,
    min_replicas: Option<i32>,
    max_replicas: i32,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireScaleTarget {
    api_version: String,
    kind: String,
    name: String,
}

impl From<WireAutoscaler> for HorizontalPodAutoscaler {
    fn from(wire: WireAutoscaler) -> Self {
        let WireAutoscaler { metadata: meta, spec } = wire;
        let annotation = meta.annotations.as_ref().and_then(|all| all.get(RECORD));
        let WireScaleTarget { api_version, kind, mut name } = spec.scale_target_ref;
        // The host checks no length here.
        let may_exist = name.len() <= LONGEST_NAME;
        if !may_exist {
            name.clear();
        }
        Self {
            target: ObjectKey::new(&meta.namespace, &name),
            is_of_deployment: may_exist && kind == "Deployment" && api_version.starts_with("apps/"),
            min_replicas: spec.min_replicas.unwrap_or(1),
            max_replicas: spec.max_replicas,
            applied_by: applied_by(meta.managed_fields.unwrap_or_default(), "minReplicas"),
            record: FoundRecord::read(annotation.map(String::as_str), &meta.uid),
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn of(spec: Value) -> HorizontalPodAutoscaler {
        serde_json::from_value(json!({"metadata": {"name": "h", "namespace": "n"}, "spec": spec})).unwrap()
    }

    #[test]
    fn it_names_what_it_scales() {
        let scaled = |kind: &str| {
            of(
                json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "d"}, "maxReplicas": 3}),
            )
        };
        let deployment = scaled("Deployment");
        assert_eq!((deployment.target, deployment.is_of_deployment), (ObjectKey::new("n", "d"), true));
        assert_eq!((deployment.min_replicas, deployment.max_replicas), (1, 3));
        assert!(!scaled("StatefulSet").is_of_deployment);
    }

    #[test]
    fn a_name_that_no_deployment_can_have_is_not_kept() {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d".repeat(1 << 20)});
        let scaled = of(json!({"scaleTargetRef": target, "maxReplicas": 3}));
        assert_eq!((scaled.target, scaled.is_of_deployment), (ObjectKey::new("n", ""), false));
    }
}
