//! Regression tests for time that grew faster than the body. The limit is far above linear time, and far below the
//! rest.

use std::time::Duration;

use drydock_machinery::Object;
use drydock_machinery::decode::{Format, decode_value_strictly};
use drydock_machinery::managed_fields::{FieldManager, Set};
use drydock_machinery::patch::{json_patch, strategic_merge_patch};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

use super::{schema, thing};

const AMPLE: Duration = Duration::from_secs(10);

fn in_passing<T>(work: impl FnOnce() -> T) -> T {
    let start = processor_time();
    let done = work();
    let took = processor_time() - start;
    assert!(took < AMPLE, "{took:?}");
    done
}

/// The processor time that this thread has had: how busy the machine is does not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Regression: each duplicate key was reported with its whole path; a patch of 1 MB blocked the server for half a
/// minute.
#[test]
fn keys_that_stand_twice_below_a_long_key() {
    let twice = vec![r#""a":1"#; 100_000].join(",");
    let body = format!(r#"{{"{}":{{{twice}}}}}"#, "k".repeat(500_000));
    let (_, errors) = in_passing(|| decode_value_strictly(body.as_bytes(), Format::Json)).unwrap();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].len() < 20_000, "{}", errors[0].len());
}

/// Regression: the position of one live item was looked up again for each item of the patch.
#[test]
fn a_live_item_with_a_long_key_under_a_long_patch() {
    let reference = |uid: &str| json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": uid});
    let mut live = thing(json!({"name": "a", "ownerReferences": [reference(&"u".repeat(500_000))]})).0;
    let many: Vec<Value> = (0..20_000).map(|n| reference(&n.to_string())).collect();
    let order: Vec<Value> = (0..20_000).map(|n: u32| json!({"uid": n.to_string()})).collect();
    let patch = json!({"metadata": {"$setElementOrder/ownerReferences": order, "ownerReferences": many}});
    let mut patch = patch.as_object().unwrap().clone();
    in_passing(|| strategic_merge_patch(&mut live, &mut patch, &schema())).unwrap();
    assert_eq!(live["metadata"]["ownerReferences"].as_array().unwrap().len(), 20_001);
}

fn manager_of(schema: &drydock_machinery::schema::Schema, act: impl FnOnce(&FieldManager<'_>)) {
    let reset = Set::default();
    let api_version = "g.io/v1";
    act(&FieldManager { schema, api_version, kind: "Thing", subresource: "", reset: &reset, versions: None });
}

fn with_entries(entries: &[Value]) -> Object {
    thing(json!({"name": "a", "uid": "u", "managedFields": entries}))
}

fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": "g.io/v1", "fieldsType": "FieldsV1",
        "time": "2026-01-01T00:00:00Z", "fieldsV1": fields,
    })
}

/// Regression: each path into an atomic value was inserted before all members that sort after it.
#[test]
fn paths_into_atomic_values_before_many_members() {
    let keys = (0..30_000).map(|n| (format!("k:{{\"uid\":\"{n}\"}}"), json!({"f:name": {}})));
    let indices = (0..100_000).map(|n| (format!("i:{n}"), json!({})));
    let references: Map<String, Value> = keys.chain(indices).collect();
    let fields = json!({"f:metadata": {"f:ownerReferences": references}});
    let object = with_entries(&[entry("m", "Update", &fields)]);
    let schema = schema();
    let now = "2026-01-02T00:00:00Z".parse().unwrap();
    in_passing(|| {
        manager_of(&schema, |manager| drop(manager.update(Some(&object), object.clone(), "n", now)))
    });
}

/// Regression: each of the oldest managers was merged again with all before it.
#[test]
fn many_managers_that_become_one() {
    let entries: Vec<Value> = (0..1_000)
        .map(|n| {
            let labels: Map<String, Value> = (0..100).map(|i| (format!("f:{n}-{i}"), json!({}))).collect();
            entry(&format!("m{n}"), "Update", &json!({"f:metadata": {"f:annotations": labels}}))
        })
        .collect();
    let object = with_entries(&entries);
    let schema = schema();
    let now = "2026-01-02T00:00:00Z".parse().unwrap();
    in_passing(|| {
        manager_of(&schema, |manager| drop(manager.update(Some(&object), object.clone(), "n", now)))
    });
}

/// Each move of a large value visits all of it, so the number of visits in a patch is limited.
#[test]
fn a_large_value_that_is_moved_ten_thousand_times() {
    let large: Map<String, Value> = (0..20_000).map(|n| (n.to_string(), Value::Null)).collect();
    let moves: Vec<Value> = (0..9_000)
        .map(|n| {
            let (from, path) = if n % 2 == 0 { ("/a", "/b") } else { ("/b", "/a") };
            json!({"op": "move", "from": from, "path": path})
        })
        .collect();
    let refused = in_passing(|| json_patch(&json!({"a": large}), Value::from(moves).to_string().as_bytes()));
    assert_eq!(refused.unwrap_err().code(), 422);
}
