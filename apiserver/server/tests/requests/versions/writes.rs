//! Creates, updates, patches and deletes in both versions.

use serde_json::{Value, json};

use super::conversion::NOTE;
use super::{ALPHA, BETA, alpha, beta, owners, server};

#[tokio::test]
async fn a_create_is_defaulted_and_validated_by_the_version_of_the_request() {
    let server = server().await;
    let object = beta(json!({"spec": {"fischerReference": "x", "tools": [{"name": "saw"}]}}));
    let created = server.post(BETA, &object).await.expect(201);
    assert_eq!(created["spec"]["referenceType"], "Fischer");
    let stored = server.get(&format!("{ALPHA}/f")).await.expect(200);
    let tools = json!([{"name": "saw", "count": 1}]);
    assert_eq!(stored["spec"], json!({"reference": "x", "referenceType": "Fischer", "tools": tools}));
    let both = beta(json!({"spec": {"fischerReference": "x", "flunderReference": "y"}}));
    let refused = server.post(BETA, &both).await.expect(422);
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.fischerReference");
    // A body of the other version does not belong here.
    assert_eq!(server.post(BETA, &alpha(json!({}))).await.status, 400);
    let taken = server.post(ALPHA, &alpha(json!({}))).await;
    assert_eq!(taken.expect(409)["reason"], "AlreadyExists");
}

#[tokio::test]
async fn an_update_is_validated_by_the_version_of_the_request() {
    let server = server().await;
    server.post(ALPHA, &alpha(json!({"spec": {"reference": "a", "note": "n"}}))).await.expect(201);
    let uri = format!("{BETA}/f");
    let mut object = server.get(&uri).await.expect(200);
    object["spec"]["fischerReference"] = json!("b");
    let refused = server.put(&uri, &object).await.expect(422);
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.fischerReference");
    object["spec"] = json!({"fischerReference": "b"});
    let updated = server.put(&uri, &object).await.expect(200);
    assert_eq!(updated["spec"], json!({"fischerReference": "b", "referenceType": "Fischer"}));
    assert_eq!(updated["metadata"]["generation"], 2);
    let stored = server.get(&format!("{ALPHA}/f")).await.expect(200);
    assert_eq!(stored["spec"], json!({"note": "n", "reference": "b", "referenceType": "Fischer"}));
    // The object has changed since it was read, in whichever version.
    assert_eq!(server.put(&uri, &object).await.expect(409)["reason"], "Conflict");
}

#[tokio::test]
async fn an_unchanged_object_is_not_written_again() {
    let server = server().await;
    server.post(ALPHA, &alpha(json!({"spec": {"reference": "a", "note": "n"}}))).await.expect(201);
    let uri = format!("{BETA}/f");
    let read = server.get(&uri).await.expect(200);
    assert_eq!(server.put(&uri, &read).await.expect(200), read);
}

#[tokio::test]
async fn every_kind_of_patch_is_of_the_version() {
    let server = server().await;
    let tools = json!([{"name": "saw"}, {"name": "axe"}]);
    server.post(ALPHA, &alpha(json!({"spec": {"reference": "a", "tools": tools}}))).await.expect(201);
    let uri = format!("{BETA}/f");
    let operations = json!([{"op": "replace", "path": "/spec/flunderReference", "value": "b"}]);
    let headers = [("content-type", "application/json-patch+json")];
    server.send("PATCH", &uri, &headers, &operations.to_string()).await.expect(200);
    let stored = server.get(&format!("{ALPHA}/f")).await.expect(200);
    assert_eq!(stored["spec"]["reference"], "b");
    let merge = json!({"spec": {"flunderReference": null, "referenceType": null, "fischerReference": "c"}});
    server.merge(&uri, &merge).await.expect(200);
    let axe = json!({"spec": {"tools": [{"name": "axe", "count": 3}]}});
    let patched = server.strategic(&uri, &axe).await.expect(200);
    assert_eq!(patched["spec"]["tools"], json!([{"name": "saw", "count": 1}, {"name": "axe", "count": 3}]));
    let stored = server.get(&format!("{ALPHA}/f")).await.expect(200);
    assert_eq!(
        (&stored["spec"]["reference"], &stored["spec"]["referenceType"]),
        (&json!("c"), &json!("Fischer"))
    );
}

#[tokio::test]
async fn the_status_is_written_in_either_version() {
    let server = server().await;
    server.post(ALPHA, &alpha(json!({"spec": {"reference": "a"}}))).await.expect(201);
    let phase = json!({"spec": {"flunderReference": "ignored"}, "status": {"phase": "Ready"}});
    server.merge(&format!("{BETA}/f/status"), &phase).await.expect(200);
    let stored = server.get(&format!("{ALPHA}/f/status")).await.expect(200);
    assert_eq!((&stored["spec"]["reference"], &stored["status"]["phase"]), (&json!("a"), &json!("Ready")));
}

#[tokio::test]
async fn a_delete_in_the_other_version_waits_for_finalizers_and_removes() {
    let server = server().await;
    let object = alpha(json!({"metadata": {"finalizers": ["test.io/wait"]}, "spec": {"reference": "a"}}));
    server.post(ALPHA, &object).await.expect(201);
    let pending = server.delete(&format!("{BETA}/f")).await.expect(200);
    assert_eq!(pending["spec"]["flunderReference"], "a");
    assert!(pending["metadata"]["deletionTimestamp"].is_string());
    server.merge(&format!("{BETA}/f"), &json!({"metadata": {"finalizers": null}})).await.expect(200);
    assert_eq!(server.get(&format!("{ALPHA}/f")).await.status, 404);
    server
        .post(ALPHA, &alpha(json!({"metadata": {"name": "g"}, "spec": {"reference": "a"}})))
        .await
        .expect(201);
    let removed = server.delete(BETA).await.expect(200);
    assert_eq!(removed["items"][0]["spec"]["flunderReference"], "a");
    assert_eq!(server.get(ALPHA).await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn an_object_that_cannot_be_stored_is_refused() {
    let server = server().await;
    let object = beta(json!({"spec": {"flunderReference": "unconvertible"}}));
    let refused = server.post(BETA, &object).await.expect(400);
    assert_eq!(
        refused["message"],
        "Flunder in version \"v1beta1\" cannot be handled as a Flunder: cannot convert Flunder from \
         wardle.example.com/v1beta1 to wardle.example.com/v1alpha1: spec: there is no such reference"
    );
    assert_eq!(server.get(ALPHA).await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn a_dry_run_makes_the_conversions_of_a_write() {
    let server = server().await;
    let (dry_create, dry_update) = (format!("{BETA}?dryRun=All"), format!("{BETA}/f?dryRun=All"));
    let unconvertible = json!({"spec": {"flunderReference": "unconvertible"}});
    let refused = server.post(BETA, &beta(unconvertible.clone())).await.expect(400);
    assert_eq!(server.post(&dry_create, &beta(unconvertible.clone())).await.expect(400), refused);
    let object = beta(json!({"spec": {"flunderReference": "a"}}));
    let spec = server.post(&dry_create, &object).await.expect(201)["spec"].clone();
    assert_eq!(server.get(ALPHA).await.expect(200)["items"], json!([]));
    assert_eq!(server.post(BETA, &object).await.expect(201)["spec"], spec);
    let refused = server.merge(&format!("{BETA}/f"), &unconvertible).await.expect(400);
    assert_eq!(server.merge(&dry_update, &unconvertible).await.expect(400), refused);
    let change = json!({"spec": {"flunderReference": "b"}});
    assert_eq!(server.merge(&dry_update, &change).await.expect(200)["spec"]["flunderReference"], "b");
    assert_eq!(server.get(&format!("{ALPHA}/f")).await.expect(200)["spec"]["reference"], "a");
}

#[tokio::test]
async fn an_update_takes_fields_over_from_managers_of_the_other_version() {
    let server = server().await;
    let labels = json!({"a": "1", "b": "2"});
    let object = alpha(json!({"metadata": {"labels": labels}, "spec": {"reference": "a", "note": "n"}}));
    server.post(ALPHA, &object).await.expect(201);
    let change: Value = json!({"metadata": {"labels": {"b": "3"}}, "spec": {"flunderReference": "b"}});
    let changed = server.merge(&format!("{BETA}/f"), &change).await.expect(200);
    let kept = r#"{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:note":{},"f:referenceType":{}}}"#;
    let taken = r#"{"f:metadata":{"f:labels":{"f:b":{}}},"f:spec":{"f:flunderReference":{}}}"#;
    let expected = [format!("tester/Update v1alpha1: {kept}"), format!("merger/Update v1beta1: {taken}")];
    let sorted = |mut owners: Vec<String>| {
        owners.sort();
        owners
    };
    assert_eq!(sorted(owners(&changed)), sorted(expected.to_vec()));
    // The entries are the same whoever reads them.
    let stored = server.get(&format!("{ALPHA}/f")).await.expect(200);
    assert_eq!(stored["metadata"]["managedFields"], changed["metadata"]["managedFields"]);
    // The note is an annotation in v1beta1. Without it, its owner in v1alpha1 loses the field.
    let change = json!({"metadata": {"annotations": {(NOTE): null}}});
    let changed = server.merge(&format!("{BETA}/f"), &change).await.expect(200);
    let kept = r#"{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:referenceType":{}}}"#;
    let expected = [format!("tester/Update v1alpha1: {kept}"), format!("merger/Update v1beta1: {taken}")];
    assert_eq!(sorted(owners(&changed)), sorted(expected.to_vec()));
}

/// An object whose conversion back failed could not be deleted in the other version, and kept its namespace for ever.
#[tokio::test]
async fn an_object_that_cannot_be_converted_back_is_deleted_in_either_version() {
    let server = server().await;
    let (in_alpha, in_beta) = (format!("{ALPHA}/f"), format!("{BETA}/f"));
    let object = alpha(json!({"spec": {"reference": "unconvertible"}}));
    server.post(ALPHA, &object).await.expect(201);
    let object = server.get(&in_beta).await.expect(200);
    assert_eq!(object["spec"]["flunderReference"], "unconvertible");
    assert_eq!(server.put(&in_beta, &object).await.status, 400);
    server.delete(&in_beta).await.expect(200);
    assert_eq!(server.get(&in_alpha).await.status, 404);
}
