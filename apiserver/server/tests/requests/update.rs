//! Update over HTTP, of objects and of their status.

use serde_json::{Value, json};

use crate::fixture::{GADGETS, Server, WIDGETS, gadget, merge};

fn with(mut object: Value, extra: Value) -> Value {
    merge(&mut object, extra);
    object
}

#[tokio::test]
async fn an_update_counts_generations_of_the_spec_only() {
    let server = Server::start().await;
    let first = server.gadget("a", json!({})).await;
    let uri = format!("{GADGETS}/a");
    let second = server.put(&uri, &with(first.clone(), json!({"spec": {"size": 2}}))).await.expect(200);
    assert_eq!(second["metadata"]["generation"], 2);
    let third = server
        .put(&uri, &with(second.clone(), json!({"metadata": {"labels": {"a": "b"}}})))
        .await
        .expect(200);
    assert_eq!(third["metadata"]["generation"], 2);
    assert_eq!(third["metadata"]["uid"], first["metadata"]["uid"]);
}

#[tokio::test]
async fn an_update_that_changes_nothing_writes_nothing() {
    let server = Server::start().await;
    let first = server.gadget("a", json!({})).await;
    let again = server.put(&format!("{GADGETS}/a"), &first).await.expect(200);
    assert_eq!(again, first);
}

#[tokio::test]
async fn an_outdated_version_is_409_and_none_at_all_is_for_the_kind_to_decide() {
    let server = Server::start().await;
    let first = server.gadget("a", json!({})).await;
    let uri = format!("{GADGETS}/a");
    server.put(&uri, &with(first.clone(), json!({"spec": {"size": 2}}))).await.expect(200);
    let error = server.put(&uri, &with(first, json!({"spec": {"size": 3}}))).await.expect(409);
    assert_eq!(
        error["message"],
        "Operation cannot be fulfilled on gadgets.test.io \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    assert_eq!(
        server.put(&uri, &gadget("a", json!({"spec": {"size": 4}}))).await.expect(200)["spec"]["size"],
        4
    );
    server.post(WIDGETS, &json!({"metadata": {"name": "w"}})).await.expect(201);
    let error = server.put(&format!("{WIDGETS}/w"), &json!({"metadata": {"name": "w"}})).await.expect(422);
    assert_eq!(error["details"]["causes"][0]["message"], "Invalid value: 0: must be specified for an update");
}

#[tokio::test]
async fn an_update_does_not_create() {
    let server = Server::start().await;
    let error = server.put(&format!("{GADGETS}/a"), &gadget("a", json!({}))).await.expect(404);
    assert_eq!(error["message"], "gadgets.test.io \"a\" not found");
    server.gadget("a", json!({})).await;
    assert_eq!(server.put(&format!("{GADGETS}/a"), &gadget("b", json!({}))).await.status, 400);
    let other = gadget("a", json!({"metadata": {"uid": "other"}}));
    assert_eq!(server.put(&format!("{GADGETS}/a"), &other).await.expect(409)["reason"], "Conflict");
}

#[tokio::test]
async fn spec_and_status_are_written_apart() {
    let server = Server::start().await;
    let first = server.gadget("a", json!({})).await;
    let both = json!({"spec": {"size": 9}, "status": {"phase": "Up"}, "metadata": {"labels": {"x": "y"}}});
    let status =
        server.put(&format!("{GADGETS}/a/status"), &with(first.clone(), both.clone())).await.expect(200);
    assert_eq!((&status["spec"]["size"], &status["status"]["phase"]), (&json!(1), &json!("Up")));
    assert_eq!(status["metadata"].get("labels"), None);
    assert_eq!(status["metadata"]["generation"], 1);
    let entries = status["metadata"]["managedFields"].as_array().unwrap();
    let own = entries.iter().find(|e| e["subresource"] == "status").unwrap();
    assert_eq!(own["fieldsV1"], json!({"f:status": {"f:phase": {}}}));
    let down = with(status, json!({"spec": {"size": 9}, "status": {"phase": "Down"}}));
    let main = server.put(&format!("{GADGETS}/a"), &down).await.expect(200);
    assert_eq!((&main["spec"]["size"], &main["status"]["phase"]), (&json!(9), &json!("Up")));
}

#[tokio::test]
async fn writers_at_the_same_time_all_get_their_turn() {
    let server = std::sync::Arc::new(Server::start().await);
    server.gadget("a", json!({})).await;
    let writers = (0..20).map(|i| {
        let server = server.clone();
        tokio::spawn(async move {
            let label = json!({"metadata": {"labels": {format!("l{i}"): "x"}}});
            server.merge(&format!("{GADGETS}/a"), &label).await.expect(200);
        })
    });
    futures::future::join_all(writers).await.into_iter().for_each(|r| r.unwrap());
    let got = server.get(&format!("{GADGETS}/a")).await.expect(200);
    assert_eq!(got["metadata"]["labels"].as_object().unwrap().len(), 20);
}

/// A kind records who has written what: no client says it for another, in whichever way it writes. Whoever had sent the record
/// first owned it, and an apply by another manager was refused for a field that the server ignores.
#[tokio::test]
async fn a_kind_learns_who_writes_an_object_but_not_its_status() {
    let server = Server::start().await;
    let uri = format!("{GADGETS}/a");
    let forged = json!({"spec": {"color": "signed", "writers": [{"name": "other", "count": 7}]}});
    let by = |user: &str, count: i32| json!([{"name": user, "count": count}]);
    let made = server.gadget("a", forged.clone()).await;
    assert_eq!(made["spec"]["writers"], by("tester", 1));
    let write = async |method: &str, query: &str, type_: &str, body: &Value| {
        let user = format!("user of {type_}");
        let headers = [("content-type", type_), ("x-user", user.as_str())];
        let written = server.send(method, &format!("{uri}{query}"), &headers, &body.to_string()).await;
        let written = written.expect(200);
        assert_eq!(written["spec"]["writers"], by(&user, 2));
        let owned = written["metadata"]["managedFields"].to_string();
        assert!(owned.contains("f:color") && !owned.contains("f:writers"), "{type_}: {owned}");
        written
    };
    write("PUT", "", "application/json", &with(made, forged.clone())).await;
    write("PATCH", "", "application/merge-patch+json", &forged).await;
    write("PATCH", "", "application/strategic-merge-patch+json", &forged).await;
    let replaced = json!([{"op": "replace", "path": "/spec/writers", "value": forged["spec"]["writers"]}]);
    write("PATCH", "", "application/json-patch+json", &replaced).await;
    let applied = gadget("a", forged.clone());
    let apply = "application/apply-patch+yaml";
    write("PATCH", "?fieldManager=m", apply, &applied).await;
    let last = write("PATCH", "?fieldManager=n", apply, &applied).await;
    let status = with(last.clone(), json!({"status": {"phase": "x"}, "spec": forged["spec"]}));
    let headers = [("x-user", "reporter")];
    let reported =
        server.send("PUT", &format!("{uri}/status"), &headers, &status.to_string()).await.expect(200);
    assert_eq!(reported["spec"], last["spec"]);
}
