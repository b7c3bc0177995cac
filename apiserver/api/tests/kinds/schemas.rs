//! Tests the schemas of both kinds: every field has a description, protobuf numbers are unique, and the structs have
//! exactly the same fields.

use std::collections::HashSet;

use drydock_api::eviction_request::{EvictionRequest, EvictionRequestStrategy};
use drydock_api::node_maintenance::{
    NodeMaintenance, NodeMaintenanceStrategy, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
};
use drydock_machinery::Object;
use drydock_machinery::kind::Kind;
use drydock_machinery::schema::{ApiType, Field, ListType, Schema, Shape};
use drydock_machinery::strategy::Strategy;
use serde_json::{Value, json};

fn schemas() -> [Schema; 2] {
    let eviction =
        EvictionRequestStrategy::new(std::time::Duration::from_secs(1200)).into_kind().schema().clone();
    [eviction, NodeMaintenanceStrategy.into_kind().schema().clone()]
}

fn check(schema: &Schema, at: &str) {
    match &schema.shape {
        Shape::Object(object) => {
            assert!(!object.definition.is_empty(), "{at}");
            let mut numbers = HashSet::new();
            for field in &object.fields {
                let at = format!("{at}.{}", field.name);
                assert!(!field.schema.description.is_empty(), "{at} is not documented");
                assert!(field.number == 0 || numbers.insert(field.number), "{at} repeats a protobuf number");
                check(&field.schema, &at);
            }
        }
        Shape::List(items, _) | Shape::Map(items) => check(items, at),
        _ => {}
    }
}

#[test]
fn every_field_is_documented_and_numbered_once() {
    schemas().iter().for_each(|s| check(s, ""));
}

fn known(schema: &Schema, value: &Value, at: &str) {
    match (&schema.shape, value) {
        (Shape::Object(_), Value::Object(map)) => {
            for (key, value) in map {
                let field = schema.field(key).unwrap_or_else(|| panic!("{at}.{key} is not in the schema"));
                known(field, value, &format!("{at}.{key}"));
            }
        }
        (Shape::List(items, _), Value::Array(list)) => list.iter().for_each(|v| known(items, v, at)),
        _ => {}
    }
}

#[test]
fn the_structs_carry_every_field_and_only_those() {
    let t = "2026-01-01T00:00:00Z";
    let condition = json!({ "type": "T", "status": "True", "observedGeneration": 1, "lastTransitionTime": t, "reason": "R", "message": "" });
    let eviction = json!({
        "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "EvictionRequest", "metadata": { "name": "u", "creationTimestamp": t },
        "spec": { "target": { "pod": { "name": "p", "uid": "u" } }, "requesters": [{ "name": "a.b" }],
            "requesterUsers": [{ "requester": "a.b", "username": "u" }] },
        "status": { "observedGeneration": 1, "conditions": [condition], "targetInterceptors": [{ "name": "a.b" }],
            "activeInterceptors": ["a.b"], "processedInterceptors": ["a.b"], "activationTime": "2026-01-01T00:00:00.123456Z",
            "interceptors": [{ "name": "a.b", "heartbeatTime": t, "expectedFinishTime": t, "startTime": t,
                "completionTime": t, "message": "",
                "blocked": { "reason": "R", "name": "n", "state": "S", "sinceTime": t },
                "lastBlocked": { "reason": "R", "name": "n", "state": "S", "sinceTime": t } }],
            "podInfo": { "nodeName": "n", "priority": 1, "podType": "Default" } },
    });
    let read: EvictionRequest = serde_json::from_value(eviction.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), eviction);
    known(&schemas()[0], &eviction, "");

    let selector = json!({ "matchLabels": { "a": "b" }, "matchExpressions": [{ "key": "a", "operator": "In", "values": ["b"] }] });
    let entry = json!({ "podSelector": selector, "podPriority": 1, "podType": "Static" });
    let requirement = json!([{ "key": "a", "operator": "In", "values": ["b"] }]);
    let maintenance = json!({
        "metadata": { "name": "m" },
        "spec": { "nodeSelector": { "nodeSelectorTerms": [{ "matchExpressions": requirement, "matchFields": requirement }] },
            "stage": "Drain", "lastPodType": "Static", "drainPlan": [entry], "reason": "r", "username": "u" },
        "status": { "observedGeneration": 1, "stageStatuses": [{ "name": "Drain", "startTimestamp": t }],
            "conditions": [condition], "drainPlanPosition": 1, "drainedNodes": 1,
            "outcomes": { "evicted": 1, "canceled": 1, "passedOver": 1, "returned": 1 },
            "goneNodes": { "drained": 1, "undrained": 1 }, "nodeStatuses": [{ "nodeRef": { "name": "n" }, "drainTargets": [entry],
                "drainMessage": "x", "podsPendingEvacuation": 1, "podsEvacuating": 1, "blockedPods": 1, "workloadsDrained": true,
                "left": [{ "podType": "Static", "priority": 1, "podSelector": selector, "count": 1 }], "blockers": [{
                    "pod": { "namespace": "a", "name": "b", "uid": "c" }, "reason": "Other", "message": "m", "sinceTime": t }] }] },
    });
    let read: NodeMaintenance = serde_json::from_value(maintenance.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), maintenance);
    known(&schemas()[1], &maintenance, "");
}

/// Fields that the server writes and does not reset belong to the client that first sends them.
#[test]
fn the_fields_that_the_server_records_are_those_that_no_manager_owns() {
    let eviction = EvictionRequestStrategy::new(std::time::Duration::from_secs(1200)).into_kind();
    let maintenance = NodeMaintenanceStrategy.into_kind();
    let kinds: [&dyn Kind; 2] = [&eviction, &maintenance];
    for kind in kinds {
        let sent = json!({ "spec": { "requesters": [{ "name": "a.b" }] }, "status": {} });
        let sent = Object::from(sent.as_object().unwrap().clone());
        let mut stored = sent.clone();
        kind.record_user(&mut stored, None, "ann");
        kind.note_creator(&mut stored, "ann");
        for path in kind.recorded_fields() {
            let (part, field) = path.split_once('.').unwrap();
            let recorded = stored.0[part].as_object_mut().unwrap().remove(field);
            assert!(recorded.is_some(), "{path} of {}", kind.names().kind);
        }
        assert_eq!(stored, sent, "{}", kind.names().kind);
    }
}

#[test]
fn an_apply_sends_what_is_set_and_nothing_else() {
    let mut request = EvictionRequest::named("ns", "u");
    request.spec.requesters.push(drydock_api::eviction_request::Requester { name: "a.b".to_owned() });
    let wanted = json!({ "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "EvictionRequest",
        "metadata": { "name": "u", "namespace": "ns" }, "spec": { "requesters": [{ "name": "a.b" }] } });
    assert_eq!(serde_json::to_value(&request).unwrap(), wanted);
}

/// The guide, in which operators look up the reasons.
const GUIDE: &str = include_str!("../../../../controllers/README.md");

#[test]
fn the_reasons_of_blockers_stand_in_kubectl_explain_and_the_guide() {
    let schema = format!("{:?}", schemas()[1]);
    for reason in drydock_api::reasons::REASONS {
        assert!(
            schema.contains(&format!(" {reason},")) || schema.contains(&format!(" {reason}.")),
            "{reason}"
        );
        assert!(
            GUIDE.contains(&format!("\n### {reason}\n")),
            "controllers/README.md has no heading {reason}"
        );
    }
}

#[test]
fn the_states_of_a_budget_stand_in_kubectl_explain_and_the_guide() {
    let schema = format!("{:?}", schemas()[0]);
    for state in drydock_api::reasons::STATES {
        assert!(schema.contains(state), "{state}");
        assert!(GUIDE.contains(&format!("\n#### {state}\n")), "controllers/README.md has no heading {state}");
    }
}

/// OpenAPI shows the host's own definitions of these structs in place of ours, so no document would tell.
#[test]
fn node_selectors_have_the_fields_of_core_v1() {
    let requirements = "repeated NodeSelectorRequirement";
    let term = format!("1 matchExpressions {requirements}, 2 matchFields {requirements}");
    let requirement = "1 key! string, 2 operator! string, 3 values repeated string";
    let shown = [
        fields(&NodeSelector::schema()),
        fields(&NodeSelectorTerm::schema()),
        fields(&NodeSelectorRequirement::schema()),
    ];
    let wanted = ["1 nodeSelectorTerms! repeated NodeSelectorTerm", &term, requirement];
    assert_eq!(shown, wanted);
}

/// Number, name and type of each field; `!` marks those that are required.
fn fields(schema: &Schema) -> String {
    let type_ = |shape: &Shape| match shape {
        Shape::String => "string".to_owned(),
        Shape::Object(object) => object.definition.replace("io.k8s.api.core.v1.", ""),
        other => panic!("{other:?}"),
    };
    let Shape::Object(object) = &schema.shape else { panic!("{schema:?}") };
    let field = |field: &Field| {
        let type_ = match &field.schema.shape {
            Shape::List(items, ListType::Atomic) => format!("repeated {}", type_(&items.shape)),
            other => type_(other),
        };
        format!("{} {}{} {type_}", field.number, field.name, if field.required { "!" } else { "" })
    };
    object.fields.iter().map(field).collect::<Vec<_>>().join(", ")
}
