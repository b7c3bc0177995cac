//! Which writes a full store takes, and that no tenant can use up what is left to others.

use drydock_storage_sqlite::SqliteOptions;
use serde_json::{Value, json};

use crate::fixture::{Answer, GADGETS, Server, WIDGETS, gadget};

const MIB: u64 = 1 << 20;

async fn send_as(server: &Server, user: &str, method: &str, uri: &str, body: &Value) -> Answer {
    let headers = [("content-type", "application/merge-patch+json"), ("x-user", user)];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.send(method, uri, &headers, &body).await
}

/// Where the store is filled: the namespace of the tests has room.
const FULL: &str = "/apis/test.io/v1/namespaces/full/gadgets";

async fn create_as_controller(server: &Server, name: &str) -> Answer {
    let object = gadget(name, json!({"metadata": {"annotations": {"pad": "x".repeat(7000)}}}));
    server.send("POST", FULL, &[("x-user", "controller")], &object.to_string()).await
}

/// A store that takes no ordinary write that makes an object larger. It holds `held`, which has a finalizer, and `other`.
async fn full() -> Server {
    let server = Server::bounded_in(SqliteOptions { quota: Some(2 * MIB), ..SqliteOptions::default() }).await;
    let pad = json!({"annotations": {"pad": "x".repeat(7000)}, "finalizers": ["a/b"]});
    server.gadget("held", json!({ "metadata": pad })).await;
    server.gadget("other", json!({ "metadata": pad })).await;
    for n in 0.. {
        if server.backend.refuses_writes().is_some() {
            break;
        }
        create_as_controller(&server, &format!("g{n}")).await.expect(201);
    }
    server
}

fn phase(length: usize) -> Value {
    json!({"status": {"phase": "p".repeat(length)}})
}

#[tokio::test]
async fn a_full_store_takes_what_is_needed_and_what_makes_an_object_smaller() {
    let server = full().await;
    server.post("/apis/test.io/v1/namespaces/elsewhere/gadgets", &gadget("a", json!({}))).await.expect(507);
    let status = format!("{GADGETS}/other/status?fieldManager=reporter");
    let reported = server.merge(&status, &phase(20)).await.expect(200);
    assert!(!reported["metadata"]["managedFields"].to_string().contains("reporter"), "{reported}");
    server.merge(&status, &json!({"status": {"note": "x".repeat(100)}})).await.expect(507);
    let uri = format!("{GADGETS}/other");
    server.merge(&uri, &json!({"metadata": {"annotations": {"more": "y"}}})).await.expect(507);
    server.merge(&uri, &json!({"metadata": {"annotations": {"pad": "less"}}})).await.expect(200);
    server.delete(&uri).await.expect(200);
}

/// A tenant deleted what a finalizer holds again and again, each time with another propagation policy: the history of
/// that took the space that a full store leaves to reports.
#[tokio::test]
async fn deletes_of_what_is_being_deleted_leave_a_full_store_to_others() {
    let server = full().await;
    let held = format!("{GADGETS}/held");
    send_as(&server, "tenant", "DELETE", &held, &Value::Null).await.expect(200);
    for policy in ["Orphan", "Foreground", "Background"].iter().cycle().take(150) {
        let uri = format!("{held}?propagationPolicy={policy}");
        send_as(&server, "tenant", "DELETE", &uri, &Value::Null).await;
    }
    let status = format!("{GADGETS}/other/status");
    send_as(&server, "reporter", "PATCH", &status, &phase(20)).await.expect(200);
}

#[tokio::test]
async fn reports_of_one_user_leave_a_full_store_to_others() {
    let server = full().await;
    let status = |name: &str| format!("{GADGETS}/{name}/status");
    let mut taken = 0;
    while send_as(&server, "tenant", "PATCH", &status("held"), &phase(20 + taken % 2)).await.status == 200 {
        taken += 1;
        assert!(taken < 1000);
    }
    assert!(taken > 0);
    send_as(&server, "reporter", "PATCH", &status("other"), &phase(20)).await.expect(200);
}

#[tokio::test]
async fn what_is_in_a_namespace_leaves_a_full_store_to_what_is_in_none() {
    let server = full().await;
    for n in 0.. {
        let answer = create_as_controller(&server, &format!("more{n}")).await;
        if answer.status == 507 {
            break;
        }
        answer.expect(201);
    }
    let mut widget = gadget("w", json!({}));
    widget["kind"] = json!("Widget");
    server.post(WIDGETS, &widget).await.expect(201);
}
