//! NodeMaintenance's strategy.

use drydock_machinery::Object;
use drydock_machinery::field::ErrorList;
use drydock_machinery::kind::{Column, Names, Now, Quota};
use drydock_machinery::strategy::{Draft, Strategy, TypedKind};
use serde_json::{Map, Value};

use super::status::StageStatus;
use super::transitions::{places_finalizer, stage_on_deletion};
use super::types::{FINALIZER, NodeMaintenance, NodeMaintenanceStage};
use super::{columns, defaults, limits, username, validation};
use crate::text::cut_bytes;

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

/// The field of the status with the creator.
const CREATOR: &str = "creator";

/// The kind, for the server.
pub type NodeMaintenanceKind = TypedKind<NodeMaintenanceStrategy>;

/// The strategy.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeMaintenanceStrategy;

impl Strategy for NodeMaintenanceStrategy {
    type Object = NodeMaintenance;

    fn names(&self) -> &Names {
        &NAMES
    }

    fn set_defaults(&self, object: &mut Object) {
        if let Some(spec) = object.0.get_mut("spec").and_then(Value::as_object_mut) {
            let inserted = defaults::default_spec(spec);
            object.record_defaulted("spec.drainPlan", inserted);
        }
    }

    fn record_user(&self, new: &mut Object, old: Option<&Object>, username: &str) {
        username::record(new, old, username);
    }

    fn recorded_fields(&self) -> &[&'static str] {
        &["spec.username", "status.creator"]
    }

    fn prepare_for_create(&self, new: &mut Draft<'_, NodeMaintenance>) {
        let places_finalizer = places_finalizer(None, new.spec.stage);
        new.edit(|new| {
            if places_finalizer {
                add_finalizer(new);
            }
            note_stage(new);
        });
    }

    fn validate(&self, new: &NodeMaintenance, _now: Now) -> ErrorList {
        validation::validate_create(new)
    }

    fn prepare_for_update(&self, new: &mut Draft<'_, NodeMaintenance>, old: &NodeMaintenance) {
        let (before, stage) = (old.spec.stage, new.spec.stage);
        if stage == before {
            return;
        }
        // No finalizer may be added to an object that is being deleted.
        let places_finalizer =
            old.metadata.deletion_timestamp.is_none() && places_finalizer(Some(before), stage);
        new.edit(|new| {
            if places_finalizer {
                add_finalizer(new);
            }
            note_stage(new);
        });
    }

    fn validate_update(&self, new: &NodeMaintenance, old: &NodeMaintenance, _now: Now) -> ErrorList {
        validation::validate_update(new, old)
    }

    fn validate_status_update(&self, new: &NodeMaintenance, old: &NodeMaintenance, _now: Now) -> ErrorList {
        validation::validate_status_update(new, old)
    }

    /// The creator is who the API server says.
    fn prepare_for_status_update(&self, new: &mut Object, old: &Object) {
        let Some(creator) = creator_of(old) else {
            if let Some(status) = new.0.get_mut("status").and_then(Value::as_object_mut) {
                status.remove(CREATOR);
            }
            return;
        };
        let status = new.0.entry("status").or_insert(Value::Null);
        // A patch may take the whole status away.
        if status.is_null() {
            *status = Value::Object(Map::new());
        }
        if let Some(status) = status.as_object_mut() {
            status.insert(CREATOR.to_owned(), creator.clone());
        }
    }

    fn note_creator(&self, object: &mut Object, creator: &str) {
        if let Some(status) = object.0.get_mut("status").and_then(Value::as_object_mut) {
            status.insert(CREATOR.to_owned(), cut_bytes(creator, limits::MAX_CREATOR_BYTES).into());
        }
    }

    fn prepare_for_delete(&self, object: &mut Draft<'_, NodeMaintenance>) {
        let stage = stage_on_deletion(object.spec.stage);
        if stage == object.spec.stage {
            return;
        }
        object.edit(|object| {
            object.spec.stage = stage;
            note_stage(object);
            add_finalizer(object);
        });
    }

    fn max_bytes_without_status(&self) -> Option<usize> {
        Some(limits::MAX_BYTES_WITHOUT_STATUS)
    }

    fn quota(&self) -> Option<Quota> {
        Some(limits::QUOTA)
    }

    fn is_needed_update(&self, new: &Object, old: &Object) -> bool {
        limits::is_stage_change(new, old)
    }

    fn selectable_fields(&self) -> &[&'static str] {
        &["spec.stage"]
    }

    fn columns(&self) -> &[Column] {
        columns::COLUMNS
    }

    fn cells(&self, maintenance: &NodeMaintenance, now: Now) -> Option<Vec<Value>> {
        Some(columns::cells(maintenance, now))
    }
}

fn creator_of(object: &Object) -> Option<&Value> {
    object.0.get("status")?.get(CREATOR)
}

/// Adds the finalizer that keeps the maintenance until its nodes are released, unless the maintenance has it.
fn add_finalizer(maintenance: &mut NodeMaintenance) {
    if !maintenance.has_finalizer() {
        maintenance.metadata.finalizers.push(FINALIZER.to_owned());
    }
}

/// Adds the stage to status.stageStatuses in the write that sets it, so that the controller learns of every stage,
/// even a short one. The controller adds the time. (Whether nodes that others cordoned may be made schedulable
/// depends on these stages.)
fn note_stage(maintenance: &mut NodeMaintenance) {
    let name = maintenance.spec.stage;
    let noted = &mut maintenance.status.stage_statuses;
    if name != NodeMaintenanceStage::Unknown && noted.iter().all(|status| status.name != name) {
        noted.push(StageStatus { name, start_timestamp: None });
    }
}
