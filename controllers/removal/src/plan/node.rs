//! What maintenances leave on a node: the cordon with its annotation, a taint, and conditions.

use drydock_runtime::cache::DRAIN_TAINT;
use drydock_runtime::cache::node::{CORDONED_BY, CORDONED_BY_US, OUR_CONDITION_TYPES, has_our_conditions};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{ObjectPart, RemovalPlan, SeenVersion, UndoWrite, annotation, with_version};

/// Makes a node schedulable if Drydock had cordoned it, and removes annotation, taint and conditions. A node that others had
/// cordoned stays unschedulable, and so does one without the annotation.
pub(crate) fn release(node: &DynamicObject) -> RemovalPlan {
    let (by, taints, conditions) = (annotation(node, CORDONED_BY), other_taints(node), our_conditions(node));
    if by.is_none() && taints.is_none() && conditions.is_empty() {
        return RemovalPlan::Nothing;
    }
    with_version(node, |seen| {
        let main = (by.is_some() || taints.is_some()).then(|| uncordon(&seen, by, taints));
        let status = (!conditions.is_empty()).then(|| without(&seen, &conditions));
        RemovalPlan::Write(main.into_iter().chain(status).collect())
    })
}

fn uncordon(seen: &SeenVersion, by: Option<&str>, taints: Option<Vec<Value>>) -> UndoWrite {
    let (mut metadata, mut rest, mut effects) = (json!({}), json!({}), Vec::new());
    if by == Some(CORDONED_BY_US) {
        rest["spec"]["unschedulable"] = Value::Null;
        effects.push("it is schedulable".to_owned());
    }
    if by.is_some() {
        metadata["annotations"] = json!({CORDONED_BY: null});
        effects.push(format!("without the annotation {CORDONED_BY}"));
    }
    if let Some(others) = taints {
        rest["spec"]["taints"] = Value::Array(others);
        effects.push(format!("without the taint {DRAIN_TAINT}"));
    }
    UndoWrite { effect: effects.join(", "), part: ObjectPart::Main, patch: seen.patch(metadata, rest) }
}

fn without(seen: &SeenVersion, types: &[&str]) -> UndoWrite {
    let gone: Vec<Value> = types.iter().map(|type_| json!({"$patch": "delete", "type": type_})).collect();
    let patch = seen.patch(json!({}), json!({"status": {"conditions": gone}}));
    let effect = format!("without the conditions {}", types.join(", "));
    UndoWrite { effect, part: ObjectPart::Status, patch }
}

/// The node's taints without Drydock's; none if it has none of Drydock's.
fn other_taints(node: &DynamicObject) -> Option<Vec<Value>> {
    let taints = node.data["spec"]["taints"].as_array()?;
    let others: Vec<Value> = taints.iter().filter(|taint| taint["key"] != DRAIN_TAINT).cloned().collect();
    (others.len() < taints.len()).then_some(others)
}

/// The types of the node's conditions that are Drydock's.
fn our_conditions(node: &DynamicObject) -> Vec<&'static str> {
    let conditions = node.data["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let types: Vec<&str> = conditions.iter().filter_map(|condition| condition["type"].as_str()).collect();
    if !has_our_conditions(types.iter().copied()) {
        return Vec::new();
    }
    OUR_CONDITION_TYPES.into_iter().filter(|ours| types.contains(ours)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(cordoned_by: Option<&str>, spec: Value, conditions: &[&str]) -> DynamicObject {
        let mut metadata = json!({"name": "n", "uid": "u", "resourceVersion": "7"});
        if let Some(by) = cordoned_by {
            metadata["annotations"] = json!({CORDONED_BY: by});
        }
        let conditions: Vec<Value> = conditions.iter().map(|type_| json!({"type": type_})).collect();
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec,
            "status": {"conditions": conditions},
        });
        serde_json::from_value(node).unwrap_or_else(|error| panic!("{error}"))
    }

    fn patches(node: &DynamicObject) -> Vec<Value> {
        match release(node) {
            RemovalPlan::Write(writes) => writes.into_iter().map(|write| write.patch).collect(),
            RemovalPlan::Nothing => Vec::new(),
            RemovalPlan::Leave(why) => panic!("{why}"),
        }
    }

    fn versioned(mut metadata: Value) -> Value {
        metadata["uid"] = json!("u");
        metadata["resourceVersion"] = json!("7");
        metadata
    }

    #[test]
    fn a_node_that_drydock_had_cordoned_stayed_cordoned() {
        let metadata = versioned(json!({"annotations": {CORDONED_BY: null}}));
        let wanted = json!({"metadata": metadata, "spec": {"unschedulable": null}});
        assert_eq!(
            patches(&node(Some(CORDONED_BY_US), json!({"unschedulable": true}), &["Ready"])),
            [wanted]
        );
    }

    /// A forged line of another node's annotation named a node that an admin had cordoned.
    #[test]
    fn a_node_that_others_had_cordoned_became_schedulable() {
        let hostile = "x\nworker-2|nodemaintenance.k8s.io||";
        for by in ["other", "", "<no value>", "nodemaintenance.k8s.io ", hostile] {
            let metadata = versioned(json!({"annotations": {CORDONED_BY: null}}));
            let wanted = json!({"metadata": metadata});
            assert_eq!(patches(&node(Some(by), json!({"unschedulable": true}), &[])), [wanted], "{by}");
        }
        assert_eq!(release(&node(None, json!({"unschedulable": true}), &["Ready"])), RemovalPlan::Nothing);
    }

    #[test]
    fn a_taint_of_others_went_with_the_one_of_drydock() {
        let theirs = json!({"key": "theirs", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"});
        let ours = |effect: &str| json!({"key": DRAIN_TAINT, "effect": effect});
        let taints = json!({"taints": [ours("NoSchedule"), theirs, ours("NoExecute")]});
        let wanted = json!({"metadata": versioned(json!({})), "spec": {"taints": [theirs]}});
        assert_eq!(patches(&node(None, taints, &[])), [wanted]);
        assert_eq!(release(&node(None, json!({"taints": [theirs]}), &[])), RemovalPlan::Nothing);
    }

    #[test]
    fn a_condition_drained_of_others_was_removed() {
        assert_eq!(
            release(&node(None, json!({}), &["Ready", "Drained", "DrainInProgress"])),
            RemovalPlan::Nothing
        );
        let ours = patches(&node(None, json!({}), &["Ready", "Drained", "MaintenanceInProgress", "Drained"]));
        let gone =
            ["MaintenanceInProgress", "Drained"].map(|type_| json!({"$patch": "delete", "type": type_}));
        assert_eq!(ours, [json!({"metadata": versioned(json!({})), "status": {"conditions": gone}})]);
    }

    #[test]
    fn a_node_of_which_the_host_names_no_version_was_written() {
        let mut versionless = node(Some(CORDONED_BY_US), json!({}), &["MaintenancePlanned"]);
        versionless.metadata.resource_version = Some(String::new());
        assert!(matches!(release(&versionless), RemovalPlan::Leave(_)));
    }
}
