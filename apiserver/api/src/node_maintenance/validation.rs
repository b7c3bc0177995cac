//! Validates a NodeMaintenance on create, update and status update. Does no I/O and does not change the object.

use std::collections::HashSet;

use drydock_machinery::field::{Error, ErrorList, Path, is_full};
use drydock_machinery::meta::immutable;
use drydock_machinery::object::json_len;
use serde_json::Value;

use super::defaults::{DEFAULT_PRIORITIES, PlanPosition};
use super::limits::{
    MAX_CONDITION_BYTES, MAX_DRAIN_PLAN, MAX_FINALIZERS, MAX_NODE_STATUSES_BYTES, MAX_NODES, SelectorSize,
};
use super::node_selector;
use super::status::{NodeMaintenanceNodeStatus, OUR_CONDITIONS};
use super::transitions::may_change;
use super::types::{
    DrainPlanEntry, FINALIZER, NodeMaintenance, NodeMaintenanceSpec, NodeMaintenanceStage, PodType,
};
use super::username;
use drydock_machinery::metav1::LabelSelector;
use drydock_machinery::metav1::validation::{validate_conditions, validate_label_selector};

/// Validates a new object.
pub fn validate_create(new: &NodeMaintenance) -> ErrorList {
    let mut errors = validate_spec(&new.spec, new.spec.last_pod_type, &Path::new("spec"));
    errors.extend(username::validate(new, None));
    errors.extend(validate_finalizers(new, None));
    errors
}

/// Validates a change of the spec.
pub fn validate_update(new: &NodeMaintenance, old: &NodeMaintenance) -> ErrorList {
    let path = Path::new("spec");
    // A changed lastPodType gives one error, and not one for each entry of the plan.
    let later = old.spec.last_pod_type.max(new.spec.last_pod_type);
    let mut errors = validate_spec(&new.spec, later, &path);
    errors.extend(username::validate(new, Some(old)));
    errors.extend(validate_finalizers(new, Some(old)));
    let deleting = old.metadata.deletion_timestamp.is_some();
    if new.spec.stage != NodeMaintenanceStage::Unknown
        && !may_change(old.spec.stage, new.spec.stage, deleting)
    {
        let (to, from) = (new.spec.stage.as_str(), old.spec.stage.as_str());
        let rule = if deleting {
            "the stage of an object that is being deleted may only change to Complete".to_owned()
        } else {
            format!(
                "may not change from {from}: stages only move forward along Idle -> Cordon -> Drain -> Complete; to go back, create \
                 a new NodeMaintenance"
            )
        };
        errors.push(Error::invalid(path.child("stage"), to, rule));
    }
    let last = new.spec.last_pod_type;
    if last != old.spec.last_pod_type {
        // The inserted entries depend on the type: an error that the plan has changed would only repeat this one.
        let known = Some(last).filter(|last| *last != PodType::Unknown);
        let rule = |last: PodType| {
            format!(
                "field is immutable; create a second NodeMaintenance with lastPodType: {} for the same nodes, then delete this \
                 one, in this order, so that the nodes stay cordoned",
                last.as_str()
            )
        };
        errors.extend(known.map(|last| Error::invalid(path.child("lastPodType"), last.as_str(), rule(last))));
    } else if !same_plan(&new.spec.drain_plan, &old.spec.drain_plan) {
        let value = serde_json::to_value(&new.spec.drain_plan).unwrap_or(Value::Null);
        errors.push(immutable(path.child("drainPlan"), value));
    }
    errors
}

/// Validates a status.
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
    errors.extend(validate_position(new, &path.child("drainPlanPosition")));
    errors.extend(validate_count(new.status.drained_nodes, path.child("drainedNodes")));
    let (outcomes, at) = (&new.status.outcomes, path.child("outcomes"));
    errors.extend(validate_count(outcomes.evicted, at.child("evicted")));
    errors.extend(validate_count(outcomes.canceled, at.child("canceled")));
    errors.extend(validate_count(outcomes.passed_over, at.child("passedOver")));
    errors.extend(validate_count(outcomes.returned, at.child("returned")));
    let (gone, at) = (&new.status.gone_nodes, path.child("goneNodes"));
    errors.extend(validate_count(gone.drained, at.child("drained")));
    errors.extend(validate_count(gone.undrained, at.child("undrained")));
    errors.extend(validate_conditions(
        &new.status.conditions,
        &old.status.conditions,
        &path.child("conditions"),
    ));
    let foreign = |maintenance: &NodeMaintenance| -> usize {
        let conditions = maintenance.status.conditions.iter();
        conditions.filter(|c| !OUR_CONDITIONS.contains(&c.type_.as_str())).map(json_len).sum()
    };
    let bytes = foreign(new);
    if bytes > MAX_CONDITION_BYTES && bytes > foreign(old) {
        errors.push(Error::too_long(path.child("conditions"), MAX_CONDITION_BYTES));
    }
    errors
}

/// Whether two plans are equal after normalizing their selectors.
pub fn same_plan(a: &[DrainPlanEntry], b: &[DrainPlanEntry]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| key(a) == key(b))
}

/// There may be no more finalizers than [`MAX_FINALIZERS`], or than there are: controllers keep them all.
fn validate_finalizers(new: &NodeMaintenance, old: Option<&NodeMaintenance>) -> Option<Error> {
    let count =
        |it: &NodeMaintenance| it.metadata.finalizers.iter().filter(|name| *name != FINALIZER).count();
    let (after, before) = (count(new), old.map_or(0, count));
    let path = || Path::new("metadata").child("finalizers");
    (after > MAX_FINALIZERS.max(before)).then(|| Error::too_many(path(), after, MAX_FINALIZERS))
}

/// The plan may have no entries of a type after `last`.
fn validate_spec(spec: &NodeMaintenanceSpec, last: PodType, path: &Path) -> ErrorList {
    let mut errors = match &spec.node_selector {
        None => vec![Error::required(path.child("nodeSelector"), "")],
        Some(selector) => node_selector::validate(selector, &path.child("nodeSelector")),
    };
    errors.extend(validate_plan(&spec.drain_plan, last, &path.child("drainPlan")));
    errors
}

fn validate_plan(plan: &[DrainPlanEntry], last_type: PodType, path: &Path) -> ErrorList {
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
        if entry.pod_type != PodType::Unknown && entry.pod_type > last_type {
            errors.push(beyond_last(entry.pod_type, last_type, path));
        } else if !seen.insert(key) {
            errors.push(Error::duplicate(path, value()));
        } else if let Some(later) = last.filter(|later| entry.pod_type != PodType::Unknown && rank < *later) {
            errors.push(Error::invalid(path, value(), out_of_order(later)));
        } else {
            last = Some(rank);
        }
    }
    errors
}

fn beyond_last(pod_type: PodType, last: PodType, path: Path) -> Error {
    let last = last.as_str();
    let detail = format!("comes after spec.lastPodType, {last}: this maintenance does not drain such pods");
    Error::invalid(path.child("podType"), pod_type.as_str(), detail)
}

/// Names the entry that must come later, because it may have been inserted and not be in the manifest.
fn out_of_order((pod_type, priority, no_selector): PlanPosition) -> String {
    let of_every_plan = if no_selector && DEFAULT_PRIORITIES.contains(&priority) {
        " without a podSelector, which every plan has"
    } else {
        ""
    };
    format!(
        "out of order: must come before the entry with podType {} and podPriority {priority}{of_every_plan}; podType Default comes \
         before DaemonSet and Static, podPriority ascends within a podType, and entries with a podSelector come before the one \
         without",
        pod_type.as_str()
    )
}

/// The identity of an entry, with the selector in its normal form. An empty selector is the same as none.
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

fn validate_position(new: &NodeMaintenance, path: &Path) -> ErrorList {
    let entries = new.spec.drain_plan.len();
    let is_index = |at: i32| usize::try_from(at).is_ok_and(|at| at < entries);
    let wrong = new.status.drain_plan_position.filter(|at| !is_index(*at));
    let detail = || format!("must be the index of one of the {entries} entries of spec.drainPlan");
    wrong.map(|at| Error::invalid(path.clone(), at, detail())).into_iter().collect()
}

fn validate_node_statuses(statuses: &[NodeMaintenanceNodeStatus], path: &Path) -> ErrorList {
    if statuses.len() > MAX_NODES {
        return vec![Error::too_many(path.clone(), statuses.len(), MAX_NODES)];
    }
    if json_len(statuses) > MAX_NODE_STATUSES_BYTES {
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
    let left = status.left.iter().enumerate();
    let left = left.map(|(i, left)| (path.child("left").index(i).child("count"), left.count));
    let counts = counts.into_iter().map(|(name, count)| (path.child(name), count));
    counts.chain(left).flat_map(|(path, count)| validate_count(count, path)).collect()
}

fn validate_count(count: i32, path: Path) -> Option<Error> {
    (count < 0).then(|| Error::invalid(path, count, "must be greater than or equal to 0"))
}
