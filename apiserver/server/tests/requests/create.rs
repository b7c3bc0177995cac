//! Create over HTTP.

use serde_json::json;

use crate::fixture::{GADGETS, Server, WIDGETS, gadget};

#[tokio::test]
async fn a_created_object_carries_what_the_server_keeps() {
    let server = Server::start().await;
    let got = server
        .gadget("a", json!({"metadata": {"uid": "mine", "generation": 7}, "status": {"phase": "x"}}))
        .await;
    let meta = &got["metadata"];
    assert_eq!((meta["name"].as_str(), meta["namespace"].as_str()), (Some("a"), Some("ns")));
    assert_eq!(meta["uid"].as_str().unwrap().len(), 36);
    assert_eq!(meta["generation"], 1);
    assert!(meta["creationTimestamp"].as_str().unwrap().ends_with('Z'));
    assert!(meta["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(got["spec"], json!({"size": 1, "color": "red"}));
    assert_eq!(got.get("status"), None);
    let entry = &meta["managedFields"][0];
    assert_eq!((entry["manager"].as_str(), entry["operation"].as_str()), (Some("tester"), Some("Update")));
    assert_eq!(entry["fieldsV1"], json!({"f:spec": {"f:color": {}, "f:size": {}}}));
    assert_eq!(server.get(&format!("{GADGETS}/a")).await.expect(200), got);
}

/// What controllers share among creators must not be theirs to choose.
#[tokio::test]
async fn a_kind_that_keeps_its_creator_gets_the_unit_by_which_users_have_shares() {
    let server = Server::start().await;
    let path = |name: &str| format!("{GADGETS}/{name}");
    let made = |name: &str| {
        let forged = json!({"spec": {"color": "signed"}, "status": {"note": "somebody else"}});
        gadget(name, forged).to_string()
    };
    let account = [("x-user", "system:serviceaccount:shop:a"), ("x-group", "system:serviceaccounts:shop")];
    let apply = [("x-user", "ann"), ("content-type", "application/apply-patch+yaml")];
    for (method, uri, headers, name) in [
        ("POST", GADGETS.to_owned(), &account[..], "system:serviceaccounts:shop"),
        ("PATCH", format!("{}?fieldManager=ann", path("b")), &apply[..], "ann"),
    ] {
        let body = made(if method == "POST" { "a" } else { "b" });
        let got = server.send(method, &uri, headers, &body).await.expect(201);
        assert_eq!(got["status"], json!({"note": name}), "{method}");
    }
    let update = json!({"spec": {"size": 2}, "status": {"note": "somebody else"}});
    let got = server.merge(&path("a"), &update).await.expect(200);
    assert_eq!(got["status"], json!({"note": "system:serviceaccounts:shop"}));
}

#[tokio::test]
async fn a_name_can_be_generated_but_not_missing() {
    let server = Server::start().await;
    let got = server.post(GADGETS, &json!({"metadata": {"generateName": "g-"}})).await.expect(201);
    assert_eq!(got["metadata"]["name"].as_str().unwrap().len(), 7);
    let error = server.post(GADGETS, &json!({"spec": {}})).await.expect(422);
    assert_eq!(error["details"]["causes"][0]["field"], "metadata.name");
    assert_eq!(error["details"]["causes"][0]["message"], "Required value: name or generateName is required");
}

#[tokio::test]
async fn a_taken_name_is_409() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    let error = server.post(GADGETS, &gadget("a", json!({}))).await.expect(409);
    assert_eq!(error["reason"], "AlreadyExists");
    assert_eq!(error["message"], "gadgets.test.io \"a\" already exists");
    let dry = server.post(&format!("{GADGETS}?dryRun=All"), &gadget("a", json!({}))).await;
    assert_eq!(dry.status, 409);
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let server = Server::start().await;
    let got = server.post(&format!("{GADGETS}?dryRun=All"), &gadget("a", json!({}))).await.expect(201);
    assert_eq!(got["metadata"].get("resourceVersion"), None);
    assert_eq!(server.get(&format!("{GADGETS}/a")).await.status, 404);
}

#[tokio::test]
async fn bad_objects_are_refused_with_their_causes() {
    let server = Server::start().await;
    let error = server.post(GADGETS, &gadget("a", json!({"spec": {"size": -1}}))).await.expect(422);
    assert_eq!(error["details"]["kind"], "Gadget");
    assert_eq!(error["details"]["causes"][0]["field"], "spec.size");
    assert_eq!(server.post(GADGETS, &gadget("A_b", json!({}))).await.status, 422);
    let elsewhere = gadget("a", json!({"metadata": {"namespace": "other"}}));
    assert_eq!(server.post(GADGETS, &elsewhere).await.status, 400);
    let versioned = gadget("a", json!({"metadata": {"resourceVersion": "5"}}));
    assert_eq!(server.post(GADGETS, &versioned).await.status, 500);
    let other_kind = gadget("a", json!({"kind": "Other"}));
    assert_eq!(server.post(GADGETS, &other_kind).await.status, 400);
    for body in ["", "{", "[]", "\"x\"", "{\"spec\": 5}"] {
        assert_eq!(server.send("POST", GADGETS, &[], body).await.status, 400, "{body}");
    }
}

#[tokio::test]
async fn unknown_fields_are_warned_about_refused_or_ignored() {
    let server = Server::start().await;
    let body = |name| gadget(name, json!({"spec": {"odd": 1}}));
    let warned = server.post(GADGETS, &body("a")).await;
    assert_eq!(warned.header("warning"), [r#"299 - "unknown field \"spec.odd\"""#]);
    assert_eq!(warned.expect(201)["spec"].get("odd"), None);
    let ignored = server.post(&format!("{GADGETS}?fieldValidation=Ignore"), &body("b")).await;
    assert_eq!((ignored.status, ignored.header("warning").len()), (201, 0));
    let strict = server.post(&format!("{GADGETS}?fieldValidation=Strict"), &body("c")).await.expect(400);
    assert!(
        strict["message"].as_str().unwrap().contains("strict decoding error: unknown field \"spec.odd\"")
    );
}

#[tokio::test]
async fn a_kinds_warnings_reach_the_client() {
    let server = Server::start().await;
    let answer = server.post(GADGETS, &gadget("a", json!({"spec": {"color": "beige"}}))).await;
    assert_eq!(answer.header("warning"), ["299 - \"beige is out of fashion\""]);
}

#[tokio::test]
async fn bodies_may_be_yaml_but_not_anything() {
    let server = Server::start().await;
    let yaml = "metadata:\n  name: a\nspec:\n  size: 3\n";
    let got = server.send("POST", GADGETS, &[("content-type", "application/yaml")], yaml).await.expect(201);
    assert_eq!(got["spec"]["size"], 3);
    let error = server.send("POST", GADGETS, &[("content-type", "text/plain")], "x").await.expect(415);
    assert_eq!(error["reason"], "UnsupportedMediaType");
    let large = "x".repeat(3 * 1024 * 1024 + 1);
    assert_eq!(
        server.send("POST", GADGETS, &[], &large).await.expect(413)["reason"],
        "RequestEntityTooLarge"
    );
}

#[tokio::test]
async fn a_cluster_scoped_object_has_no_namespace() {
    let server = Server::start().await;
    let body = json!({"metadata": {"name": "w", "namespace": "ns"}});
    let got = server.post(WIDGETS, &body).await.expect(201);
    assert_eq!(got["metadata"].get("namespace"), None);
    assert_eq!(server.get(&format!("{WIDGETS}/w")).await.status, 200);
}

#[tokio::test]
async fn an_object_that_cannot_be_stored_is_413() {
    let server = Server::start().await;
    let body = gadget("a", json!({"spec": {"color": "x".repeat(2 << 20)}}));
    assert_eq!(
        server.post(GADGETS, &body).await.expect(413)["message"],
        "Request entity too large: request is too large"
    );
}

#[tokio::test]
async fn an_object_that_fits_only_without_its_managed_fields_is_stored_without_them() {
    let server = Server::start().await;
    let owner = |i| json!({"apiVersion": "v1", "kind": "P", "name": "n", "uid": format!("{i:06}")});
    let owners: Vec<_> = (0..20_000).map(owner).collect();
    let large = |name| gadget(name, json!({"metadata": {"ownerReferences": owners}}));
    let made = server.post(GADGETS, &large("made")).await.expect(201);
    server.gadget("changed", json!({})).await;
    let changed = server.put(&format!("{GADGETS}/changed"), &large("changed")).await.expect(200);
    for stored in [made, changed] {
        assert_eq!(stored["metadata"]["ownerReferences"].as_array().unwrap().len(), 20_000);
        assert_eq!(stored["metadata"].get("managedFields"), None);
    }
}

/// Regression: each owner reference was compared with all before it. Ten thousand of them, a third of what a body
/// has room for, held a thread for seconds.
#[tokio::test]
async fn owner_references_are_kept_once_however_many() {
    let server = Server::start().await;
    let owners: Vec<_> = (0..20_000)
        .map(|i| json!({"apiVersion": "v1", "kind": "P", "name": "n", "uid": (i % 10_000).to_string()}))
        .collect();
    let body = gadget("owned", json!({"metadata": {"ownerReferences": owners}}));
    let answer = server.post(&format!("{GADGETS}?dryRun=All"), &body).await;
    assert!(answer.header("warning")[0].contains("duplicate"));
    let made = answer.expect(201);
    assert_eq!(made["metadata"]["ownerReferences"].as_array().unwrap().len(), 10_000);
}
