//! Delete and deletecollection over HTTP: finalizers, policies, preconditions.

use drydock_server::audit::AuditContext;
use serde_json::json;

use crate::fixture::{GADGETS, Server};

#[tokio::test]
async fn a_delete_answers_what_is_gone() {
    let server = Server::start().await;
    let made = server.gadget("a", json!({})).await;
    let got = server.delete(&format!("{GADGETS}/a")).await.expect(200);
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": "a", "group": "test.io", "kind": "gadgets", "uid": made["metadata"]["uid"]},
    });
    assert_eq!(got, expected);
    assert_eq!(server.delete(&format!("{GADGETS}/a")).await.status, 404);
}

#[tokio::test]
async fn finalizers_hold_an_object_until_the_last_is_removed() {
    let server = Server::start().await;
    let uri = format!("{GADGETS}/a");
    server.gadget("a", json!({"metadata": {"finalizers": ["x.io/f"]}})).await;
    let pending = server.delete(&uri).await.expect(200);
    assert_eq!((pending["kind"].as_str(), &pending["metadata"]["generation"]), (Some("Gadget"), &json!(2)));
    assert_eq!(pending["metadata"]["deletionGracePeriodSeconds"], 0);
    let again = server.delete(&uri).await.expect(200);
    assert_eq!(again, pending);
    let added = server.merge(&uri, &json!({"metadata": {"finalizers": ["x.io/f", "x.io/g"]}})).await;
    assert_eq!(added.status, 422);
    let last = server.merge(&uri, &json!({"metadata": {"finalizers": null}})).await.expect(200);
    assert_eq!(last["metadata"].get("finalizers"), None);
    assert_eq!(server.get(&uri).await.status, 404);
}

#[tokio::test]
async fn the_garbage_collectors_finalizers_follow_the_policy() {
    let server = Server::start().await;
    for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        server.gadget("a", json!({})).await;
        let uri = format!("{GADGETS}/a");
        let held = server.delete(&format!("{uri}?propagationPolicy={policy}")).await.expect(200);
        assert_eq!(held["metadata"]["finalizers"], json!([finalizer]));
        server.merge(&uri, &json!({"metadata": {"finalizers": null}})).await.expect(200);
    }
    server.gadget("a", json!({})).await;
    let odd = server.delete(&format!("{GADGETS}/a?propagationPolicy=Odd")).await;
    assert_eq!(odd.status, 422);
}

/// kube-apiserver replaces the list of finalizers only if one comes or goes.
#[tokio::test]
async fn finalizers_that_stay_keep_their_order() {
    let server = Server::start().await;
    let present = json!(["orphan", "x.io/f"]);
    for (name, policy, expected) in [
        ("a", "Orphan", present.clone()),
        ("b", "Foreground", json!(["x.io/f", "foregroundDeletion"])),
        ("c", "Background", json!(["x.io/f"])),
    ] {
        server.gadget(name, json!({"metadata": {"finalizers": present}})).await;
        let held = server.delete(&format!("{GADGETS}/{name}?propagationPolicy={policy}")).await.expect(200);
        assert_eq!(held["metadata"]["finalizers"], expected, "{policy}");
    }
    server.gadget("d", json!({"metadata": {"finalizers": present}})).await;
    let held = server.delete(&format!("{GADGETS}/d")).await.expect(200);
    assert_eq!(held["metadata"]["finalizers"], present);
}

#[tokio::test]
async fn a_collection_is_not_deleted_if_its_list_is_asked_for_as_one_object() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let refused = server.send("DELETE", GADGETS, &[("accept", accept)], "").await;
    assert_eq!(refused.status, 406);
    assert_eq!(server.get(&format!("{GADGETS}/a")).await.status, 200);
    let list = accept.replace("Metadata;", "MetadataList;");
    server.send("DELETE", GADGETS, &[("accept", &list)], "").await.expect(200);
    assert_eq!(server.get(&format!("{GADGETS}/a")).await.status, 404);
}

#[tokio::test]
async fn preconditions_must_hold() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    let uri = format!("{GADGETS}/a");
    for wrong in [json!({"uid": "other"}), json!({"resourceVersion": "1"})] {
        let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": wrong});
        assert_eq!(
            server.send("DELETE", &uri, &[], &body.to_string()).await.expect(409)["reason"],
            "Conflict"
        );
    }
    let other = json!({"kind": "Gadget", "apiVersion": "v1"});
    assert_eq!(server.send("DELETE", &uri, &[], &other.to_string()).await.status, 400);
    let dry = server.send("DELETE", &uri, &[], r#"{"dryRun":["All"]}"#).await;
    assert_eq!(dry.status, 200);
    assert_eq!(server.get(&uri).await.status, 200);
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector_and_namespace() {
    let server = Server::start().await;
    for (name, label) in [("a", "x"), ("b", "x"), ("c", "y")] {
        server.gadget(name, json!({"metadata": {"labels": {"l": label}}})).await;
    }
    let gone = server.delete(&format!("{GADGETS}?labelSelector=l%3Dx")).await.expect(200);
    assert_eq!((gone["kind"].as_str(), gone["items"].as_array().unwrap().len()), (Some("GadgetList"), 2));
    let left = server.get(GADGETS).await.expect(200);
    assert_eq!(left["items"][0]["metadata"]["name"], "c");
    assert_eq!(server.delete("/apis/test.io/v1/gadgets").await.status, 405);
}

/// The options of each delete were written out as JSON, though no log was configured.
#[test]
fn what_is_not_logged_is_not_written_out() {
    AuditContext::default().request_body(|| panic!("it is asked for"));
}
