//! A ReplicaSet, trimmed to what leads from a pod to its Deployment.

use drydock_runtime::Cacheable;
use drydock_runtime::cache::OwnerRef;
use serde::Deserialize;

/// A ReplicaSet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "WireReplicaSet")]
pub struct ReplicaSet {
    meta: TrimmedMeta,
    /// The Deployment that controls it, by name and UID.
    pub deployment: Option<OwnerRef>,
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

impl From<WireReplicaSet> for ReplicaSet {
    fn from(wire: WireReplicaSet) -> Self {
        let owners = wire.metadata.owner_references.unwrap_or_default();
        let controller = owners.into_iter().find(|owner| owner.controller == Some(true)).map(|o| o.owner);
        let deployment =
            controller.filter(|owner| owner.kind == "Deployment" && owner.api_version.starts_with("apps/"));
        let deployment = deployment.filter(OwnerRef::may_exist);
        Self { meta: wire.metadata.meta, deployment }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_replica_set_names_the_deployment_that_controls_it() {
        let named = |controller: bool, kind: &str, name: &str| -> Option<String> {
            let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": controller});
            let object =
                json!({"metadata": {"name": "r", "namespace": "n", "uid": "x", "ownerReferences": [owner]}});
            let set: ReplicaSet = serde_json::from_value(object).unwrap();
            assert_eq!((set.name(), set.namespace(), set.uid()), ("r", "n", "x"));
            set.deployment.map(|owner| owner.name)
        };
        let owned = |controller: bool, kind: &str| named(controller, kind, "d");
        assert_eq!(
            named(true, "Deployment", &"d".repeat(1 << 20)),
            None,
            "a host takes any name of an owner"
        );
        assert_eq!(owned(true, "Deployment"), Some("d".into()));
        assert_eq!(owned(false, "Deployment"), None);
        assert_eq!(owned(true, "Rollout"), None);
    }
}
