//! What leads from a pod to its Deployment, and from an autoscaler to the one that it scales; trimmed.

use drydock_runtime::cache::OwnerRef;
use drydock_runtime::{Cacheable, ObjectKey};
use serde::Deserialize;

/// A ReplicaSet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "WireReplicaSet")]
pub struct ReplicaSet {
    meta: TrimmedMeta,
    /// The Deployment that controls it, by name and UID.
    pub deployment: Option<OwnerRef>,
}

/// A HorizontalPodAutoscaler.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "WireAutoscaler")]
pub struct HorizontalPodAutoscaler {
    meta: TrimmedMeta,
    /// The Deployment that it scales.
    pub deployment: Option<ObjectKey>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TrimmedMeta {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
}

impl Cacheable for ReplicaSet {
    const GROUP: &'static str = "apps";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "ReplicaSet";
    const PLURAL: &'static str = "replicasets";
    const NAMESPACED: bool = true;

    fn name(&self) -> &str {
        &self.meta.name
    }
    fn namespace(&self) -> &str {
        &self.meta.namespace
    }
    fn uid(&self) -> &str {
        &self.meta.uid
    }
    fn resource_version(&self) -> &str {
        &self.meta.resource_version
    }
}

impl Cacheable for HorizontalPodAutoscaler {
    const GROUP: &'static str = "autoscaling";
    const VERSION: &'static str = "v2";
    const KIND: &'static str = "HorizontalPodAutoscaler";
    const PLURAL: &'static str = "horizontalpodautoscalers";
    const NAMESPACED: bool = true;

    fn name(&self) -> &str {
        &self.meta.name
    }
    fn namespace(&self) -> &str {
        &self.meta.namespace
    }
    fn uid(&self) -> &str {
        &self.meta.uid
    }
    fn resource_version(&self) -> &str {
        &self.meta.resource_version
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireReplicaSet {
    metadata: WireReplicaSetMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireReplicaSetMeta {
    #[serde(flatten)]
    meta: TrimmedMeta,
    owner_references: Option<Vec<WireController>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireController {
    controller: Option<bool>,
    #[serde(flatten)]
    owner: OwnerRef,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireAutoscaler {
    metadata: TrimmedMeta,
    spec: WireAutoscalerSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireAutoscalerSpec {
    scale_target_ref: WireScaleTarget,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireScaleTarget {
    api_version: String,
    kind: String,
    name: String,
}

/// Whether a reference is to a Deployment of the group apps, in whatever version.
fn is_deployment(api_version: &str, kind: &str) -> bool {
    kind == "Deployment" && api_version.starts_with("apps/")
}

impl From<WireReplicaSet> for ReplicaSet {
    fn from(wire: WireReplicaSet) -> Self {
        let owners = wire.metadata.owner_references.unwrap_or_default();
        let controller = owners.into_iter().find(|owner| owner.controller == Some(true)).map(|o| o.owner);
        let deployment = controller.filter(|owner| is_deployment(&owner.api_version, &owner.kind));
        Self { meta: wire.metadata.meta, deployment }
    }
}

impl From<WireAutoscaler> for HorizontalPodAutoscaler {
    fn from(wire: WireAutoscaler) -> Self {
        let target = wire.spec.scale_target_ref;
        let deployment = is_deployment(&target.api_version, &target.kind)
            .then(|| ObjectKey::new(&wire.metadata.namespace, &target.name));
        Self { meta: wire.metadata, deployment }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_replica_set_names_the_deployment_that_controls_it() {
        let owned = |controller: bool, kind: &str| -> Option<String> {
            let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": "d", "uid": "u", "controller": controller});
            let object =
                json!({"metadata": {"name": "r", "namespace": "n", "uid": "x", "ownerReferences": [owner]}});
            let set: ReplicaSet = serde_json::from_value(object).unwrap();
            assert_eq!((set.name(), set.namespace(), set.uid()), ("r", "n", "x"));
            set.deployment.map(|owner| owner.name)
        };
        assert_eq!(owned(true, "Deployment"), Some("d".into()));
        assert_eq!(owned(false, "Deployment"), None);
        assert_eq!(owned(true, "Rollout"), None);
    }

    #[test]
    fn an_autoscaler_names_the_deployment_that_it_scales() {
        let scaled = |kind: &str| -> Option<ObjectKey> {
            let target = json!({"apiVersion": "apps/v1", "kind": kind, "name": "d"});
            let object =
                json!({"metadata": {"name": "h", "namespace": "n"}, "spec": {"scaleTargetRef": target}});
            serde_json::from_value::<HorizontalPodAutoscaler>(object).unwrap().deployment
        };
        assert_eq!(scaled("Deployment"), Some(ObjectKey::new("n", "d")));
        assert_eq!(scaled("StatefulSet"), None);
    }
}
