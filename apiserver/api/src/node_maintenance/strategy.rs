//! NodeMaintenance's implementation of the server's `Kind`.

use drydock_machinery::Object;
use drydock_machinery::field::ErrorList;
use drydock_machinery::kind::{Column, Kind, Names, Now, reset_status};
use drydock_machinery::schema::{ApiType, Schema};
use serde_json::{Value, json};

use super::transitions::{places_finalizer, stage_on_deletion};
use super::types::{NodeMaintenance, NodeMaintenanceStage};
use super::{columns, defaults, enumerations, finalizer, validation};
use crate::decode::{copy_field, decode};

/// Names of the kind.
pub const NAMES: Names = Names {
    group: crate::GROUP,
    version: crate::VERSION,
    kind: "NodeMaintenance",
    plural: super::RESOURCE,
    singular: "nodemaintenance",
    short_names: &["nm"],
    categories: &[],
    namespaced: false,
};

/// The kind.
#[derive(Debug)]
pub struct NodeMaintenanceKind {
    schema: Schema,
}

impl NodeMaintenanceKind {
    /// Creates the kind.
    pub fn new() -> Self {
        Self { schema: NodeMaintenance::schema() }
    }
}

impl Default for NodeMaintenanceKind {
    fn default() -> Self {
        Self::new()
    }
}

impl Kind for NodeMaintenanceKind {
    fn names(&self) -> &Names {
        &NAMES
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn default(&self, object: &mut Object) {
        if let Some(spec) = object.0.get_mut("spec").and_then(Value::as_object_mut) {
            let inserted = defaults::default_spec(spec);
            object.record_defaulted("spec.drainPlan", inserted);
        }
    }

    fn prepare_for_create(&self, object: &mut Object) {
        reset_status(object);
        if places_finalizer(None, stage_of(object)) {
            finalizer::add(object);
        }
        note_stage(object);
    }

    fn validate_create(&self, object: &Object, _now: Now) -> ErrorList {
        let mut errors = enumerations::validate_spec(object);
        errors.extend(
            decode::<NodeMaintenance>(object).map_or_else(|e| e, |new| validation::validate_create(&new)),
        );
        object.number_as_sent(errors)
    }

    fn prepare_for_update(&self, new: &mut Object, old: &Object) {
        copy_field(new, old, "status");
        // No finalizer may be added to an object that is being deleted.
        if old.deletion_timestamp().is_none() && places_finalizer(Some(stage_of(old)), stage_of(new)) {
            finalizer::add(new);
        }
        if stage_of(old) != stage_of(new) {
            note_stage(new);
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, _now: Now) -> ErrorList {
        let mut errors = enumerations::validate_spec(new);
        errors.extend(with_both(new, old, validation::validate_update));
        new.number_as_sent(errors)
    }

    fn prepare_for_status_update(&self, new: &mut Object, old: &Object) {
        copy_field(new, old, "spec");
    }

    fn validate_status_update(&self, new: &Object, old: &Object, _now: Now) -> ErrorList {
        let mut errors = enumerations::validate_status(new);
        errors.extend(with_both(new, old, validation::validate_status_update));
        errors
    }

    fn prepare_for_delete(&self, object: &mut Object) {
        let old = stage_of(object);
        let stage = stage_on_deletion(old);
        if stage == old {
            return;
        }
        if let Some(spec) = object.0.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("stage".to_owned(), stage.as_str().into());
        }
        note_stage(object);
        finalizer::add(object);
    }

    fn selectable_fields(&self) -> &[&'static str] {
        &["spec.stage"]
    }

    fn columns(&self) -> &[Column] {
        columns::COLUMNS
    }

    fn cells(&self, object: &Object, now: Now) -> Vec<Value> {
        columns::cells(&decode(object).unwrap_or_default(), now)
    }
}

fn with_both(
    new: &Object,
    old: &Object,
    validate: fn(&NodeMaintenance, &NodeMaintenance) -> ErrorList,
) -> ErrorList {
    match (decode(new), decode(old)) {
        (Ok(new), Ok(old)) => validate(&new, &old),
        (Err(errors), _) | (_, Err(errors)) => errors,
    }
}

fn stage_of(object: &Object) -> NodeMaintenanceStage {
    let stage = object.0.get("spec").and_then(|s| s.get("stage"));
    stage.and_then(|s| serde_json::from_value(s.clone()).ok()).unwrap_or_default()
}

/// Adds the stage to status.stageStatuses in the write that sets it, so that the controller learns of every stage,
/// even a short one. The controller adds the time. (Whether nodes that others cordoned may be made schedulable
/// depends on these stages.)
fn note_stage(object: &mut Object) {
    let stage = stage_of(object);
    if stage == NodeMaintenanceStage::Unknown {
        return;
    }
    let status = object.0.entry("status").or_insert_with(|| json!({}));
    if !status.is_object() {
        *status = json!({});
    }
    if !status["stageStatuses"].is_array() {
        status["stageStatuses"] = json!([]);
    }
    if let Some(noted) = status["stageStatuses"].as_array_mut()
        && !noted.iter().any(|s| s["name"] == stage.as_str())
    {
        noted.push(json!({ "name": stage.as_str() }));
    }
}
