//! Which requests the criteria match.
#![allow(clippy::unwrap_used)]

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::*;
use crate::testing::{TestRequest, widget};

struct NamespaceLabels(Value);

#[async_trait]
impl NamespaceSource for NamespaceLabels {
    async fn labels(&self, name: &str) -> Result<Map<String, Value>, ApiError> {
        let found = self.0.get(name).and_then(Value::as_object).cloned();
        found.ok_or_else(|| ApiError::not_found("", "namespaces", name))
    }

    async fn object(&self, _: &str) -> Result<Value, ApiError> {
        Ok(Value::Null)
    }
}

fn criteria(constraints: Value) -> Criteria {
    Criteria::of_policy(&serde_json::from_value(constraints).unwrap())
}

fn rule(special: Value) -> Value {
    let mut rule = json!({
        "apiGroups": ["test.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"],
    });
    for (field, value) in special.as_object().unwrap() {
        rule[field] = value.clone();
    }
    json!({"resourceRules": [rule]})
}

async fn applies(criteria: &Criteria, request: &TestRequest) -> Result<bool, ApiError> {
    let namespaces = NamespaceLabels(json!({"ns": {"tier": "front"}}));
    criteria.matches(&request.attributes(), &namespaces).await
}

#[tokio::test]
async fn a_rule_names_groups_versions_operations_resources_scope_and_names() {
    let create = TestRequest::create(widget("a", json!({})));
    for (special, expected) in [
        (json!({}), true),
        (json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}), true),
        (json!({"apiGroups": ["other.io"]}), false),
        (json!({"apiVersions": ["v2"]}), false),
        (json!({"operations": ["UPDATE", "DELETE"]}), false),
        (json!({"resources": ["widgets/status"]}), false),
        (json!({"resources": ["widgets/*"]}), true),
        (json!({"scope": "Namespaced"}), true),
        (json!({"scope": "Cluster"}), false),
        (json!({"resourceNames": ["b"]}), false),
        (json!({"resourceNames": ["b", "a"]}), true),
    ] {
        assert_eq!(applies(&criteria(rule(special.clone())), &create).await, Ok(expected), "{special}");
    }
    let status = TestRequest::create(widget("a", json!({}))).on("status");
    assert_eq!(applies(&criteria(rule(json!({}))), &status).await, Ok(false));
    assert_eq!(applies(&criteria(rule(json!({"resources": ["*/status"]}))), &status).await, Ok(true));
}

#[tokio::test]
async fn what_is_excluded_is_not_meant() {
    let mut constraints = rule(json!({}));
    constraints["excludeResourceRules"] = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"], "resourceNames": ["a"]}]);
    let excluding = criteria(constraints);
    assert_eq!(applies(&excluding, &TestRequest::create(widget("a", json!({})))).await, Ok(false));
    assert_eq!(applies(&excluding, &TestRequest::create(widget("b", json!({})))).await, Ok(true));
}

#[tokio::test]
async fn selectors_look_at_both_objects_and_at_the_namespace() {
    let mut constraints = rule(json!({"operations": ["*"]}));
    constraints["objectSelector"] = json!({"matchLabels": {"a": "b"}});
    let selecting = criteria(constraints.clone());
    let (with, without) = (|| widget("w", json!({"a": "b"})), || widget("w", json!({})));
    assert_eq!(applies(&selecting, &TestRequest::create(without())).await, Ok(false));
    assert_eq!(applies(&selecting, &TestRequest::update(with(), without())).await, Ok(true));
    assert_eq!(applies(&selecting, &TestRequest::delete(with())).await, Ok(true));

    constraints["namespaceSelector"] =
        json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["front"]}]});
    assert_eq!(applies(&criteria(constraints.clone()), &TestRequest::create(with())).await, Ok(false));
    constraints["namespaceSelector"] = json!({"matchLabels": {"tier": "front"}});
    assert_eq!(applies(&criteria(constraints.clone()), &TestRequest::create(with())).await, Ok(true));
    let elsewhere = TestRequest::create(with()).in_namespace("gone");
    assert_eq!(applies(&criteria(constraints.clone()), &elsewhere).await.unwrap_err().code(), 404);
    // The error is returned only for requests that match otherwise.
    constraints["resourceRules"][0]["apiGroups"] = json!(["other.io"]);
    assert_eq!(applies(&criteria(constraints), &elsewhere).await, Ok(false));
}

#[test]
fn what_can_never_be_meant_is_left_out() {
    let served = [("test.io".to_owned(), "v1".to_owned(), "widgets".to_owned())];
    assert!(criteria(rule(json!({"resources": ["widgets/status"]}))).can_apply(&served));
    assert!(criteria(rule(json!({"resources": ["*/*"], "apiGroups": ["*"]}))).can_apply(&served));
    assert!(!criteria(rule(json!({"resources": ["pods"]}))).can_apply(&served));
    assert!(!criteria(rule(json!({"apiVersions": ["v2"]}))).can_apply(&served));
    // Without rules, a binding matches everything that its policy matches, and a webhook nothing.
    assert!(criteria(json!({})).can_apply(&served));
    assert!(!Criteria::of_webhook(None, None, None).can_apply(&served));
}
