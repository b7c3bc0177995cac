//! Lists over HTTP: selectors, pages, versions.

use axum::body::Body;
use drydock_storage::backend::Revision;
use serde_json::{Value, json};

use crate::fixture::{GADGETS, Server, gadget};

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect()
}

async fn with_five() -> Server {
    five(Server::start().await).await
}

async fn five(server: Server) -> Server {
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "y"), ("e", "x")] {
        server.gadget(name, json!({"metadata": {"labels": {"l": label}}})).await;
    }
    server
}

#[tokio::test]
async fn items_of_a_list_carry_no_type_of_their_own() {
    let server = with_five().await;
    let list = server.get(GADGETS).await.expect(200);
    assert_eq!(
        (list["kind"].as_str(), list["apiVersion"].as_str()),
        (Some("GadgetList"), Some("test.io/v1"))
    );
    assert_eq!(names(&list), ["a", "b", "c", "d", "e"]);
    assert_eq!((list["items"][0].get("kind"), list["items"][0].get("apiVersion")), (None, None));
    assert_eq!(list["metadata"].get("remainingItemCount"), None);
    assert_eq!(server.get("/apis/test.io/v1/namespaces/none/gadgets").await.expect(200)["items"], json!([]));
}

/// Regression: all objects of such a list were read at once, however many there were, and were counted nowhere
/// before they were sent.
#[tokio::test]
async fn lists_of_a_version_that_is_not_in_memory_share_what_room_there_is() {
    const BYTES: usize = 20_000;
    let mut server = Server::forgetful().await;
    // One user alone gets half of three quarters of this.
    server.api = server.api.with_list_room(40 * BYTES / 3 * 4);
    let pad = "x".repeat(BYTES);
    for name in 0..12 {
        server.gadget(&format!("g{name}"), json!({"metadata": {"annotations": {"pad": pad}}})).await;
    }
    let past = server.get(GADGETS).await.json()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    for name in ["a", "b"] {
        server.gadget(name, json!({})).await;
    }
    // The cache has seen the last of them.
    assert_eq!(server.get(GADGETS).await.status, 200);
    let list = format!("{GADGETS}?resourceVersion={past}&resourceVersionMatch=Exact");
    let in_time = [("x-seconds", "1")];
    let unread = server.raw("GET", &list, &in_time, Body::empty()).await;
    assert_eq!(unread.status(), 200);
    let refused = server.send("GET", &list, &in_time, "").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, vec!["1".to_owned()]));
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("set a limit"), "{message}");
    assert_eq!(server.send("GET", &format!("{list}&limit=2"), &in_time, "").await.status, 200);
    // The list of another user is not refused, nor a list of what is in memory.
    assert_eq!(server.send("GET", &list, &[("x-user", "other"), in_time[0]], "").await.status, 200);
    assert_eq!(server.get(GADGETS).await.status, 200);
    drop(unread);
    assert_eq!(names(&server.get(&list).await.expect(200)).len(), 12);
}

#[tokio::test]
async fn selectors_select() {
    let server = with_five().await;
    server.post("/apis/test.io/v1/namespaces/other/gadgets", &gadget("a", json!({}))).await.expect(201);
    for (query, expected) in [
        ("labelSelector=l%3Dx", vec!["a", "c", "e"]),
        ("labelSelector=l+in+(y),l", vec!["b", "d"]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
        ("fieldSelector=metadata.name!%3Db", vec!["a", "c", "d", "e"]),
        ("fieldSelector=metadata.namespace%3Dother", vec![]),
    ] {
        let list = server.get(&format!("{GADGETS}?{query}")).await.expect(200);
        assert_eq!(names(&list), expected, "{query}");
    }
    let all = server.get("/apis/test.io/v1/gadgets?fieldSelector=metadata.name%3Da").await.expect(200);
    assert_eq!(names(&all), ["a", "a"]);
    let error = server.get(&format!("{GADGETS}?fieldSelector=spec.size%3D1")).await.expect(400);
    assert_eq!(
        error["message"],
        r#""spec.size" is not a known field selector: only "metadata.name", "metadata.namespace", "spec.color""#
    );
    assert_eq!(server.get(&format!("{GADGETS}?labelSelector=,")).await.status, 400);
}

#[tokio::test]
async fn a_field_that_the_kind_names_selects_lists_and_deletions() {
    let server = with_five().await;
    for name in ["b", "d"] {
        server.merge(&format!("{GADGETS}/{name}"), &json!({"spec": {"color": "blue"}})).await.expect(200);
    }
    for (query, expected) in [
        ("spec.color%3Dblue", vec!["b", "d"]),
        ("spec.color!%3Dblue", vec!["a", "c", "e"]),
        ("spec.color%3Dblue,metadata.name%3Dd", vec!["d"]),
        ("spec.color%3D", vec![]),
    ] {
        let list = server.get(&format!("{GADGETS}?fieldSelector={query}")).await.expect(200);
        assert_eq!(names(&list), expected, "{query}");
    }
    let paged = server.get(&format!("{GADGETS}?fieldSelector=spec.color%3Dblue&limit=1")).await.expect(200);
    assert_eq!(names(&paged), ["b"]);
    let refused = server.delete(&format!("{GADGETS}?fieldSelector=spec.colour%3Dblue")).await;
    assert_eq!(refused.status, 400);
    server.delete(&format!("{GADGETS}?fieldSelector=spec.color%3Dblue")).await.expect(200);
    assert_eq!(names(&server.get(GADGETS).await.expect(200)), ["a", "c", "e"]);
}

#[tokio::test]
async fn a_selector_of_ten_thousand_terms_is_refused_in_words() {
    let server = with_five().await;
    let labels: Vec<String> = (0..10_000).map(|number| format!("l{number}")).collect();
    let fields = vec!["metadata.name!=y"; 3_500];
    for query in [
        format!("labelSelector={}", labels.join(",")),
        format!("fieldSelector={}", fields.join(",")),
        format!("labelSelector={}&watch=true", labels.join(",")),
    ] {
        let refused = server.get(&format!("{GADGETS}?{query}")).await.expect(400);
        assert_eq!(refused["message"], "a selector may not have more than 100 terms");
    }
    let values = format!("{GADGETS}?labelSelector=l+in+(x,{})", labels.join(","));
    assert_eq!(names(&server.get(&values).await.expect(200)), ["a", "c", "e"]);
    let deleted = server.delete(&format!("{GADGETS}?labelSelector={}", labels.join(","))).await;
    assert_eq!(deleted.status, 400);
    assert_eq!(names(&server.get(GADGETS).await.expect(200)).len(), 5, "nothing was deleted");
}

#[tokio::test]
async fn pages_are_of_one_state() {
    let server = with_five().await;
    let first = server.get(&format!("{GADGETS}?limit=2")).await.expect(200);
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(3)));
    server.delete(&format!("{GADGETS}/d")).await.expect(200);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = server.get(&format!("{GADGETS}?limit=1&continue={token}&resourceVersion=0")).await.expect(200);
    assert_eq!((names(&rest), rest["metadata"].get("continue")), (vec!["c", "d", "e"], None));
    let second = server.get(&format!("{GADGETS}?limit=2&continue={token}")).await.expect(200);
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let third = server.get(&format!("{GADGETS}?limit=2&continue={token}")).await.expect(200);
    assert_eq!((names(&third), third["metadata"].get("continue")), (vec!["e"], None));
    let selected = server.get(&format!("{GADGETS}?limit=1&labelSelector=l%3Dx")).await.expect(200);
    assert_eq!(selected["metadata"].get("remainingItemCount"), None);
}

#[tokio::test]
async fn an_expired_page_says_where_to_go_on() {
    let server = five(Server::forgetful().await).await;
    let token = r#"{"v":"meta.k8s.io/v1","rv":1,"start":"ns/b\u0000"}"#;
    // A consistent read: the cache has seen it all, and forgotten what was first.
    server.get(GADGETS).await.expect(200);
    server.backend.compact(Revision(4)).await.unwrap();
    let token = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, token);
    let error = server.get(&format!("{GADGETS}?limit=2&continue={token}")).await.expect(410);
    assert_eq!(error["reason"], "Expired");
    let fresh = error["metadata"]["continue"].as_str().unwrap();
    let rest = server.get(&format!("{GADGETS}?limit=9&continue={fresh}")).await.expect(200);
    assert_eq!(names(&rest), ["c", "d", "e"]);
}

#[tokio::test]
async fn versions_bound_what_a_list_may_show() {
    let server = with_five().await;
    let now: u64 = server.get(GADGETS).await.expect(200)["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let old = server.get(&format!("{GADGETS}?resourceVersion={}&resourceVersionMatch=Exact", now - 1)).await;
    assert_eq!(names(&old.expect(200)), ["a", "b", "c", "d"]);
    let future = server.get(&format!("{GADGETS}?resourceVersion={}", now + 1000)).await.expect(504);
    assert_eq!(future["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(server.get(&format!("{GADGETS}?resourceVersion=x")).await.status, 400);
    assert_eq!(
        server.get(&format!("{GADGETS}?resourceVersionMatch=Exact")).await.expect(422)["details"]["kind"],
        "ListOptions"
    );
}

#[tokio::test]
async fn a_table_of_a_list_has_rows() {
    let server = with_five().await;
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")];
    let table = server.send("GET", &format!("{GADGETS}?limit=2"), &accept, "").await.expect(200);
    assert_eq!(table["rows"].as_array().unwrap().len(), 2);
    assert_eq!(table["metadata"]["remainingItemCount"], 3);
    let bare = server.send("GET", &format!("{GADGETS}?includeObject=None"), &accept, "").await.expect(200);
    assert_eq!(bare["rows"][0]["object"], Value::Null);
}
