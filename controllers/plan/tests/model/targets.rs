//! What a node shows as drainTargets.

use drydock_api::metav1::{LabelSelector, LabelSelectorRequirement};
use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

use super::{Pod, State};

/// The requirements of an entry as one normalised set; none without a selector.
pub fn requirements(entry: &DrainPlanEntry) -> Vec<LabelSelectorRequirement> {
    entry.pod_selector.as_ref().map(|s| s.normalized().match_expressions).unwrap_or_default()
}

/// Whether an entry has no selector; an empty one is none.
pub fn has_none(entry: &DrainPlanEntry) -> bool {
    entry.pod_selector.as_ref().is_none_or(LabelSelector::is_empty)
}

/// Whether one entry covers all that another does: same type, at least its priority, no requirement of its own.
pub fn covers(wide: &DrainPlanEntry, narrow: &DrainPlanEntry) -> bool {
    let is_within = || {
        let theirs = requirements(narrow);
        requirements(wide).iter().all(|r| theirs.contains(r))
    };
    wide.pod_type == narrow.pod_type
        && wide.pod_priority >= narrow.pod_priority
        && (has_none(wide) || is_within())
}

/// Whether two entries have the type and the selector in common.
fn is_same(a: &DrainPlanEntry, b: &DrainPlanEntry) -> bool {
    let is_equal = || a.pod_selector == b.pod_selector || requirements(a) == requirements(b);
    a.pod_type == b.pod_type && has_none(a) == has_none(b) && (has_none(a) || is_equal())
}

/// Adds an entry, or raises the one of its type and selector. Entries are never lowered.
fn raise(entries: &mut Vec<DrainPlanEntry>, new: &DrainPlanEntry) {
    match entries.iter_mut().find(|e| is_same(e, new)) {
        Some(old) => old.pod_priority = old.pod_priority.max(new.pod_priority),
        None => entries.push(new.clone()),
    }
}

/// drainTargets of a node: what it shows already, the least of each type and selector, and joined entries; ordered by
/// type, then without selector, then selectors in plan order (of the oldest maintenance first), then the rest.
pub fn of(state: &State<'_>, node: &str) -> Vec<DrainPlanEntry> {
    let kinds = kinds(state, node);
    let least: Vec<DrainPlanEntry> = kinds.iter().filter_map(|kind| least(state, node, kind)).collect();
    let by_none = |p: &&Pod<'_>| !least.iter().any(|e| p.is_covered(e));
    let joined: Vec<DrainPlanEntry> =
        state.pods_on(node).filter(by_none).filter_map(|p| joined(state, node, p)).collect();
    let mut all = Vec::new();
    for entry in least.iter().chain(&joined).chain(&recorded(state, node)) {
        raise(&mut all, entry);
    }
    // What the node shows already without a selector raises all selectors of its type too.
    for kind in kinds.iter().filter(|kind| !has_none(kind)) {
        let wide = all.iter().find(|e| has_none(e) && e.pod_type == kind.pod_type);
        if let Some(pod_priority) = wide.map(|e| e.pod_priority) {
            raise(&mut all, &DrainPlanEntry { pod_priority, ..kind.clone() });
        }
    }
    let place = |e: &DrainPlanEntry| kinds.iter().position(|k| is_same(k, e)).unwrap_or(kinds.len());
    // A joined entry that another one covers is dropped.
    let is_dropped = |e: &DrainPlanEntry| {
        place(e) == kinds.len() && all.iter().any(|other| !is_same(other, e) && covers(other, e))
    };
    let mut shown: Vec<DrainPlanEntry> = all.iter().filter(|e| !is_dropped(e)).cloned().collect();
    shown.sort_by_key(|e| (e.pod_type, place(e), requirements(e)));
    shown
}

/// Each type without a selector and with each selector that a plan on the node has within the type, as entries
/// whose priority means nothing.
fn kinds(state: &State<'_>, node: &str) -> Vec<DrainPlanEntry> {
    let mut kinds = Vec::new();
    for pod_type in [PodType::Default, PodType::DaemonSet, PodType::Static] {
        kinds.push(DrainPlanEntry { pod_selector: None, pod_priority: 0, pod_type });
        for entry in state.on(node).into_iter().flat_map(|m| &state.all[m].plan) {
            if entry.pod_type == pod_type && !kinds.iter().any(|k| is_same(k, entry)) {
                kinds.push(DrainPlanEntry { pod_priority: 0, ..entry.clone() });
            }
        }
    }
    kinds
}

/// The least, over the maintenances on the node, of the highest priority reached. An entry without a selector raises
/// all selectors of its type. None if one of them has reached nothing of it.
fn least(state: &State<'_>, node: &str, kind: &DrainPlanEntry) -> Option<DrainPlanEntry> {
    let counts =
        |e: &&DrainPlanEntry| is_same(e, kind) || (e.pod_type == kind.pod_type && requirements(e).is_empty());
    let highest = |m: usize| state.entries(m).iter().filter(counts).map(|e| e.pod_priority).max();
    let each: Option<Vec<i32>> = state.on_for(node, kind.pod_type).into_iter().map(highest).collect();
    let pod_priority = each?.into_iter().min()?;
    Some(DrainPlanEntry { pod_priority, ..kind.clone() })
}

/// Where every maintenance has reached a pod: the pod's type, the least priority, all selectors together.
fn joined(state: &State<'_>, node: &str, pod: &Pod<'_>) -> Option<DrainPlanEntry> {
    let each: Option<Vec<&DrainPlanEntry>> =
        state.on_for(node, pod.pod_type).into_iter().map(|m| contribution(state, m, pod)).collect();
    let each = each?;
    let match_expressions = each.iter().flat_map(|e| requirements(e)).collect();
    let selector = LabelSelector { match_expressions, ..LabelSelector::default() }.normalized();
    Some(DrainPlanEntry {
        pod_selector: Some(selector),
        pod_priority: each.iter().map(|e| e.pod_priority).min()?,
        pod_type: pod.pod_type,
    })
}

/// Of the entries that a maintenance has reached and that cover the pod: the highest without a selector, else the
/// highest (the first in the plan among equals).
fn contribution<'a>(state: &State<'a>, m: usize, pod: &Pod<'_>) -> Option<&'a DrainPlanEntry> {
    let highest = |none: bool| {
        let covering = state.entries(m).iter().filter(|e| pod.is_covered(e));
        covering.filter(|e| !none || has_none(e)).rev().max_by_key(|e| e.pod_priority)
    };
    highest(true).or_else(|| highest(false))
}

/// What the node shows already: the targets that the maintenances which select it have recorded. If one of them
/// drains the type and has recorded the node, also the targets of maintenances that have left or ended.
pub fn recorded(state: &State<'_>, node: &str) -> Vec<DrainPlanEntry> {
    let goes_on = |e: &&DrainPlanEntry| {
        let here = state.on_for(node, e.pod_type);
        here.into_iter().any(|m| state.all[m].recorded.contains_key(node))
    };
    let by_all = state.all.iter().filter_map(|m| m.recorded.get(node));
    by_all.chain(state.ended.get(node)).flatten().filter(goes_on).cloned().collect()
}
