//! Errors of a NodeMaintenance, on create, update and status update. Pure; does not mutate the object.

use std::collections::HashSet;

use drydock_machinery::field::{Error, ErrorList, Path, is_full};
use drydock_machinery::meta::immutable;
use serde_json::Value;

use super::node_selector;
use super::selector_size::SelectorSize;
use super::transitions::may_change;
use super::types::{
    DrainPlanEntry, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceSpec, PodType, Stage,
};
use crate::meta::LabelSelector;
use crate::meta_validation::{validate_conditions, validate_label_selector};

/// Most nodes that one object carries. A node's status is about 350 bytes while its pods leave (its name, a target a
/// pod type, a message, two numbers), so that this many stay below the 1.5 MiB that storage takes.
pub const MAX_NODES: usize = 4000;
/// Most bytes of `status.nodeStatuses` as JSON: what storage takes, less room for the rest of the object.
pub const MAX_NODE_STATUSES_BYTES: usize = 1_400_000;
/// Most entries of a drain plan, the twelve that are inserted among them.
pub const MAX_DRAIN_PLAN: usize = 512;

/// Errors of a new object.
pub fn validate_create(new: &NodeMaintenance) -> ErrorList {
    validate_spec(&new.spec, &Path::new("spec"))
}

/// Errors of a change of the spec.
pub fn validate_update(new: &NodeMaintenance, old: &NodeMaintenance) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = validate_spec(&new.spec, &path);
    let deleting = old.metadata.deletion_timestamp.is_some();
    if new.spec.stage != Stage::Unknown && !may_change(old.spec.stage, new.spec.stage, deleting) {
        let (to, from) = (new.spec.stage.as_str(), old.spec.stage.as_str());
        let rule = if deleting {
            "the stage of an object that is being deleted may only change to Complete".to_owned()
        } else {
            format!(
                "may not change from {from}: stages only move forward along Idle -> Cordon -> Drain -> Complete"
            )
        };
        errors.push(Error::invalid(path.child("stage"), to, rule));
    }
    if !same_plan(&new.spec.drain_plan, &old.spec.drain_plan) {
        let value = serde_json::to_value(&new.spec.drain_plan).unwrap_or(Value::Null);
        errors.push(immutable(path.child("drainPlan"), value));
    }
    errors
}

/// Errors of a status.
pub fn validate_status_update(new: &NodeMaintenance, old: &NodeMaintenance) -> ErrorList {
    let path = Path::new("status");
    let mut errors = ErrorList::new();
    let (seen, before) = (new.status.observed_generation, old.status.observed_generation);
    let at = path.child("observedGeneration");
    if seen < before {
        errors.push(Error::invalid(at, seen, "must not be decremented"));
    } else if seen > before && seen > old.metadata.generation {
        errors.push(Error::invalid(at, seen, "must not be greater than metadata.generation"));
    }
    errors.extend(validate_stage_statuses(new, &path.child("stageStatuses")));
    if new.status.node_statuses != old.status.node_statuses {
        errors.extend(validate_node_statuses(&new.status.node_statuses, &path.child("nodeStatuses")));
    }
    errors.extend(validate_conditions(
        &new.status.conditions,
        &old.status.conditions,
        &path.child("conditions"),
    ));
    errors
}

/// Whether two plans are the same, however their selectors are written.
pub fn same_plan(a: &[DrainPlanEntry], b: &[DrainPlanEntry]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| key(a) == key(b))
}

fn validate_spec(spec: &NodeMaintenanceSpec, path: &Path) -> ErrorList {
    let mut errors = match &spec.node_selector {
        None => vec![Error::required(path.child("nodeSelector"), "")],
        Some(selector) => node_selector::validate(selector, &path.child("nodeSelector")),
    };
    errors.extend(validate_plan(&spec.drain_plan, &path.child("drainPlan")));
    errors
}

fn validate_plan(plan: &[DrainPlanEntry], path: &Path) -> ErrorList {
    if plan.len() > MAX_DRAIN_PLAN {
        return vec![Error::too_many(path.clone(), plan.len(), MAX_DRAIN_PLAN)];
    }
    let mut size = SelectorSize::default();
    plan.iter()
        .filter_map(|entry| entry.pod_selector.as_ref())
        .for_each(|selector| size.add_labels(selector));
    if let Some(error) = size.excess(path) {
        return vec![error];
    }
    let (mut seen, mut errors, mut last) = (HashSet::new(), ErrorList::new(), None);
    for (i, entry) in plan.iter().enumerate() {
        if is_full(&errors) {
            break;
        }
        let path = path.index(i);
        if let Some(selector) = &entry.pod_selector {
            errors.extend(validate_label_selector(selector, &path.child("podSelector")));
        }
        let key = key(entry);
        let rank = (entry.pod_type, entry.pod_priority, key.2.is_none());
        let value = || serde_json::to_value(entry).unwrap_or(Value::Null);
        if !seen.insert(key) {
            errors.push(Error::duplicate(path, value()));
        } else if entry.pod_type != PodType::Unknown && last.is_some_and(|last| rank < last) {
            errors.push(Error::invalid(path, value(), OUT_OF_ORDER));
        } else {
            last = Some(rank);
        }
    }
    errors
}

const OUT_OF_ORDER: &str = "out of order: podType Default comes before DaemonSet and Static, podPriority ascends within \
    a podType, and entries with a podSelector come before the one without";

/// An entry's identity: its selector in one form, an empty one being none.
fn key(entry: &DrainPlanEntry) -> (PodType, i32, Option<LabelSelector>) {
    let selector = entry.pod_selector.as_ref().filter(|s| !s.is_empty()).map(LabelSelector::normalized);
    (entry.pod_type, entry.pod_priority, selector)
}

fn validate_stage_statuses(new: &NodeMaintenance, path: &Path) -> ErrorList {
    let (mut seen, mut errors) = (HashSet::new(), ErrorList::new());
    for (i, stage) in new.status.stage_statuses.iter().enumerate() {
        if !seen.insert(stage.name) {
            errors.push(Error::duplicate(path.index(i).child("name"), stage.name.as_str()));
        }
    }
    errors
}

fn validate_node_statuses(statuses: &[NodeMaintenanceNodeStatus], path: &Path) -> ErrorList {
    if statuses.len() > MAX_NODES {
        return vec![Error::too_many(path.clone(), statuses.len(), MAX_NODES)];
    }
    let size = serde_json::to_vec(statuses).map_or(0, |json| json.len());
    if size > MAX_NODE_STATUSES_BYTES {
        return vec![Error::too_long(path.clone(), MAX_NODE_STATUSES_BYTES)];
    }
    let (mut seen, mut errors) = (HashSet::new(), ErrorList::new());
    for (i, status) in statuses.iter().enumerate() {
        let path = path.index(i);
        let name = status.node_ref.name.as_str();
        let at = path.child("nodeRef").child("name");
        if name.is_empty() {
            errors.push(Error::required(at, ""));
        } else if !seen.insert(name) {
            errors.push(Error::duplicate(at, name));
        }
        errors.extend(validate_counts(status, &path));
    }
    errors
}

fn validate_counts(status: &NodeMaintenanceNodeStatus, path: &Path) -> ErrorList {
    let counts = [
        ("podsPendingEvacuation", status.pods_pending_evacuation),
        ("podsEvacuating", status.pods_evacuating),
        ("blockedPods", status.blocked_pods),
    ];
    let negative = counts.into_iter().filter(|(_, count)| *count < 0);
    let detail = "must be greater than or equal to 0";
    negative.map(|(name, count)| Error::invalid(path.child(name), count, detail)).collect()
}
