//! JSON patch, merge patch and strategic merge patch over HTTP.

use serde_json::json;

use crate::fixture::{GADGETS, Server};

const JSON_PATCH: (&str, &str) = ("content-type", "application/json-patch+json");

#[tokio::test]
async fn merge_and_json_patches_change_an_object() {
    let server = Server::start().await;
    server.gadget("a", json!({"spec": {"parts": [{"name": "p", "count": 1}]}})).await;
    let uri = format!("{GADGETS}/a");
    let got = server.merge(&uri, &json!({"spec": {"size": 5, "color": null}})).await.expect(200);
    assert_eq!((&got["spec"]["size"], &got["spec"]["color"]), (&json!(5), &json!("red")));
    let ops =
        r#"[{"op":"test","path":"/spec/size","value":5},{"op":"replace","path":"/spec/size","value":6}]"#;
    assert_eq!(server.send("PATCH", &uri, &[JSON_PATCH], ops).await.expect(200)["spec"]["size"], 6);
    let status =
        server.merge(&format!("{uri}/status"), &json!({"status": {"phase": "Up"}})).await.expect(200);
    assert_eq!(status["status"]["phase"], "Up");
}

#[tokio::test]
async fn a_patch_that_cannot_be_applied_changes_nothing() {
    let server = Server::start().await;
    let first = server.gadget("a", json!({})).await;
    let uri = format!("{GADGETS}/a");
    let failing = r#"[{"op":"test","path":"/spec/size","value":7}]"#;
    assert_eq!(server.send("PATCH", &uri, &[JSON_PATCH], failing).await.status, 422);
    assert_eq!(server.send("PATCH", &uri, &[JSON_PATCH], "{").await.status, 400);
    assert_eq!(server.merge(&uri, &json!({"spec": {"size": "text"}})).await.status, 422);
    assert_eq!(server.merge(&uri, &json!({"kind": "Other"})).await.status, 422);
    assert_eq!(server.merge(&uri, &json!({"metadata": {"name": "b"}})).await.status, 400);
    assert_eq!(server.merge(&uri, &json!({"metadata": {"resourceVersion": "1"}})).await.status, 409);
    assert_eq!(server.merge(&uri, &json!({"metadata": {"uid": "x"}})).await.status, 422);
    let strict = server.merge(&format!("{uri}?fieldValidation=Strict"), &json!({"spec": {"odd": 1}})).await;
    assert_eq!(strict.status, 422);
    assert_eq!(server.get(&uri).await.expect(200), first);
}

#[tokio::test]
async fn managed_fields_are_ordinary_json_to_patches() {
    let server = Server::start().await;
    let made = server.gadget("a", json!({"spec": {"size": 5, "color": "blue"}})).await;
    let uri = format!("{GADGETS}/a");
    let place = "/metadata/managedFields/0/fieldsV1/f:spec/f:size";
    let ops =
        json!([{"op": "test", "path": place, "value": {}}, {"op": "remove", "path": place}]).to_string();
    let got = server.send("PATCH", &uri, &[JSON_PATCH], &ops).await.expect(200);
    let mut fields = made["metadata"]["managedFields"][0]["fieldsV1"].clone();
    fields["f:spec"].as_object_mut().unwrap().remove("f:size");
    assert_eq!(got["metadata"]["managedFields"][0]["fieldsV1"], fields);
    let unread = json!({"metadata": {"managedFields": [{"operation": "Update"}]}});
    assert_eq!(server.merge(&uri, &unread).await.expect(200)["metadata"], got["metadata"]);
    for reset in [json!([]), json!([{}])] {
        let patch = json!({"metadata": {"managedFields": reset}});
        let got = server.merge(&uri, &patch).await.expect(200);
        assert_eq!(got["metadata"].get("managedFields"), None);
    }
}

#[tokio::test]
async fn a_strategic_patch_merges_lists_by_their_keys() {
    let server = Server::start().await;
    let parts = json!([{"name": "p", "count": 1}, {"name": "q", "count": 2}]);
    let metadata = json!({"finalizers": ["x.io/a"], "labels": {"a": "1"}});
    server.gadget("a", json!({"metadata": metadata, "spec": {"parts": parts}})).await;
    let patch = json!({"kind": "Other", "metadata": {"finalizers": ["x.io/b"], "labels": {"a": null}},
        "spec": {"size": 7.0, "$setElementOrder/parts": [{"name": "r"}, {"name": "p"}],
            "parts": [{"name": "r"}, {"name": "p", "count": 3}, {"name": "q", "$patch": "delete"}]}});
    let got = server.strategic(&format!("{GADGETS}/a"), &patch).await.expect(200);
    assert_eq!((&got["kind"], &got["spec"]["size"]), (&json!("Gadget"), &json!(7)));
    assert_eq!(got["spec"]["parts"], json!([{"name": "r"}, {"name": "p", "count": 3}]));
    assert_eq!(got["metadata"]["finalizers"], json!(["x.io/b", "x.io/a"]));
    assert_eq!(got["metadata"]["labels"], json!(null));
    let managed = got["metadata"]["managedFields"].as_array().unwrap();
    let entry = managed.iter().find(|e| e["manager"] == "planner").unwrap();
    let fields = &entry["fieldsV1"]["f:spec"]["f:parts"];
    assert_eq!(fields["k:{\"name\":\"r\"}"], json!({".": {}, "f:name": {}}));
}

#[tokio::test]
async fn a_strategic_patch_that_cannot_be_applied_changes_nothing() {
    let server = Server::start().await;
    let first = server.gadget("a", json!({"spec": {"parts": [{"name": "p"}]}})).await;
    let uri = format!("{GADGETS}/a");
    let cases = [
        (json!([]), 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (json!({"metadata": {"name": "b"}}), 400, "the name of the object (b) does not match"),
        (json!({"$patch": "replace"}), 400, "undeterminable: name must be provided"),
        (json!({"metadata": {"$retainKeys": 1}}), 400, "invalid patch format of retainKeys"),
        (json!({"metadata": {"resourceVersion": "1"}}), 409, "the object has been modified"),
        (json!({"spec": {"size": "x"}}), 422, "\"map[spec:map[size:x]]\": unrecognized type: int32"),
        (json!({"spec": {"size": -1}}), 422, "must not be negative"),
        (
            json!({"spec": {"parts": [{"count": 1}]}}),
            500,
            "map: map[count:1] does not contain declared merge key: name",
        ),
    ];
    for (patch, code, words) in cases {
        let refused = server.strategic(&uri, &patch).await.expect(code);
        assert!(refused["message"].as_str().unwrap().contains(words), "{refused}");
    }
    assert_eq!(server.strategic(&format!("{GADGETS}/b"), &json!([])).await.status, 404);
    assert_eq!(server.strategic(&uri, &json!(null)).await.expect(200), first);
    assert_eq!(server.get(&uri).await.expect(200), first);
}

#[tokio::test]
async fn a_patch_of_another_type_is_415() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    let error =
        server.send("PATCH", &format!("{GADGETS}/a"), &[("content-type", "application/json")], "{}").await;
    assert_eq!(error.expect(415)["message"], "415: Unsupported Media Type");
}

#[tokio::test]
async fn a_patch_of_nothing_is_404() {
    let server = Server::start().await;
    assert_eq!(server.merge(&format!("{GADGETS}/a"), &json!({})).await.status, 404);
}

#[tokio::test]
async fn a_dry_run_patch_shows_but_does_not_store() {
    let server = Server::start().await;
    let first = server.gadget("a", json!({})).await;
    let uri = format!("{GADGETS}/a");
    let shown = server.merge(&format!("{uri}?dryRun=All"), &json!({"spec": {"size": 8}})).await.expect(200);
    assert_eq!(shown["spec"]["size"], 8);
    assert_eq!(server.get(&uri).await.expect(200), first);
}

/// Only the last of two values was seen, whatever fieldValidation said.
#[tokio::test]
async fn what_stands_twice_in_a_patch_is_warned_of_or_refused() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    let uri = format!("{GADGETS}/a");
    let bodies = [
        ("merge-patch+json", r#"{"spec":{"size":2,"size":3}}"#, 422, r#"duplicate field \"spec.size\""#),
        (
            "json-patch+json",
            r#"[{"op":"add","path":"/spec/size","path":"/spec/size","value":3}]"#,
            422,
            r#"json patch duplicate field \"[0].path\""#,
        ),
        (
            "json-patch+json",
            r#"[{"op":"add","path":"/spec/size","value":3,"foo":{"a":1,"a":2},"foo":1}]"#,
            422,
            r#"json patch unknown field \"[0].foo\""#,
        ),
        (
            "strategic-merge-patch+json",
            r#"{"spec":{"size":2,"size":3}}"#,
            422,
            r#"duplicate field \"spec.size\""#,
        ),
        (
            "strategic-merge-patch+json",
            r#"{"spec":{"parts":[{"name":"p","odd":2}]}}"#,
            422,
            r#"unknown field \"spec.parts[0].odd\""#,
        ),
        (
            "apply-patch+yaml",
            "{apiVersion: test.io/v1, kind: Gadget, metadata: {name: a}, spec: {size: 2, size: 3}}",
            400,
            r#"key \"size\" already set in map"#,
        ),
    ];
    for (type_, body, code, words) in bodies {
        let type_ = format!("application/{type_}");
        let headers = [("content-type", type_.as_str())];
        let apply = if code == 400 { "fieldManager=me&force=true&" } else { "" };
        let uri = format!("{uri}?{apply}dryRun=All&fieldValidation=");
        let refused = server.send("PATCH", &format!("{uri}Strict"), &headers, body).await;
        let told = String::from_utf8_lossy(&refused.body);
        assert!(refused.status == code && told.contains(words), "{type_}: {told}");
        let warned = server.send("PATCH", &format!("{uri}Warn"), &headers, body).await;
        assert_eq!((warned.status, warned.header("warning").len()), (200, 1), "{type_}");
        assert!(warned.header("warning")[0].contains(words), "{:?}", warned.header("warning"));
        let ignored = server.send("PATCH", &format!("{uri}Ignore"), &headers, body).await;
        assert_eq!((ignored.status, ignored.header("warning").len()), (200, 0), "{type_}");
    }
}
