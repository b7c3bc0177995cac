//! ServiceAccount of the core group (k8s.io/kubernetes pkg/registry/core/serviceaccount).

use drydock_machinery::Object;
use drydock_machinery::kind::{Kind, Names};
use drydock_machinery::schema::common::{atomic, list, object, optional, text};
use drydock_machinery::schema::{ListType, Schema, Shape};
use serde_json::{Value, json};

use super::{names, scalar, top_level};

const NAMES: Names = names("ServiceAccount", "serviceaccounts", "serviceaccount");

/// The kind.
pub struct ServiceAccount(Schema);

impl ServiceAccount {
    /// Creates the kind with its schema.
    pub fn new() -> Self {
        let reference = vec![
            text("kind", 1, ""),
            text("namespace", 2, ""),
            text("name", 3, ""),
            text("uid", 4, ""),
            text("apiVersion", 5, ""),
            text("resourceVersion", 6, ""),
            text("fieldPath", 7, ""),
        ];
        let reference = atomic(object("", "test.drydock.reference.v1.ObjectReference", reference));
        let local =
            atomic(object("", "test.drydock.reference.v1.LocalObjectReference", vec![text("name", 1, "")]));
        let fields = vec![
            optional("secrets", 2, list("Secrets.", reference, ListType::Map(&["name"]))),
            optional("imagePullSecrets", 3, list("Pull secrets.", local, ListType::Atomic)),
            scalar("automountServiceAccountToken", 4, Shape::Boolean),
        ];
        Self(top_level("test.drydock.reference.v1.ServiceAccount", fields))
    }
}

impl Kind for ServiceAccount {
    fn names(&self) -> &Names {
        &NAMES
    }

    fn schema(&self) -> &Schema {
        &self.0
    }

    fn prepare_for_create(&self, object: &mut Object) {
        clean_references(object);
    }

    fn prepare_for_update(&self, new: &mut Object, _old: &Object) {
        clean_references(new);
    }

    fn counts_generation(&self) -> bool {
        false
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let is_set = |object: &Object| {
            object.meta().and_then(|meta| meta.get("annotations")).is_some_and(|a| a.get(MOUNTABLE).is_some())
        };
        let newly = is_set(new) && !old.is_some_and(is_set);
        let why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        newly.then(|| format!("metadata.annotations[{MOUNTABLE}]: {why}")).into_iter().collect()
    }
}

const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Keeps only the name of each reference.
fn clean_references(object: &mut Object) {
    let Some(Value::Array(secrets)) = object.0.get_mut("secrets") else { return };
    for secret in secrets {
        *secret = secret.get("name").map_or(json!({}), |name| json!({"name": name}));
    }
}
