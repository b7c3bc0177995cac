//! Gets, lists, tables and watches of objects that were written in the other version.

use serde_json::{Value, json};

use super::conversion::NOTE;
use super::{ALPHA, BETA, alpha, beta, server};
use crate::fixture::Server;
use crate::watch::Watch;

async fn create(server: &Server, name: &str, spec: Value) -> Value {
    let object = alpha(json!({"metadata": {"name": name, "labels": {"name": name}}, "spec": spec}));
    server.post(ALPHA, &object).await.expect(201)
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

#[tokio::test]
async fn an_object_is_read_in_each_version_at_one_resource_version() {
    let server = server().await;
    let created = create(&server, "f", json!({"reference": "a", "note": "n"})).await;
    assert_eq!(created["spec"], json!({"note": "n", "reference": "a", "referenceType": "Flunder"}));
    let read = server.get(&format!("{BETA}/f")).await.expect(200);
    assert_eq!(read["apiVersion"], "wardle.example.com/v1beta1");
    assert_eq!(read["spec"], json!({"flunderReference": "a", "referenceType": "Flunder"}));
    assert_eq!(read["metadata"]["annotations"], json!({(NOTE): "n"}));
    assert_eq!((version(&read), &read["metadata"]["uid"]), (version(&created), &created["metadata"]["uid"]));
    let elsewhere = server.get("/apis/wardle.example.com/v1/namespaces/ns/flunders/f").await;
    assert_eq!(elsewhere.status, 404);
}

#[tokio::test]
async fn a_list_is_in_the_version_and_its_pages_go_on_in_it() {
    let server = server().await;
    for name in ["a", "b", "c"] {
        create(&server, name, json!({"reference": name})).await;
    }
    let first = server.get(&format!("{BETA}?limit=2")).await.expect(200);
    assert_eq!((first["kind"].as_str(), names(&first)), (Some("FlunderList"), vec!["a", "b"]));
    assert_eq!(first["apiVersion"], "wardle.example.com/v1beta1");
    assert_eq!(first["items"][1]["spec"]["flunderReference"], "b");
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    let token = first["metadata"]["continue"].as_str().unwrap();
    // The token is of the storage below: it does not matter in which version the list goes on.
    for collection in [ALPHA, BETA] {
        let rest = server.get(&format!("{collection}?limit=2&continue={token}")).await.expect(200);
        assert_eq!((names(&rest), version(&rest)), (vec!["c"], version(&first)));
    }
}

#[tokio::test]
async fn field_selectors_are_those_of_the_version() {
    let server = server().await;
    create(&server, "a", json!({"reference": "x", "referenceType": "Fischer"})).await;
    create(&server, "b", json!({"reference": "x"})).await;
    create(&server, "c", json!({"reference": "y", "referenceType": "Fischer"})).await;
    let list = async |collection: &str, selector: &str| {
        let list = server.get(&format!("{collection}?fieldSelector={selector}")).await;
        (list.status, list.json())
    };
    let selected = async |collection, selector| {
        let (status, list) = list(collection, selector).await;
        assert_eq!(status, 200, "{list}");
        names(&list).join(" ")
    };
    assert_eq!(selected(ALPHA, "spec.reference=x").await, "a b");
    assert_eq!(selected(BETA, "spec.fischerReference=x").await, "a");
    assert_eq!(selected(BETA, "spec.fischerReference!=x").await, "b c");
    assert_eq!(selected(BETA, "spec.flunderReference=x,metadata.name=b").await, "b");
    let labelled = server.get(&format!("{BETA}?labelSelector=name+in+(a,c)")).await.expect(200);
    assert_eq!(names(&labelled), ["a", "c"]);
    let (status, error) = list(BETA, "spec.reference=x").await;
    assert_eq!(status, 400);
    assert_eq!(
        error["message"],
        r#""spec.reference" is not a known field selector: only "metadata.name", "metadata.namespace", "spec.flunderReference", "spec.fischerReference""#
    );
}

#[tokio::test]
async fn a_table_has_the_columns_of_the_version() {
    let server = server().await;
    create(&server, "a", json!({"reference": "x", "referenceType": "Fischer"})).await;
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = async |uri| server.send("GET", uri, &accept, "").await.expect(200);
    assert_eq!(table(BETA).await["rows"][0]["cells"], json!(["a", "", "x"]));
    let columns = table(ALPHA).await["columnDefinitions"].as_array().unwrap().len();
    assert_eq!(columns, 2);
}

#[tokio::test]
async fn a_watch_tells_changes_of_either_version_in_its_own() {
    let server = server().await;
    create(&server, "a", json!({"reference": "x"})).await;
    let mut watch = Watch::of(&server, &format!("{BETA}?watch=1"), "application/json").await;
    let added = watch.next().await.unwrap();
    assert_eq!(
        (&added["type"], &added["object"]["spec"]["flunderReference"]),
        (&json!("ADDED"), &json!("x"))
    );
    let merged = server.merge(&format!("{ALPHA}/a"), &json!({"spec": {"reference": "y"}})).await.expect(200);
    let modified = watch.next().await.unwrap();
    assert_eq!(modified["object"], server.get(&format!("{BETA}/a")).await.expect(200));
    assert_eq!(modified["object"]["spec"]["flunderReference"], "y");
    assert_eq!(version(&modified["object"]), version(&merged));
    let made = server.post(BETA, &beta(json!({"metadata": {"name": "b"}}))).await.expect(201);
    assert_eq!(watch.next().await.unwrap(), json!({"type": "ADDED", "object": made}));
    server.delete(&format!("{ALPHA}/a")).await.expect(200);
    let deleted = watch.next().await.unwrap();
    let object = &deleted["object"];
    assert_eq!((&deleted["type"], &object["spec"]["flunderReference"]), (&json!("DELETED"), &json!("y")));
    assert_eq!(object["apiVersion"], "wardle.example.com/v1beta1");
}

#[tokio::test]
async fn a_watch_resumes_in_the_other_version_and_selects_in_its_own() {
    let server = server().await;
    let start = create(&server, "a", json!({"reference": "x"})).await;
    let (at, selector) = (version(&start).as_str().unwrap(), "fieldSelector=spec.fischerReference%3Dx");
    let query = format!("watch=1&resourceVersion={at}&{selector}&allowWatchBookmarks=true");
    let mut watch = Watch::of(&server, &format!("{BETA}?{query}"), "application/json").await;
    let fischer = json!({"spec": {"referenceType": "Fischer"}});
    server.merge(&format!("{ALPHA}/a"), &fischer).await.expect(200);
    let entered = watch.next().await.unwrap();
    assert_eq!(entered["type"], "ADDED");
    assert_eq!(entered["object"]["spec"]["fischerReference"], "x");
    let left = server.merge(&format!("{ALPHA}/a"), &json!({"spec": {"reference": "y"}})).await.expect(200);
    let exited = watch.next().await.unwrap();
    // The last state in the selection, at the version of the change.
    assert_eq!(exited["type"], "DELETED");
    assert_eq!(exited["object"]["spec"]["fischerReference"], "x");
    assert_eq!(version(&exited["object"]), version(&left));
}

#[tokio::test]
async fn initial_events_are_in_the_version_and_end_with_a_bookmark() {
    let server = server().await;
    for name in ["a", "b"] {
        create(&server, name, json!({"reference": name})).await;
    }
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Watch::of(&server, &format!("{BETA}?{query}"), "application/json").await;
    for name in ["a", "b"] {
        assert_eq!(watch.next().await.unwrap()["object"]["spec"]["flunderReference"], name);
    }
    let end = watch.next().await.unwrap();
    assert_eq!(end["type"], "BOOKMARK");
    assert_eq!(end["object"]["apiVersion"], "wardle.example.com/v1beta1");
    assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test]
async fn an_object_that_cannot_be_converted_fails_the_reads_of_one_version_and_is_named() {
    let server = server().await;
    create(&server, "a", json!({"reference": "x"})).await;
    let mut open = Watch::of(&server, &format!("{BETA}?watch=1"), "application/json").await;
    assert_eq!(open.next().await.unwrap()["object"]["metadata"]["name"], "a");
    let mut stored = Watch::of(&server, &format!("{ALPHA}?watch=1"), "application/json").await;
    assert_eq!(stored.next().await.unwrap()["object"]["metadata"]["name"], "a");
    create(&server, "b", json!({"reference": "unreadable"})).await;

    let why = "Internal error occurred: \"ns/b\": cannot convert Flunder from wardle.example.com/v1alpha1 to \
               wardle.example.com/v1beta1: spec.reference: there is no such reference";
    assert_eq!(server.get(&format!("{BETA}/b")).await.expect(500)["message"], why);
    assert_eq!(server.get(BETA).await.expect(500)["message"], why);
    let mut anew = Watch::of(&server, &format!("{BETA}?watch=1"), "application/json").await;
    assert_eq!(anew.next().await.unwrap()["object"]["metadata"]["name"], "a");
    for watch in [&mut open, &mut anew] {
        let failed = watch.next().await.unwrap();
        assert_eq!((&failed["type"], &failed["object"]["message"]), (&json!("ERROR"), &json!(why)));
        assert!(watch.next().await.is_none(), "the watch has ended");
    }
    // Other objects, and readers of the storage version, are not concerned.
    server.get(&format!("{BETA}/a")).await.expect(200);
    assert_eq!(names(&server.get(ALPHA).await.expect(200)), ["a", "b"]);
    assert_eq!(stored.next().await.unwrap()["object"]["metadata"]["name"], "b");

    assert_eq!(server.delete(&format!("{BETA}/b")).await.expect(500)["message"], why);
    server.delete(&format!("{ALPHA}/b")).await.expect(200);
    assert_eq!(names(&server.get(BETA).await.expect(200)), ["a"]);
}
