//! Server-side apply by managers that use different versions. The expected results are those of
//! sigs.k8s.io/structured-merge-diff/v6 merge/update.go (`update`, `prune`, `addBackOwnedItems`), where an entry's
//! fields are looked at in the version of the entry.

use serde_json::{Value, json};

use super::conversion::NOTE;
use super::{ALPHA, BETA, alpha, beta, owners, server};
use crate::fixture::{Answer, Server};

async fn apply(server: &Server, collection: &str, manager: &str, body: &Value) -> Answer {
    server.apply(&format!("{collection}/f?fieldManager={manager}"), body).await
}

async fn force(server: &Server, collection: &str, manager: &str, body: &Value) -> Answer {
    server.apply(&format!("{collection}/f?fieldManager={manager}&force=true"), body).await
}

#[tokio::test]
async fn another_value_for_a_field_of_the_other_version_is_a_conflict() {
    let server = server().await;
    let spec = json!({"reference": "a", "referenceType": "Flunder"});
    apply(&server, ALPHA, "one", &alpha(json!({"spec": spec}))).await.expect(201);
    let config = beta(json!({"spec": {"flunderReference": "b"}}));
    let refused = apply(&server, BETA, "two", &config).await.expect(409);
    // The field has the name that its owner knows.
    assert_eq!(refused["message"], r#"Apply failed with 1 conflict: conflict with "one": .spec.reference"#);
    assert_eq!(refused["details"]["causes"][0]["field"], ".spec.reference");
    let forced = force(&server, BETA, "two", &config).await.expect(200);
    let expected = [
        r#"one/Apply v1alpha1: {"f:spec":{"f:referenceType":{}}}"#,
        r#"two/Apply v1beta1: {"f:spec":{"f:flunderReference":{}}}"#,
    ];
    assert_eq!(owners(&forced), expected);
    assert_eq!(server.get(&format!("{ALPHA}/f")).await.expect(200)["spec"]["reference"], "b");
    // And back: the first one now meets the second one's field.
    let config = alpha(json!({"spec": {"reference": "c", "referenceType": "Flunder"}}));
    let refused = apply(&server, ALPHA, "one", &config).await.expect(409);
    assert_eq!(
        refused["message"],
        r#"Apply failed with 1 conflict: conflict with "two": .spec.flunderReference"#
    );
}

#[tokio::test]
async fn a_field_that_has_another_form_is_found_where_it_is_kept() {
    let server = server().await;
    apply(&server, ALPHA, "one", &alpha(json!({"spec": {"note": "n"}}))).await.expect(201);
    let config = beta(json!({"metadata": {"annotations": {(NOTE): "m"}}}));
    let refused = apply(&server, BETA, "two", &config).await.expect(409);
    assert_eq!(refused["message"], r#"Apply failed with 1 conflict: conflict with "one": .spec.note"#);
    // An update names its version.
    server.merge(&format!("{ALPHA}/f"), &json!({"spec": {"reference": "x"}})).await.expect(200);
    let config = beta(json!({"spec": {"flunderReference": "y"}}));
    let refused = apply(&server, BETA, "two", &config).await.expect(409);
    let who = r#"conflict with "merger" using wardle.example.com/v1alpha1"#;
    assert_eq!(refused["message"], format!("Apply failed with 1 conflict: {who}: .spec.reference"));
}

#[tokio::test]
async fn appliers_of_different_fields_or_equal_values_do_not_conflict() {
    let server = server().await;
    let config = json!({"spec": {"reference": "a", "tools": [{"name": "saw", "count": 2}]}});
    apply(&server, ALPHA, "one", &alpha(config)).await.expect(201);
    let config = json!({"spec": {"flunderReference": "a", "tools": [{"name": "axe", "count": 3}]}});
    let applied = apply(&server, BETA, "two", &beta(config)).await.expect(200);
    let of_one = r#"{"f:spec":{"f:reference":{},"f:tools":{"k:{\"name\":\"saw\"}":{".":{},"f:count":{},"f:name":{}}}}}"#;
    let of_two = r#"{"f:spec":{"f:flunderReference":{},"f:tools":{"k:{\"name\":\"axe\"}":{".":{},"f:count":{},"f:name":{}}}}}"#;
    assert_eq!(
        owners(&applied),
        [format!("one/Apply v1alpha1: {of_one}"), format!("two/Apply v1beta1: {of_two}")]
    );
    let tools = json!([{"name": "saw", "count": 2}, {"name": "axe", "count": 3}]);
    let stored = server.get(&format!("{ALPHA}/f")).await.expect(200);
    assert_eq!(stored["spec"], json!({"reference": "a", "referenceType": "Flunder", "tools": tools}));
}

#[tokio::test]
async fn what_an_applier_gives_up_stays_while_another_version_owns_it() {
    let server = server().await;
    let config = json!({"spec": {"reference": "a", "tools": [{"name": "saw"}]}});
    apply(&server, ALPHA, "one", &alpha(config)).await.expect(201);
    apply(&server, BETA, "two", &beta(json!({"spec": {"flunderReference": "a"}}))).await.expect(200);
    let reduced = apply(&server, ALPHA, "one", &alpha(json!({}))).await.expect(200);
    assert_eq!(reduced["spec"], json!({"reference": "a", "referenceType": "Flunder"}));
    assert_eq!(owners(&reduced), [r#"two/Apply v1beta1: {"f:spec":{"f:flunderReference":{}}}"#]);
    let reduced = apply(&server, BETA, "two", &beta(json!({}))).await.expect(200);
    // Nobody owns the defaulted type, nor anything else in the spec: it goes with the last field that was owned.
    assert_eq!((&reduced["spec"], owners(&reduced)), (&json!({}), Vec::new()));
}

#[tokio::test]
async fn an_applier_that_changes_the_version_removes_what_it_applied_in_the_old_one() {
    let server = server().await;
    let old = json!({"spec": {"reference": "a", "note": "n", "tools": [{"name": "saw", "count": 2}]}});
    apply(&server, ALPHA, "one", &alpha(old)).await.expect(201);
    let new = beta(json!({"spec": {"flunderReference": "b", "tools": [{"name": "axe", "count": 3}]}}));
    // Its own fields are no conflict, and no longer applied ones go in whichever form.
    let applied = apply(&server, BETA, "one", &new).await.expect(200);
    let tools = json!([{"name": "axe", "count": 3}]);
    assert_eq!(applied["spec"], json!({"flunderReference": "b", "referenceType": "Flunder", "tools": tools}));
    assert_eq!(applied["metadata"].get("annotations"), None);
    let fields = r#"{"f:spec":{"f:flunderReference":{},"f:tools":{"k:{\"name\":\"axe\"}":{".":{},"f:count":{},"f:name":{}}}}}"#;
    assert_eq!(owners(&applied), [format!("one/Apply v1beta1: {fields}")]);
}

#[tokio::test]
async fn an_equal_configuration_in_another_version_changes_the_version_of_the_entry() {
    let server = server().await;
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let first = apply(&server, ALPHA, "one", &alpha(labels.clone())).await.expect(201);
    let again = apply(&server, BETA, "one", &beta(labels.clone())).await.expect(200);
    assert_eq!(owners(&again), [r#"one/Apply v1beta1: {"f:metadata":{"f:labels":{"f:a":{}}}}"#]);
    assert_ne!(again["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    // Applied once more it changes nothing, and is not written.
    assert_eq!(apply(&server, BETA, "one", &beta(labels)).await.expect(200), again);
}

#[tokio::test]
async fn entries_of_a_version_that_is_not_served_are_dropped() {
    let server = server().await;
    server.post(ALPHA, &alpha(json!({"spec": {"reference": "a"}}))).await.expect(201);
    let mut object = server.get(&format!("{BETA}/f")).await.expect(200);
    let gone = json!({
        "manager": "old", "operation": "Update", "apiVersion": "wardle.example.com/v1alpha0",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:flunderReference": {}}},
    });
    object["metadata"]["managedFields"].as_array_mut().unwrap().push(gone);
    let updated = server.put(&format!("{BETA}/f"), &object).await.expect(200);
    let fields = r#"{"f:spec":{"f:reference":{},"f:referenceType":{}}}"#;
    assert_eq!(owners(&updated), [format!("tester/Update v1alpha1: {fields}")]);
}
