//! Defaults of a NodeMaintenance: the stage, the pod types, and the entries that every drain plan has.

use serde_json::{Map, Value, json};

use super::types::PodType;

/// Priorities of the entries that every plan has for each pod type: the maximum of user-defined priority classes,
/// system-cluster-critical, system-node-critical, and the maximum int32 (KEP-4212, DrainPlan).
pub const DEFAULT_PRIORITIES: [i32; 4] = [1_000_000_000, 2_000_000_000, 2_000_001_000, i32::MAX];

/// The position of an entry in the order of a plan: type, priority, and entries with a selector before those without.
pub type PlanPosition = (PodType, i32, bool);

/// Sets the absent fields of a spec. Returns the indexes of the entries that it inserted into the plan, ascending.
pub fn default_spec(spec: &mut Map<String, Value>) -> Vec<usize> {
    if spec.get("stage").is_none_or(|s| s.is_null() || s == "") {
        spec.insert("stage".to_owned(), "Idle".into());
    }
    if spec.get("lastPodType").is_none_or(|t| t.is_null() || t == "") {
        spec.insert("lastPodType".to_owned(), PodType::Static.as_str().into());
    }
    // Validation rejects an unknown value later.
    let last = spec.get("lastPodType").and_then(|t| serde_json::from_value(t.clone()).ok());
    let last = last.unwrap_or(PodType::Static);
    let plan = spec.entry("drainPlan").or_insert_with(|| json!([]));
    if plan.is_null() {
        *plan = json!([]);
    }
    let Value::Array(entries) = plan else { return Vec::new() };
    entries.iter_mut().for_each(default_entry);
    insert_missing(entries, last)
}

fn default_entry(entry: &mut Value) {
    let Value::Object(entry) = entry else { return };
    if entry.get("podType").is_none_or(|t| t.is_null() || t == "") {
        entry.insert("podType".to_owned(), PodType::Default.as_str().into());
    }
}

/// Inserts the absent ones of the twelve entries, up to the last pod type, each before the first entry that is
/// greater. The existing entries keep their order, even if it is wrong.
fn insert_missing(entries: &mut Vec<Value>, last: PodType) -> Vec<usize> {
    let mut inserted: Vec<usize> = Vec::new();
    for pod_type in PodType::ALL.into_iter().filter(|pod_type| *pod_type <= last) {
        for priority in DEFAULT_PRIORITIES {
            let position = (pod_type, priority, true);
            let positions: Vec<Option<PlanPosition>> = entries.iter().map(position_of).collect();
            if positions.contains(&Some(position)) {
                continue;
            }
            let place =
                positions.iter().position(|r| r.is_some_and(|r| r > position)).unwrap_or(entries.len());
            entries.insert(place, json!({ "podPriority": priority, "podType": pod_type.as_str() }));
            inserted.iter_mut().filter(|at| **at >= place).for_each(|at| *at += 1);
            inserted.push(place);
        }
    }
    inserted.sort_unstable();
    inserted
}

fn position_of(entry: &Value) -> Option<PlanPosition> {
    let priority = entry.get("podPriority").map_or(Some(0), Value::as_i64)?;
    let pod_type = serde_json::from_value(entry.get("podType")?.clone()).ok()?;
    Some((pod_type, i32::try_from(priority).ok()?, !has_selector(entry.get("podSelector"))))
}

/// Whether an entry has a selector. An empty one means the same as none.
fn has_selector(selector: Option<&Value>) -> bool {
    let filled = |v: &Value| {
        v.as_object().is_some_and(|m| !m.is_empty()) || v.as_array().is_some_and(|a| !a.is_empty())
    };
    selector.and_then(Value::as_object).is_some_and(|s| s.values().any(filled))
}

#[cfg(test)]
#[path = "defaults_tests.rs"]
mod tests;
