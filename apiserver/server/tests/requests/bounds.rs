//! What a tenant may store: how large an object may be without its status, and how many objects of a namespace may be
//! in a state that counts.

use std::sync::Arc;

use drydock_storage::backend::CompareAndSwap;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::fixture::{Answer, GADGETS, Server, gadget};
use crate::gadget::{MAX_GADGET_BYTES, QUOTA};

fn padded(name: &str, bytes: usize) -> Value {
    gadget(name, json!({"metadata": {"annotations": {"pad": "x".repeat(bytes)}}}))
}

/// A gadget of nearly the most bytes.
async fn brimful(server: &Server, finalizers: Value) -> String {
    let extra = json!({"metadata": {"annotations": {"pad": "x".repeat(MAX_GADGET_BYTES - 700)}, "finalizers": finalizers},
        "spec": {"parts": [{"name": "a"}, {"name": "b"}]}});
    server.gadget("full", extra).await;
    format!("{GADGETS}/full")
}

async fn patch_as(server: &Server, user: &str, uri: &str, patch: &Value) -> Answer {
    let headers = [("content-type", "application/merge-patch+json"), ("x-user", user)];
    server.send("PATCH", uri, &headers, &patch.to_string()).await
}

fn pad(bytes: usize) -> Value {
    json!({"metadata": {"annotations": {"more": "y".repeat(bytes)}}})
}

/// A tenant padded an object until the status that a controller wanted to write had no room in it any more.
#[tokio::test]
async fn an_object_is_bounded_but_for_its_status() {
    let server = Server::bounded().await;
    let refused = server.post(GADGETS, &padded("big", MAX_GADGET_BYTES)).await.expect(422);
    let cause = &refused["details"]["causes"][0];
    assert_eq!(
        (cause["reason"].as_str(), cause["field"].as_str()),
        (Some("FieldValueTooLong"), Some("metadata"))
    );
    let why = cause["message"].as_str().unwrap();
    assert!(
        why.starts_with("Too long: may not be more than 8192 bytes: all of the object but its status"),
        "{why}"
    );
    server.get(&format!("{GADGETS}/big")).await.expect(404);

    let uri = brimful(&server, json!(["x/y"])).await;
    server.merge(&uri, &pad(900)).await.expect(422);
    server.strategic(&uri, &pad(900)).await.expect(422);
    let applied = json!({"apiVersion": "test.io/v1", "kind": "Gadget", "metadata": pad(900)["metadata"]});
    server.apply(&format!("{uri}?fieldManager=m"), &applied).await.expect(422);
    let mut whole = server.get(&uri).await.expect(200);
    whole["spec"]["parts"] = (0..200).map(|n| json!({"name": format!("part-{n}")})).collect();
    server.put(&uri, &whole).await.expect(422);

    let status = json!({"status": {"phase": "p".repeat(100_000)}});
    server.merge(&format!("{uri}/status"), &status).await.expect(200);
    server.merge(&uri, &json!({"metadata": {"finalizers": null}})).await.expect(200);
    server.delete(&uri).await.expect(200);
}

/// Items of long names that had fitted into an object did not fit any more when the server recorded a user of each.
#[tokio::test]
async fn an_object_has_no_less_room_because_its_writer_has_a_long_name() {
    let server = Server::bounded().await;
    let (uri, user) = (format!("{GADGETS}/full"), "u".repeat(MAX_GADGET_BYTES));
    let mut sent = padded("full", MAX_GADGET_BYTES - 700);
    sent["spec"]["color"] = json!("signed");
    let made =
        server.send("POST", GADGETS, &[("x-user", user.as_str())], &sent.to_string()).await.expect(201);
    assert_eq!(made["spec"]["writers"], json!([{"name": user, "count": 1}]));
    patch_as(&server, &user, &uri, &json!({"spec": {"size": 2}})).await.expect(200);
    patch_as(&server, "tester", &uri, &pad(900)).await.expect(422);
}

#[tokio::test]
async fn what_takes_something_away_passes_whatever_managed_fields_would_become() {
    let server = Server::bounded().await;
    let uri = brimful(&server, json!(["a/b", "c/d"])).await;
    // Each writer is a manager of its own, whose record would outweigh what it takes away.
    for (manager, patch) in [
        ("m".repeat(128), json!({"spec": {"parts": [{"name": "b"}]}})),
        ("n".repeat(128), json!({"metadata": {"finalizers": ["a/b"]}})),
        ("o".repeat(128), json!({"spec": {"parts": null}})),
    ] {
        let left = MAX_GADGET_BYTES - server.get(&uri).await.body.len().min(MAX_GADGET_BYTES);
        patch_as(&server, "controller", &uri, &pad(left + 200)).await.expect(200);
        server.merge(&format!("{uri}?fieldManager={manager}"), &patch).await.expect(200);
    }
    assert_eq!(server.get(&uri).await.expect(200)["metadata"]["finalizers"], json!(["a/b"]));
    server.delete(&uri).await.expect(200);
    server.merge(&uri, &json!({"metadata": {"finalizers": null}})).await.expect(200);
    server.get(&uri).await.expect(404);
}

/// Each manager that applies leaves a record, however little it says.
#[tokio::test]
async fn managers_are_no_way_around_the_bound() {
    let server = Server::bounded().await;
    let uri = brimful(&server, json!([])).await;
    let config = json!({"apiVersion": "test.io/v1", "kind": "Gadget", "spec": {"size": 1}});
    let mut applied = 0;
    while server.apply(&format!("{uri}?fieldManager=manager-{applied}"), &config).await.status == 200 {
        applied += 1;
        assert!(applied < 100);
    }
    assert!(server.get(&uri).await.body.len() < MAX_GADGET_BYTES + 300);
}

#[tokio::test]
async fn writers_of_the_status_take_no_room_from_the_rest() {
    let server = Server::bounded().await;
    let uri = format!("{GADGETS}/most");
    server.post(GADGETS, &padded("most", MAX_GADGET_BYTES - 1000)).await.expect(201);
    let of_status = json!({"apiVersion": "test.io/v1", "kind": "Gadget", "status": {"phase": "a"}});
    for manager in 0..50 {
        server
            .apply(&format!("{uri}/status?force=true&fieldManager={manager}"), &of_status)
            .await
            .expect(200);
    }
    assert!(server.get(&uri).await.body.len() > MAX_GADGET_BYTES);
    server.merge(&uri, &json!({"spec": {"size": 2}})).await.expect(200);
}

/// Objects that are older than the bound.
#[tokio::test]
async fn an_object_that_is_too_large_already_can_be_made_smaller_and_ended() {
    let server = Server::bounded().await;
    let mut old = padded("old", 3 * MAX_GADGET_BYTES);
    old["metadata"]["namespace"] = json!("ns");
    old["metadata"]["uid"] = json!("u");
    old["metadata"]["generation"] = json!(1);
    old["spec"]["color"] = json!("red");
    old["metadata"]["finalizers"] = json!(["x/y"]);
    old["spec"]["parts"] = json!([{"name": "a"}, {"name": "b"}]);
    let key = "/registry/test.io/gadgets/ns/old".to_owned();
    let value = Some(old.to_string().into());
    server
        .backend
        .write(CompareAndSwap { key, expected: None, value, guard: None, priority: Default::default() })
        .await
        .unwrap();
    let uri = format!("{GADGETS}/old");
    server.merge(&uri, &pad(1)).await.expect(422);
    server.merge(&format!("{uri}/status"), &json!({"status": {"phase": "long"}})).await.expect(200);
    server.merge(&uri, &json!({"spec": {"parts": [{"name": "b"}]}})).await.expect(200);
    server.delete(&uri).await.expect(200);
    server.merge(&uri, &json!({"metadata": {"finalizers": null}})).await.expect(200);
    server.get(&uri).await.expect(404);
}

#[tokio::test]
async fn controllers_are_not_bound_and_masters_are() {
    let server = Server::bounded().await;
    let uri = brimful(&server, json!([])).await;
    let master = [("content-type", "application/merge-patch+json"), ("x-group", "system:masters")];
    assert_eq!(server.send("PATCH", &uri, &master, &pad(900).to_string()).await.status, 422);
    patch_as(&server, "controller", &uri, &pad(900)).await.expect(200);
}

/// A namespace could be filled with what no controller had looked at yet, faster than one could look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_any_number_of_creates_at_a_time_only_so_many_pass() {
    let server = Arc::new(Server::bounded().await);
    let creates = (0..3 * QUOTA.hard).map(|n| {
        let server = server.clone();
        tokio::spawn(async move { server.post(GADGETS, &gadget(&format!("g{n}"), json!({}))).await })
    });
    let answers: Vec<_> = join_all(creates).await.into_iter().map(|answer| answer.unwrap()).collect();
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), QUOTA.hard);
    let refusal = answers.into_iter().find(|answer| answer.status != 201).unwrap().expect(403);
    let message = refusal["message"].as_str().unwrap();
    let words = "exceeded quota: plain-gadgets, requested: count/gadgets.test.io=1, used: count/gadgets.test.io=20, \
                 limited: count/gadgets.test.io=20; paint some";
    assert!(message.starts_with("gadgets.test.io \"g") && message.contains(words), "{message}");
    assert_eq!(refusal["reason"], "Forbidden");
}

async fn filled() -> Server {
    let server = Server::bounded().await;
    for n in 0..QUOTA.hard {
        server.gadget(&format!("g{n}"), json!({})).await;
    }
    server
}

#[tokio::test]
async fn a_used_up_quota_refuses_every_way_to_create_and_nothing_else() {
    let server = filled().await;
    let (one, uri) = (gadget("one", json!({})), format!("{GADGETS}/one"));
    server.post(GADGETS, &one).await.expect(403);
    server.post(&format!("{GADGETS}?dryRun=All"), &one).await.expect(403);
    server.apply(&format!("{uri}?fieldManager=m"), &one).await.expect(403);
    let elsewhere = "/apis/test.io/v1/namespaces/other/gadgets";
    server.post(elsewhere, &one).await.expect(201);
    server.merge(&format!("{GADGETS}/g0"), &json!({"spec": {"size": 2}})).await.expect(200);
    for headers in [("x-user", "controller"), ("x-group", "system:masters")] {
        let name = gadget(headers.1.trim_start_matches("system:"), json!({}));
        assert_eq!(server.send("POST", GADGETS, &[headers], &name.to_string()).await.status, 201);
    }
    server.post(GADGETS, &gadget("g0", json!({}))).await.expect(403);
}

#[tokio::test]
async fn what_is_painted_or_deleted_counts_no_longer_and_what_failed_never_did() {
    let server = filled().await;
    server.merge(&format!("{GADGETS}/g0/status"), &json!({"status": {"phase": "painted"}})).await.expect(200);
    server.delete(&format!("{GADGETS}/g1")).await.expect(200);
    // A consistent read: the cache has taken them in.
    server.get(GADGETS).await.expect(200);
    server.post(&format!("{GADGETS}?dryRun=All"), &gadget("a", json!({}))).await.expect(201);
    for _ in 0..5 {
        server.post(GADGETS, &gadget("g2", json!({}))).await.expect(409);
    }
    server.post(GADGETS, &gadget("a", json!({}))).await.expect(201);
    server.post(GADGETS, &gadget("b", json!({}))).await.expect(201);
    server.post(GADGETS, &gadget("c", json!({}))).await.expect(403);
}

/// Only objects in one state were counted, by number: a namespace was filled with large ones in any other.
#[tokio::test]
async fn a_namespace_that_has_its_bytes_gets_no_more_but_for_what_is_needed_and_what_makes_it_smaller() {
    let server = Server::bounded().await;
    let status = json!({"status": {"phase": "painted", "note": "x"}});
    // Many more than there is room for. The number is limited, so that the test ends if the quota does not work.
    for n in 0..200 {
        // A consistent read: the cache has taken them in.
        server.get(&format!("{GADGETS}?limit=1")).await.expect(200);
        let answer = server.post(GADGETS, &padded(&format!("g{n}"), MAX_GADGET_BYTES / 2)).await;
        if answer.status == 403 {
            break;
        }
        answer.expect(201);
        server.merge(&format!("{GADGETS}/g{n}/status"), &status).await.expect(200);
    }
    // A consistent read: the cache has taken them in.
    server.get(GADGETS).await.expect(200);
    let one = gadget("one", json!({}));
    let refused = server.post(GADGETS, &one).await.expect(403);
    let message = refused["message"].as_str().unwrap();
    let words = ["exceeded quota: gadget-bytes, requested: bytes/gadgets.test.io=", "=300000; remove some"];
    assert!(words.iter().all(|words| message.contains(words)), "{message}");
    let (first, second) = (format!("{GADGETS}/g0"), format!("{GADGETS}/g1"));
    server.merge(&first, &pad(100)).await.expect(403);
    patch_as(&server, "controller", &first, &pad(100)).await.expect(200);
    let color = json!({"spec": {"color": "vermilion"}});
    let painted = server.merge(&format!("{first}?fieldManager=painter"), &color).await.expect(200);
    assert!(!painted["metadata"]["managedFields"].to_string().contains("painter"), "{painted}");
    // The status counts too; only what its kind needs is taken, and without managed fields of its own.
    let status = format!("{first}/status?fieldManager=reporter");
    let longer = server.merge(&status, &json!({"status": {"phase": "longer than that"}})).await.expect(200);
    assert!(!longer["metadata"]["managedFields"].to_string().contains("reporter"), "{longer}");
    let note = json!({"status": {"note": "x".repeat(100)}});
    let refused = server.merge(&status, &note).await.expect(403);
    assert!(refused["message"].as_str().unwrap().contains(words[0]), "{refused}");
    patch_as(&server, "controller", &status, &note).await.expect(200);
    server.merge(&status, &json!({"status": {"note": "less"}})).await.expect(200);
    server.post("/apis/test.io/v1/namespaces/other/gadgets", &one).await.expect(201);

    server.merge(&first, &json!({"metadata": {"annotations": null}})).await.expect(200);
    server.delete(&second).await.expect(200);
    server.get(GADGETS).await.expect(200);
    server.post(GADGETS, &one).await.expect(201);
}

/// Each write to the object sent some more of them, and only what it added counted: the object grew step by step.
#[tokio::test]
async fn managed_fields_of_the_status_that_a_client_invents_are_bounded_too() {
    let server = Server::bounded().await;
    let uri = format!("{GADGETS}/g");
    let mut object = server.gadget("g", json!({})).await;
    let mut taken = 0;
    for n in 0..10 {
        let entry = json!({"manager": format!("m{n}{}", "x".repeat(100)), "operation": "Apply", "apiVersion": "test.io/v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "subresource": "status",
            "fieldsV1": {"f:status": {"f:phase": {}, format!("f:{}", "y".repeat(3000)): {}}}});
        object["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
        let answer = server.put(&uri, &object).await;
        taken += u32::from(answer.status == 200);
    }
    assert!(taken < 4, "{taken} of 10 writes");
    assert!(server.get(&uri).await.body.len() < 2 * MAX_GADGET_BYTES);
}

/// An applier gave itself ever new names: each owned the same field of the status, and the object grew without a bound.
#[tokio::test]
async fn managed_fields_of_the_status_are_bounded_and_the_write_passes() {
    let server = Server::bounded().await;
    server.gadget("g", json!({})).await;
    let status = gadget("g", json!({"status": {"phase": "painted"}}));
    let mut last = json!(null);
    for n in 0..30 {
        let uri = format!("{GADGETS}/g/status?fieldManager=manager-{n}&force=true");
        last = server.apply(&uri, &status).await.expect(200);
    }
    let entries = last["metadata"]["managedFields"].as_array().unwrap();
    let of_status = entries.iter().filter(|entry| entry["subresource"] == "status");
    let bytes: usize = of_status.map(|entry| entry.to_string().len()).sum();
    assert!((500..1024).contains(&bytes), "{bytes}");
    assert_eq!(last["status"]["phase"], "painted");
}
