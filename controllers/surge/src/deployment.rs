//! A Deployment, trimmed to what decides about a surge.

use std::collections::BTreeMap;

use drydock_api::metav1::ManagedFieldsEntry;
use drydock_api::text::cut;
use drydock_runtime::Cacheable;
use drydock_runtime::cache::short_amount;
use drydock_runtime::surge_record::{FoundRecord, RECORD};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Deserialize;

use crate::amount::resolve;
use crate::scale::{Scale, applied_by};

/// Annotation with which an owner opts a Deployment in; its value is `true`.
pub const OPT_IN: &str = "surge.coordination.k8s.io/enabled";
/// `spec.strategy.rollingUpdate.maxSurge` where nothing is said (k8s.io/kubernetes/pkg/apis/apps/v1/defaults.go).
const DEFAULT_MAX_SURGE: &str = "25%";
/// `spec.progressDeadlineSeconds` where nothing is said.
const DEFAULT_PROGRESS_DEADLINE: i32 = 600;
/// Most characters that are kept of why pods cannot be created.
const LONGEST_FAILURE: usize = 200;

/// A Deployment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "WireDeployment")]
pub struct Deployment {
    /// `metadata.name`
    pub name: String,
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.resourceVersion`
    pub resource_version: String,
    /// `metadata.generation`
    pub generation: i64,
    /// Whether it has a deletionTimestamp.
    pub is_deleting: bool,
    /// Whether [`OPT_IN`] is `true`.
    pub is_opted_in: bool,
    /// The record of a surge.
    pub record: FoundRecord,
    /// A manager that owns `spec.replicas` by a server-side apply.
    pub applied_by: Option<String>,
    /// `spec.replicas`
    pub replicas: i32,
    /// `spec.strategy.rollingUpdate.maxSurge`; none with the strategy Recreate.
    pub max_surge: Option<IntOrString>,
    /// `spec.progressDeadlineSeconds`
    pub progress_deadline: SignedDuration,
    /// `status.observedGeneration`
    pub observed_generation: i64,
    /// `status.replicas`
    pub current_replicas: i32,
    /// `status.updatedReplicas`
    pub updated_replicas: i32,
    /// The beginning of the message of the condition ReplicaFailure, while it is True: pods cannot be created.
    pub replica_failure: Option<String>,
}

impl Deployment {
    /// Whether its controller has seen the current spec.
    pub fn is_observed(&self) -> bool {
        self.observed_generation >= self.generation
    }

    /// Whether pods of more than one template are there: a rollout runs.
    pub fn is_rolling_out(&self) -> bool {
        self.updated_replicas != self.current_replicas
    }

    /// Its replicas, as a number that a surge is added to.
    pub fn scale(&self) -> Scale<'_> {
        Scale {
            holder: format!("Deployment {}", self.name),
            field: "spec.replicas",
            number: self.replicas,
            replicas: self.replicas,
            most: None,
            applied_by: self.applied_by.as_deref(),
            record: &self.record,
        }
    }

    /// How many pods there may be beyond `replicas`, as the Deployment's controller works it out.
    pub fn max_surge_of(&self, replicas: i32) -> i32 {
        self.max_surge.as_ref().and_then(|max| resolve(max, replicas)).unwrap_or(0).max(0)
    }
}

impl Cacheable for Deployment {
    const GROUP: &'static str = "apps";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Deployment";
    const PLURAL: &'static str = "deployments";

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
struct WireDeployment {
    metadata: WireDeploymentMeta,
    spec: WireDeploymentSpec,
    status: WireDeploymentStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireDeploymentMeta {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    generation: i64,
    deletion_timestamp: Option<String>,
    annotations: Option<BTreeMap<String, String>>,
    managed_fields: Option<Vec<ManagedFieldsEntry>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireDeploymentSpec {
    replicas: Option<i32>,
    strategy: WireStrategy,
    progress_deadline_seconds: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireStrategy {
    #[serde(rename = "type")]
    type_: String,
    rolling_update: Option<WireRollingUpdate>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireRollingUpdate {
    max_surge: Option<IntOrString>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireDeploymentStatus {
    observed_generation: i64,
    replicas: i32,
    updated_replicas: i32,
    conditions: Option<Vec<WireDeploymentCondition>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireDeploymentCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    message: String,
}

impl From<WireDeployment> for Deployment {
    fn from(wire: WireDeployment) -> Self {
        let WireDeployment { metadata: meta, spec, status } = wire;
        let annotations = meta.annotations.unwrap_or_default();
        let managers = meta.managed_fields.unwrap_or_default();
        let is_recreate = spec.strategy.type_ == "Recreate";
        let max_surge = spec.strategy.rolling_update.and_then(|rolling| rolling.max_surge);
        let mut conditions = status.conditions.unwrap_or_default().into_iter();
        let deadline = spec.progress_deadline_seconds.unwrap_or(DEFAULT_PROGRESS_DEADLINE);
        Self {
            record: FoundRecord::read(annotations.get(RECORD).map(String::as_str), &meta.uid).of_replicas(),
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
            generation: meta.generation,
            is_deleting: meta.deletion_timestamp.is_some(),
            is_opted_in: annotations.get(OPT_IN).is_some_and(|value| value == "true"),
            applied_by: applied_by(managers, "replicas"),
            replicas: spec.replicas.unwrap_or(1),
            max_surge: (!is_recreate).then(|| {
                max_surge
                    .map(short_amount)
                    .unwrap_or_else(|| IntOrString::String(DEFAULT_MAX_SURGE.to_owned()))
            }),
            progress_deadline: SignedDuration::from_secs(deadline.into()),
            observed_generation: status.observed_generation,
            current_replicas: status.replicas,
            updated_replicas: status.updated_replicas,
            replica_failure: conditions
                .find(|condition| condition.type_ == "ReplicaFailure" && condition.status == "True")
                .map(|condition| cut(&condition.message, LONGEST_FAILURE)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn of(spec: Value) -> Deployment {
        serde_json::from_value(json!({"metadata": {"name": "d"}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_percentage_of_max_surge_is_rounded_up() {
        let max = |value: Value, of_replicas: i32| {
            of(json!({"strategy": {"rollingUpdate": {"maxSurge": value}}})).max_surge_of(of_replicas)
        };
        assert_eq!(max(json!("25%"), 1), 1);
        assert_eq!(max(json!("25%"), 5), 2);
        assert_eq!(max(json!("0%"), 5), 0);
        assert_eq!(max(json!(3), 1), 3);
        assert_eq!(of(json!({})).max_surge_of(4), 1, "25% where nothing is said");
        let long =
            of(json!({"strategy": {"rollingUpdate": {"maxSurge": format!("{}50%", "0".repeat(1 << 20))}}}));
        assert_eq!((long.max_surge_of(4), long.max_surge), (2, Some(IntOrString::String("50%".to_owned()))));
        let recreate = of(json!({"strategy": {"type": "Recreate"}}));
        assert_eq!((recreate.max_surge_of(4), recreate.max_surge), (0, None));
    }

    #[test]
    fn only_an_apply_of_the_replicas_owns_them() {
        let by = |operation: &str, fields: Value| -> Option<String> {
            let managed = json!([{"manager": "m", "operation": operation, "fieldsV1": fields}]);
            let object = json!({"metadata": {"name": "d", "managedFields": managed}});
            serde_json::from_value::<Deployment>(object).unwrap().applied_by
        };
        assert_eq!(by("Apply", json!({"f:spec": {"f:replicas": {}}})), Some("m".into()));
        assert_eq!(by("Apply", json!({"f:spec": {"f:template": {}}})), None);
        assert_eq!(by("Update", json!({"f:spec": {"f:replicas": {}}})), None);
        assert_eq!(of(json!({})).applied_by, None);
    }
}
