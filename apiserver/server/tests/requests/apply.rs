//! Server-side apply over HTTP: owners, conflicts, refusals.

use serde_json::{Value, json};

use crate::fixture::{GADGETS, Server, gadget};

fn uri(query: &str) -> String {
    format!("{GADGETS}/a?fieldManager={query}")
}

fn config(spec: Value) -> Value {
    json!({"apiVersion": "test.io/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": spec})
}

#[tokio::test]
async fn apply_creates_then_merges_by_owner() {
    let server = Server::start().await;
    let made = server.apply(&uri("one"), &config(json!({"size": 2}))).await.expect(201);
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["metadata"]["namespace"], "ns");
    let entries = made["metadata"]["managedFields"].as_array().unwrap();
    assert!(entries.iter().any(|e| e["operation"] == "Apply" && e["manager"] == "one"), "{entries:?}");
    let both = server.apply(&uri("two"), &config(json!({"color": "blue"}))).await;
    assert_eq!(both.expect(200)["spec"], json!({"size": 2, "color": "blue"}));
    let dropped = server.apply(&uri("one"), &config(json!({}))).await.expect(200);
    assert_eq!(dropped["spec"], json!({"color": "blue"}));
}

#[tokio::test]
async fn an_apply_that_changes_nothing_writes_nothing() {
    let server = Server::start().await;
    let made = server.apply(&uri("one"), &config(json!({"size": 2}))).await.expect(201);
    assert_eq!(server.apply(&uri("one"), &config(json!({"size": 2}))).await.expect(200), made);
}

#[tokio::test]
async fn another_managers_field_is_a_conflict_unless_forced() {
    let server = Server::start().await;
    server.apply(&uri("one"), &config(json!({"size": 2}))).await.expect(201);
    let error = server.apply(&uri("two"), &config(json!({"size": 3}))).await.expect(409);
    assert_eq!(error["details"]["causes"][0]["reason"], "FieldManagerConflict");
    assert_eq!(error["details"]["causes"][0]["field"], ".spec.size");
    let forced = server.apply(&uri("two&force=true"), &config(json!({"size": 3}))).await.expect(200);
    assert_eq!(forced["spec"]["size"], 3);
}

#[tokio::test]
async fn a_bad_configuration_is_refused() {
    let server = Server::start().await;
    let no_manager = server.apply(&format!("{GADGETS}/a"), &config(json!({}))).await;
    assert_eq!(no_manager.status, 422);
    let other = json!({"apiVersion": "test.io/v1", "kind": "Other", "metadata": {"name": "a"}});
    assert_eq!(server.apply(&uri("one"), &other).await.status, 400);
    let with_uid = gadget("a", json!({"metadata": {"uid": "u"}}));
    assert_eq!(server.apply(&uri("one"), &with_uid).await.status, 409);
    let owned = gadget("a", json!({"metadata": {"managedFields": []}}));
    assert_eq!(server.apply(&uri("one"), &owned).await.status, 400);
    for body in ["[]", "- x", "a: [", "\"text\""] {
        let headers = [("content-type", "application/apply-patch+yaml")];
        assert_eq!(server.send("PATCH", &uri("one"), &headers, body).await.status, 400, "{body}");
    }
    assert_eq!(server.get(&format!("{GADGETS}/a")).await.status, 404);
}

#[tokio::test]
async fn creating_by_apply_needs_the_right_to_create() {
    let server = Server::start().await;
    let headers = [("content-type", "application/apply-patch+yaml"), ("x-user", "reader")];
    let body = config(json!({"size": 1})).to_string();
    assert_eq!(server.send("PATCH", &uri("one"), &headers, &body).await.status, 403);
    server.gadget("a", json!({})).await;
    let changed = server.send("PATCH", &uri("one&force=true"), &headers, &body).await;
    assert_eq!(changed.status, 200);
}

#[tokio::test]
async fn status_is_applied_on_its_own_endpoint() {
    let server = Server::start().await;
    let status = json!({
        "apiVersion": "test.io/v1", "kind": "Gadget", "metadata": {"name": "a"}, "status": {"phase": "Up"}
    });
    let status_uri = format!("{GADGETS}/a/status?fieldManager=one");
    assert_eq!(server.apply(&status_uri, &status).await.status, 404);
    server.gadget("a", json!({})).await;
    assert_eq!(server.apply(&uri("one"), &status).await.expect(200).get("status"), None);
    assert_eq!(server.apply(&status_uri, &status).await.expect(200)["status"]["phase"], "Up");
}

/// An applied configuration is restored from a tree of values like the outcome of a strategic merge patch, and not
/// decoded like a body.
#[tokio::test]
async fn nulls_and_numbers_of_a_configuration_are_restored_as_kubernetes_restores_them() {
    let server = Server::start().await;
    let mut body = config(json!({"size": 2.0, "color": null}));
    body["metadata"]["labels"] = json!({"a": null});
    let made = server.apply(&uri("one"), &body).await.expect(201);
    assert_eq!((&made["spec"]["size"], &made["spec"]["color"]), (&json!(2), &json!("red")));
    assert_eq!(made["metadata"]["labels"], json!({"a": ""}));
    let fields = &made["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(fields["f:spec"], json!({"f:color": {}, "f:size": {}}));
    let refused = server.apply(&uri("one"), &config(json!({"size": 1.5}))).await.expect(500);
    let type_ = "test.io/v1, Kind=Gadget";
    let why = format!("unable to convert unstructured object to {type_}: cannot convert float64 to int32");
    assert_eq!(
        refused["message"],
        format!("failed to convert new object (/a; {type_}) to proper version: {why}")
    );
}
