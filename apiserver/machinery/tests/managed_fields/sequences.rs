//! Each line of `sequences.jsonl` is a list of writes to one object, with the result of each. Times are 2020 for
//! entries that the write did not change, and 2021 for those that it changed.

use drydock_machinery::Object;
use drydock_machinery::managed_fields::{FieldManager, Set};
use drydock_machinery::object::ManagedFieldsEntry;
use serde_json::{Map, Value, json};

const SEQUENCES: &str = include_str!("../data/managed_fields/sequences.jsonl");

#[test]
fn every_write_has_the_outcome_that_the_host_gives_it() {
    for (line, text) in SEQUENCES.lines().enumerate() {
        let steps: Vec<Value> = serde_json::from_str(text).unwrap();
        let mut live: Option<Object> = None;
        for (at, step) in steps.iter().enumerate() {
            let outcome = write(live.as_ref(), step);
            match (outcome, step.get("result")) {
                (Ok(new), Some(want)) => {
                    let (mut have, want) = (settled(new), settled(object(want)));
                    have.set_meta("uid", Some("u".into()));
                    assert_eq!(have, want, "line {line} step {at}: {step:#}");
                    with_entries(&mut have, |entries| entries.iter_mut().for_each(age));
                    live = Some(have);
                }
                (Err(error), None) => assert_eq!(error, failure(step), "line {line} step {at}"),
                (have, want) => panic!("line {line} step {at}: {have:?}, want {want:?}\n{step:#}\n{live:#?}"),
            }
        }
    }
}

fn write(live: Option<&Object>, step: &Value) -> Result<Object, (u64, Vec<String>)> {
    let schema = super::schema::sample();
    let subresource = step["subresource"].as_str().unwrap_or_default();
    let reset = match subresource {
        "" => Set::of_fields(&[&["status"]]),
        _ => Set::of_fields(&[&["spec"], &["metadata", "labels"]]),
    };
    let manager = FieldManager {
        schema: &schema,
        api_version: "example.io/v1",
        kind: "Sample",
        subresource,
        reset: &reset,
        versions: None,
    };
    let (name, body) = (step["manager"].as_str().unwrap(), object(&step["object"]));
    let now = "2021-01-01T00:00:00.5Z".parse().unwrap();
    if step["op"] == "update" {
        return Ok(manager.update(live, settled(body), name, now));
    }
    let empty = settled(object(&json!({"apiVersion": "example.io/v1", "kind": "Sample"})));
    let force = step["force"] == true;
    let new = manager.apply(live.unwrap_or(&empty), body, name, force, now).map_err(|e| {
        let causes = e.status.details.map(|d| d.causes).unwrap_or_default();
        let mut causes: Vec<_> = causes.into_iter().map(|c| format!("{} {}", c.message, c.field)).collect();
        causes.sort();
        (u64::from(e.status.code), causes)
    })?;
    // An unchanged object keeps the order of its entries from before `age` made their times equal.
    let sorted = |mut unchanged: Object| {
        with_entries(&mut unchanged, |entries| {
            entries.sort_by_key(|e| [&e.operation, &e.manager, &e.subresource].map(String::clone));
        });
        unchanged
    };
    Ok(new.unwrap_or_else(|| sorted(live.unwrap_or(&empty).clone())))
}

fn failure(step: &Value) -> (u64, Vec<String>) {
    let causes = step["causes"].as_array().into_iter().flatten();
    let mut causes: Vec<String> = causes.map(|c| c.as_str().unwrap().to_owned()).collect();
    causes.sort();
    (step["code"].as_u64().unwrap_or_default(), causes)
}

/// Returns an object as decoding leaves it: without nulls and without what Go's `omitempty` omits, but with structs
/// that are not pointers.
fn settled(mut object: Object) -> Object {
    for part in ["spec", "status"] {
        let part = object.0.entry(part).or_insert(Value::Null);
        if part.is_null() {
            *part = json!({});
        }
        drop_empty(part);
    }
    let spec = object.0["spec"].as_object_mut().unwrap();
    spec.entry("target").or_insert_with(|| json!({}));
    if object.managed_fields().is_some_and(<[_]>::is_empty) {
        object.remove_managed_fields();
    }
    let meta = object.meta_mut();
    let empty =
        |v: &Value| v.as_object().is_some_and(Map::is_empty) || v.as_array().is_some_and(Vec::is_empty);
    meta.retain(|_, v| !v.is_null() && !empty(v));
    meta.remove("creationTimestamp");
    object
}

fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_empty);
            // Pointers to empty structs stay.
            map.retain(|k, v| match v {
                Value::Array(items) => !items.is_empty(),
                Value::Object(map) => !map.is_empty() || k == "pointer" || k == "fixed",
                other => !other.is_null(),
            });
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

fn with_entries(object: &mut Object, change: impl FnOnce(&mut Vec<ManagedFieldsEntry>)) {
    let mut entries = object.managed_fields().unwrap_or_default().to_vec();
    change(&mut entries);
    object.set_managed_fields(entries);
}

fn age(entry: &mut ManagedFieldsEntry) {
    if !entry.time.is_empty() {
        entry.time = "2020-01-01T00:00:00Z".to_owned();
    }
}

fn object(value: &Value) -> Object {
    Object::from(value.as_object().unwrap().clone())
}
