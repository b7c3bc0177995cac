//! A table of the permissions that writes need, and a comparison with a model for random statuses.

#![allow(clippy::unwrap_used)]
use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::eviction_request::{EvictionRequest, InterceptorStatus};
use drydock_machinery::metav1::Condition;

const AT: &str = "2026-01-01T00:00:00Z";

fn object(status: &Value) -> Object {
    Object::from_json(json!({"metadata": {"name": "uid"}, "status": status}).to_string().as_bytes()).unwrap()
}

fn shown(needed: &NeededPermissions<'_>) -> Vec<String> {
    let words = |(permission, field): (&Permission<'_>, &Path)| match permission {
        Permission::Assignment => format!("assignment for {field}"),
        Permission::Interceptor(name) => format!("interceptor {name} for {field}"),
    };
    needed.iter().map(words).collect()
}

/// The permissions that a write needs that sets the value at a JSON pointer of the stored status.
fn change(stored: &Value, at: &str, value: Value) -> Vec<String> {
    let mut new = stored.clone();
    match new.pointer_mut(at) {
        Some(there) => *there = value,
        None => {
            let (parent, field) = at.rsplit_once('/').unwrap();
            match new.pointer_mut(parent).unwrap() {
                Value::Array(items) => items.push(value),
                parent => parent[field] = value,
            }
        }
    }
    shown(&needed(&object(&new), &object(stored)))
}

/// A status in which a.b is active, followed by c.d and the last interceptor.
fn stored() -> Value {
    json!({
        "observedGeneration": 1,
        "targetInterceptors": [{"name": "a.b"}, {"name": "c.d"}, {"name": "e.f"}],
        "activeInterceptors": ["a.b"],
        "activationTime": "2026-01-01T00:00:00.000000Z",
        "interceptors": [{"name": "a.b", "message": ""}, {"name": "c.d", "message": ""}, {"name": "e.f", "message": ""}],
        "conditions": [{"type": "Odd", "status": "True"}, {"type": "Even", "status": "True"}],
    })
}

#[test]
fn the_fields_of_the_assigner() {
    for (at, value, field) in [
        ("/observedGeneration", json!(2), "observedGeneration"),
        ("/targetInterceptors/1/name", json!("x.y"), "targetInterceptors"),
        (
            "/targetInterceptors",
            json!([{"name": "a.b"}, {"name": "e.f"}, {"name": "c.d"}]),
            "targetInterceptors",
        ),
        ("/activeInterceptors/0", json!("c.d"), "activeInterceptors"),
        ("/activeInterceptors", json!(null), "activeInterceptors"),
        ("/processedInterceptors", json!(["a.b"]), "processedInterceptors"),
        ("/activationTime", json!("2026-01-01T00:00:01.000000Z"), "activationTime"),
        ("/conditions/-", json!({"type": "Evicted", "status": "True"}), "conditions[Evicted]"),
        ("/conditions/-", json!({"type": "Canceled", "status": "False"}), "conditions[Canceled]"),
        ("/interceptors/-", json!({"name": "g.h", "message": ""}), "interceptors[g.h]"),
        ("/podInfo", json!({"nodeName": "n"}), "podInfo"),
    ] {
        assert_eq!(change(&stored(), at, value), [format!("assignment for status.{field}")], "{at}");
    }
}

#[test]
fn an_entry_is_its_interceptors() {
    for (at, value) in [
        ("/interceptors/0/message", json!("hello")),
        ("/interceptors/0/heartbeatTime", json!(AT)),
        ("/interceptors/0/completionTime", json!(AT)),
        ("/interceptors/0/blocked", json!({"reason": "Other"})),
    ] {
        assert_eq!(change(&stored(), at, value), ["interceptor a.b for status.interceptors[a.b]"], "{at}");
    }
    // Independent of the active interceptor, which validation checks.
    let other = change(&stored(), "/interceptors/1/message", json!("hello"));
    assert_eq!(other, ["interceptor c.d for status.interceptors[c.d]"]);
}

#[test]
fn nobody_ends_the_last_turn_alone() {
    let message = change(&stored(), "/interceptors/2/message", json!("hello"));
    assert_eq!(message, ["interceptor e.f for status.interceptors[e.f]"]);
    let end = change(&stored(), "/interceptors/2/completionTime", json!(AT));
    let both = [
        "assignment for status.interceptors[e.f].completionTime",
        "interceptor e.f for status.interceptors[e.f]",
    ];
    assert_eq!(end, both);
}

#[test]
fn entries_neither_come_nor_go_nor_change_places_by_interceptors() {
    let mut gone = stored();
    gone["interceptors"].as_array_mut().unwrap().remove(0);
    let shown_of = |new: &Value| shown(&needed(&object(new), &object(&stored())));
    assert_eq!(shown_of(&gone), ["assignment for status.interceptors[a.b]"]);
    let mut turned = stored();
    turned["interceptors"].as_array_mut().unwrap().reverse();
    assert_eq!(shown_of(&turned), ["assignment for status.interceptors"]);
    let first =
        json!({"targetInterceptors": [{"name": "a.b"}], "interceptors": [{"name": "a.b", "message": ""}]});
    let nothing = object(&json!({}));
    assert_eq!(needed(&object(&first), &nothing).into_keys().collect::<Vec<_>>(), [Permission::Assignment]);
}

#[test]
fn what_is_no_list_of_entries_is_the_assigners() {
    for odd in
        [json!([{"message": "m"}]), json!(["a.b"]), json!({}), json!([{"name": "a.b"}, {"name": "a.b"}])]
    {
        let needed = change(&stored(), "/interceptors", odd.clone());
        assert!(needed.iter().any(|it| it.starts_with("assignment for")), "{odd}: {needed:?}");
    }
}

#[test]
fn conditions_of_others_are_the_active_interceptors() {
    for (at, value, type_) in [
        ("/conditions/0/status", json!("False"), "Odd"),
        ("/conditions/-", json!({"type": "New", "status": "True"}), "New"),
    ] {
        let field = format!("status.conditions[{type_}]");
        assert_eq!(change(&stored(), at, value.clone()), [format!("interceptor a.b for {field}")]);
        let mut ended = stored();
        ended["activeInterceptors"] = json!([]);
        assert_eq!(change(&ended, at, value), [format!("assignment for {field}")]);
    }
    let fewer = change(&stored(), "/conditions", json!([{"type": "Odd", "status": "True"}]));
    assert_eq!(fewer, ["interceptor a.b for status.conditions[Even]"]);
}

/// A write that changes the active interceptor and also reports is judged by the stored active interceptor.
#[test]
fn the_stored_object_says_who_is_active() {
    let mut new = stored();
    new["activeInterceptors"] = json!(["c.d"]);
    new["conditions"][0]["status"] = json!("False");
    let expected = ["assignment for status.activeInterceptors", "interceptor a.b for status.conditions[Odd]"];
    assert_eq!(shown(&needed(&object(&new), &object(&stored()))), expected);
}

#[test]
fn what_says_the_same_needs_nothing() {
    assert!(change(&stored(), "/observedGeneration", json!(1)).is_empty());
    for (at, zero) in [
        ("/processedInterceptors", json!([])),
        ("/interceptors/1", json!({"name": "c.d"})),
        ("/interceptors/1/startTime", json!(null)),
        ("/conditions/0/observedGeneration", json!(0)),
    ] {
        assert!(change(&stored(), at, zero).is_empty(), "{at}");
    }
    assert!(needed(&object(&json!(null)), &object(&json!({}))).is_empty());
}

fn applied(status: &Value, owned: Value) -> Object {
    let entry = json!({"manager": "m", "operation": "Apply", "subresource": "status", "apiVersion": "g/v1",
                       "fieldsType": "FieldsV1", "fieldsV1": owned});
    let object = json!({"metadata": {"name": "uid", "managedFields": [entry]}, "status": status});
    Object::from_json(object.to_string().as_bytes()).unwrap()
}

#[test]
fn what_an_applier_comes_to_own_counts_as_changed() {
    for (fields, expected) in [
        (json!({"f:activeInterceptors": {"v:\"a.b\"": {}}}), "assignment for status.activeInterceptors"),
        (json!({"f:interceptors": {"k:{\"name\":\"c.d\"}": {}}}), "interceptor c.d for status.interceptors"),
        (json!({"f:interceptors": {"k:{\"name\":\"x.y\"}": {}}}), "assignment for status.interceptors"),
        (json!({"f:interceptors": {}}), "assignment for status.interceptors"),
        (
            json!({"f:conditions": {"k:{\"type\":\"Odd\"}": {".": {}}}}),
            "interceptor a.b for status.conditions",
        ),
        (
            json!({"f:conditions": {"k:{\"type\":\"Evicted\"}": {"f:status": {}}}}),
            "assignment for status.conditions",
        ),
        (json!({"f:\u{7}<made up>": {}}), "assignment for status"),
        (json!({}), "assignment for status"),
    ] {
        let (new, old) = (applied(&stored(), json!({ "f:status": fields })), object(&stored()));
        assert_eq!(shown(&needed(&new, &old)), [expected]);
        assert!(needed(&new, &new.clone()).is_empty());
        assert!(needed(&old, &new).is_empty(), "what is given up is nobody's loss");
    }
}

#[test]
fn there_are_no_more_permissions_than_interceptors() {
    let names = (0..1000).map(|n| (format!("k:{{\"name\":\"n{n}.x\"}}"), json!({}))).collect::<Map<_, _>>();
    let new = applied(&stored(), json!({"f:status": {"f:interceptors": names}}));
    assert_eq!(needed(&new, &object(&stored())).len(), 1);
}

/// A literal implementation of the rule on the typed status, with each of the assigner's fields by name.
fn model(new: &EvictionRequest, old: &EvictionRequest) -> BTreeSet<Option<String>> {
    let (new, old) = (&new.status, &old.status);
    let mut needed = BTreeSet::new();
    let assigned = new.target_interceptors != old.target_interceptors
        || new.active_interceptors != old.active_interceptors
        || new.processed_interceptors != old.processed_interceptors
        || new.activation_time != old.activation_time
        || new.observed_generation != old.observed_generation;
    if assigned {
        needed.insert(None);
    }
    let find = |all: &[InterceptorStatus], name: &str| all.iter().find(|i| i.name == name).cloned();
    let last = old.target_interceptors.last().map(|last| last.name.clone());
    for name in NAMES {
        let (now, before) = (find(&new.interceptors, name), find(&old.interceptors, name));
        if now == before {
            continue;
        }
        let ended = |entry: &Option<InterceptorStatus>| entry.as_ref().and_then(|e| e.completion_time);
        let by_name = now.is_some() && before.is_some();
        if !by_name || (ended(&now) != ended(&before) && last.as_deref() == Some(name)) {
            needed.insert(None);
        }
        needed.extend(by_name.then(|| Some((*name).to_owned())));
    }
    let find = |all: &[Condition], type_: &str| all.iter().find(|c| c.type_ == type_).cloned();
    for type_ in TYPES.iter().filter(|t| find(&new.conditions, t) != find(&old.conditions, t)) {
        let is_end = ["Evicted", "Canceled"].contains(type_);
        needed.insert(old.active_interceptors.first().filter(|_| !is_end).cloned());
    }
    needed
}

const NAMES: &[&str] = &["a.b", "c.d", "e.f"];
const TYPES: &[&str] = &["Evicted", "Canceled", "Odd"];

fn statuses() -> impl Strategy<Value = Value> {
    // Always in the same order: a change of the order needs `assignment`, which the tables test.
    let names = || prop::sample::subsequence(NAMES, 0..=3);
    let entry = |name: &'static str| {
        let ended = prop::option::of(Just(AT));
        (any::<bool>(), ended).prop_map(move |(said, ended)| {
            let message = if said { "m" } else { "" };
            json!({"name": name, "message": message, "completionTime": ended})
        })
    };
    let entries = names().prop_flat_map(move |names| names.into_iter().map(entry).collect::<Vec<_>>());
    let condition = |type_: &'static str| {
        any::<bool>().prop_map(move |truth| {
            json!({"type": type_, "status": if truth { "True" } else { "False" },
                                                    "reason": "R", "message": ""})
        })
    };
    let conditions = prop::sample::subsequence(TYPES, 0..=3)
        .prop_flat_map(move |types| types.into_iter().map(condition).collect::<Vec<_>>());
    let active = prop::option::of(prop::sample::select(NAMES));
    (names(), active, names(), entries, conditions, 0..2).prop_map(
        |(targets, active, processed, entries, conditions, generation)| {
            let targets: Vec<_> = targets.into_iter().map(|name| json!({ "name": name })).collect();
            let active: Vec<_> = active.into_iter().collect();
            json!({"targetInterceptors": targets, "activeInterceptors": active, "interceptors": entries,
                   "processedInterceptors": processed, "conditions": conditions, "observedGeneration": generation})
        },
    )
}

proptest! {
    #[test]
    fn the_model_says_the_same(new in statuses(), old in statuses()) {
        let typed = |status: &Value| -> EvictionRequest { drydock_machinery::strategy::view::decode(&object(status)).unwrap() };
        let (new_object, old_object) = (object(&new), object(&old));
        let found: BTreeSet<_> = needed(&new_object, &old_object)
            .into_keys()
            .map(|permission| match permission {
                Permission::Assignment => None,
                Permission::Interceptor(name) => Some(name.to_owned()),
            })
            .collect();
        prop_assert_eq!(found, model(&typed(&new), &typed(&old)), "{} from {}", new, old);
    }
}
