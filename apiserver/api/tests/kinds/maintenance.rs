//! NodeMaintenances and the answers of validation, for the tests of their rules.

use drydock_api::node_maintenance::{NodeMaintenanceKind, NodeMaintenanceStrategy};
use drydock_machinery::Object;
use drydock_machinery::kind::Kind;
use drydock_machinery::strategy::Strategy;
use serde_json::{Value, json};

pub const NOW: &str = "2026-01-01T00:00:00Z";

pub fn kind() -> NodeMaintenanceKind {
    NodeMaintenanceStrategy.into_kind()
}

pub fn object(value: Value) -> Object {
    let Value::Object(map) = value else { panic!("not an object") };
    Object::from(map)
}

/// A maintenance with defaults, as the server has it.
pub fn maintenance(stage: &str, plan: Value) -> Object {
    let mut object = object(json!({
        "metadata": { "name": "m", "generation": 1 },
        "spec": { "nodeSelector": { "nodeSelectorTerms": [{}] }, "stage": stage, "drainPlan": plan },
    }));
    kind().set_defaults(&mut object);
    object
}

pub fn stage(stage: &str) -> Object {
    maintenance(stage, json!([]))
}

pub fn create(object: &Object) -> Vec<String> {
    kind().validate_create(object, NOW.parse().unwrap()).iter().map(ToString::to_string).collect()
}

pub fn update(new: &Object, old: &Object) -> Vec<String> {
    kind().validate_update(new, old, NOW.parse().unwrap()).iter().map(ToString::to_string).collect()
}
