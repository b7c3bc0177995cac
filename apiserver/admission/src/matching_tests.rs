//! Which requests the criteria match.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use async_trait::async_trait;
use drydock_machinery::kind::Names;
use drydock_machinery::schema::{Schema, Shape};
use drydock_machinery::versions::{Conversion, ConversionError, Versions};
use serde_json::{Map, Value, json};

use super::*;
use crate::testing::{TestRequest, widget};
use crate::webhook::review::{ReviewVersion, review};

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
    criteria.matches(&request.attributes(), &namespaces).await.map(|kind| kind.is_some())
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
    assert!(!Criteria::of_webhook(None, None, None, None).can_apply(&served));
}

/// The widget in a version of which only the names count.
struct OtherWidget(Names, Schema);

impl Kind for OtherWidget {
    fn names(&self) -> &Names {
        &self.0
    }
    fn schema(&self) -> &Schema {
        &self.1
    }
}

/// `spec.size` of `v1` is `spec.width` in `v2`.
struct Widening;

fn rename(object: &mut Object, from: &str, to: &str) -> Result<(), ConversionError> {
    let size = object.0["spec"].as_object_mut().and_then(|spec| spec.remove(from));
    object.0["spec"][to] = size.ok_or_else(|| ConversionError::new(format!("spec.{from} is absent")))?;
    Ok(())
}

impl Conversion for Widening {
    fn convert_from_storage(&self, object: &mut Object) -> Result<(), ConversionError> {
        rename(object, "size", "width")
    }
    fn convert_to_storage(&self, object: &mut Object) -> Result<(), ConversionError> {
        rename(object, "width", "size")
    }
}

fn versions() -> Versions {
    let probe = TestRequest::create(widget("a", json!({})));
    let of = |version| {
        let names = Names { version, ..probe.attributes().names.clone() };
        Arc::new(OtherWidget(names, Schema::new("Anything.", Shape::Raw))) as Arc<dyn Kind>
    };
    Versions::new(of("v1")).with_version(of("v2"), Widening).unwrap()
}

#[tokio::test]
async fn a_rule_matches_requests_in_other_versions_which_are_converted_to_its_own() {
    let mut create = TestRequest::create(widget("a", json!({})));
    create.versions = Some(versions());
    let mut names_v2 = rule(json!({"apiVersions": ["v2"]}));
    names_v2["matchPolicy"] = json!("Exact");
    assert_eq!(applies(&criteria(names_v2.clone()), &create).await, Ok(false));
    names_v2["matchPolicy"] = json!("Equivalent");
    let request = create.attributes();
    let kind = criteria(names_v2).matches(&request, &NamespaceLabels(json!({}))).await.unwrap().unwrap();
    let write = request.convert(kind).unwrap();
    let versioned = request.in_version(&write);
    let asked = review(ReviewVersion::V1, "u", &versioned, versioned.new)["request"].take();
    let version = |field: &str| asked[field]["version"].clone();
    assert_eq!(["kind", "resource", "requestKind", "requestResource"].map(version), ["v2", "v2", "v1", "v1"]);
    let object = &asked["object"];
    assert_eq!((&object["apiVersion"], &object["spec"]), (&json!("test.io/v2"), &json!({"width": 3})));
    let back = request.convert_back(versioned.new.unwrap().clone(), &write).unwrap();
    assert_eq!(Some(&back), request.new);
    // The request's own version comes first, whatever the order of the names.
    let both = criteria(rule(json!({"apiVersions": ["v2", "v1"]})));
    let kind = both.matches(&request, &NamespaceLabels(json!({}))).await.unwrap().unwrap();
    assert_eq!(kind.names().version, "v1");
    // What is excluded in one version is excluded in all.
    let mut excluding = rule(json!({}));
    excluding["excludeResourceRules"] = rule(json!({"apiVersions": ["v2"]}))["resourceRules"].clone();
    assert_eq!(applies(&criteria(excluding), &create).await, Ok(false));
}

#[tokio::test]
async fn a_write_that_cannot_be_converted_to_the_version_of_a_rule_fails() {
    let mut object = widget("a", json!({}));
    object.0.insert("spec".to_owned(), json!({}));
    let mut create = TestRequest::create(object);
    create.versions = Some(versions());
    let (request, namespaces) = (create.attributes(), NamespaceLabels(json!({})));
    let names_v2 = criteria(rule(json!({"apiVersions": ["v2"]})));
    let kind = names_v2.matches(&request, &namespaces).await.unwrap().unwrap();
    assert_eq!(request.convert(kind).map(drop).unwrap_err().code(), 500);
}
