//! Error responses must not be much longer than the requests that cause them.

use drydock_machinery::error::ApiError;
use drydock_machinery::field::Path;
use drydock_machinery::meta::{validate_field_manager, validate_object_meta};
use drydock_machinery::names::name_is_dns_subdomain;
use serde_json::{Value, json};

use super::thing;

/// Far more bytes than any ordinary response has, and far fewer than these bodies would cause.
const SHORT: usize = 1 << 20;

fn answer_of(metadata: Value) -> String {
    let errors = validate_object_meta(&thing(metadata), true, name_is_dns_subdomain);
    assert!(!errors.is_empty());
    let answer = ApiError::invalid("g.io", "Thing", "a", errors).to_json();
    assert!(answer.len() < SHORT, "{}", answer.len());
    String::from_utf8(answer.to_vec()).unwrap()
}

/// Regression: each controller but the first was reported with the whole list; a body of 100 KB took 3.3 GB.
#[test]
fn many_owners_that_all_are_controllers() {
    let owner = |n: u32| json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": n.to_string(), "controller": true});
    let owners: Vec<Value> = (0..1_000).map(owner).collect();
    let answer = answer_of(json!({"name": "a", "namespace": "b", "ownerReferences": owners}));
    assert!(answer.contains(
        "Only one reference can have Controller set to true. Found \\\"true\\\" in references for K/n and K/n"
    ));
}

#[test]
fn controllers_with_long_names() {
    let owner = |n: u32| json!({"apiVersion": "v1", "kind": "K", "name": "n".repeat(20_000), "uid": n.to_string(), "controller": true});
    let owners: Vec<Value> = (0..100).map(owner).collect();
    answer_of(json!({"name": "a", "namespace": "b", "ownerReferences": owners}));
}

#[test]
fn many_short_mistakes() {
    let finalizers = vec![""; 200_000];
    answer_of(json!({"name": "a", "namespace": "b", "finalizers": finalizers}));
    let labels: serde_json::Map<String, Value> = (0..50_000).map(|n| (format!("/{n}"), json!("!"))).collect();
    answer_of(json!({"name": "a", "namespace": "b", "labels": labels, "annotations": labels}));
    let entries = vec![json!({}); 50_000];
    answer_of(json!({"name": "a", "namespace": "b", "managedFields": entries}));
}

/// Each unprintable character causes an error that shows the name.
#[test]
fn a_manager_of_control_characters() {
    let errors = validate_field_manager(&"\u{1}".repeat(20_000), &Path::new("fieldManager"));
    let answer = ApiError::invalid("g.io", "Thing", "a", errors).to_json();
    assert!(answer.len() < SHORT, "{}", answer.len());
}

#[test]
fn a_value_of_megabytes_is_cut() {
    let answer = answer_of(json!({"name": "A".repeat(3 << 20), "namespace": "b"}));
    assert!(answer.contains("AAAA"));
}
