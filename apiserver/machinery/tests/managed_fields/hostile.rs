//! Hostile managed fields.

use std::sync::Arc;
use std::time::Duration;

use drydock_machinery::Object;
use drydock_machinery::managed_fields::{Set, compare, to_set};
use drydock_machinery::object::FieldsV1;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::manager::fixture;

/// Quadratic time would take minutes.
const AMPLE: Duration = Duration::from_secs(20);

/// The processor time that this thread has had: how busy the machine is does not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

#[test]
fn fields_nested_ten_thousand_deep_are_refused() {
    let deep = format!("{}{}", "{\"f:a\":".repeat(10_000), "}".repeat(10_000));
    assert!(Set::from_json(deep.as_bytes()).is_err());
    let key = format!("{{\"v:{}{}\":{{}}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(Set::from_json(key.as_bytes()).is_err());
}

#[test]
fn keys_that_are_no_json_are_refused() {
    for bad in
        ["k:", "k:{", "k:{\"a\"}", "k:[]", "k:{}x", "v:", "v:x", "v:1 2", "i:", "i:99999999999999999999"]
    {
        assert!(Set::from_json(json!({bad: {}}).to_string().as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn huge_keys_and_many_unordered_elements_are_read_in_passing() {
    let start = processor_time();
    let read = |fields: Value| Set::from_json(fields.to_string().as_bytes()).unwrap();
    assert!(!read(json!({format!("f:{}", "x".repeat(2 << 20)): {}})).is_empty());
    // Texts and numbers sort differently.
    let many = read((0..150_000).map(|n| (format!("v:{n}"), json!({}))).collect());
    assert!(!many.is_empty());
    assert_eq!(read(FieldsV1::from(Arc::new(many.clone())).to_value()), many);
    assert!(processor_time() - start < AMPLE);
}

#[test]
fn long_unordered_lists_are_compared_and_owned_in_passing() {
    let start = processor_time();
    let schema = super::schema::sample();
    let items: Vec<Value> =
        (0..100_000_u64).map(|n| Value::from(n.wrapping_mul(2_654_435_761).to_string())).collect();
    let object = |items: &[Value]| Object::from(json!({"spec": {"set": items}}).as_object().unwrap().clone());
    assert!(!to_set(&object(&items), &schema).is_empty());
    assert!(!compare(&object(&items), &object(&items[50_000..]), &schema).is_same());
    assert!(processor_time() - start < AMPLE);
}

#[test]
fn a_configuration_of_nothing_but_mistakes_has_a_short_error() {
    let fields: serde_json::Map<String, Value> = (0..50_000).map(|n| (format!("x{n}"), json!(1))).collect();
    let patch = json!({"apiVersion": "example.io/v1", "kind": "Sample", "spec": fields});
    let error = fixture(|manager, now| {
        manager
            .apply(&Object::default(), Object::from(patch.as_object().unwrap().clone()), "m", false, now)
            .unwrap_err()
    });
    assert_eq!(error.code(), 500);
    assert!(error.status.message.len() < 4096);
}
