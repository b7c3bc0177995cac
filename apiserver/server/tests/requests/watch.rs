//! Watches over HTTP: resuming, bookmarks, selectors, the end.

use std::time::Duration;

use axum::body::Body;
use drydock_serving::clock::testing::{StoppedClock, pass};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::fixture::{GADGETS, Server};

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Events of a watch, as they come.
pub struct Watch {
    body: Body,
    buffer: Vec<u8>,
}

impl Watch {
    async fn open(server: &Server, query: &str, accept: &str) -> Self {
        Self::of(server, &format!("{GADGETS}?watch=1&{query}"), accept).await
    }

    pub async fn of(server: &Server, uri: &str, accept: &str) -> Self {
        let response = server.raw("GET", uri, &[("accept", accept)], Body::empty()).await;
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), buffer: Vec::new() }
    }

    async fn json(server: &Server, query: &str) -> Self {
        Self::open(server, query, "application/json").await
    }

    /// The next event; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = tokio::time::timeout(LIMIT, self.body.frame());
            let frame = frame.await.expect("an event comes")?;
            self.buffer.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
    }

    async fn types(&mut self, count: usize) -> Vec<String> {
        let mut types = Vec::new();
        for _ in 0..count {
            let event = self.next().await.unwrap();
            types.push(format!(
                "{} {}",
                event["type"].as_str().unwrap(),
                event["object"]["metadata"]["name"]
            ));
        }
        types
    }
}

#[tokio::test]
async fn a_watch_resumes_after_its_version() {
    let server = Server::start().await;
    let made = server.gadget("a", json!({})).await;
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = Watch::json(&server, &format!("resourceVersion={version}")).await;
    server.merge(&format!("{GADGETS}/a"), &json!({"spec": {"size": 2}})).await.expect(200);
    server.delete(&format!("{GADGETS}/a")).await.expect(200);
    let modified = watch.next().await.unwrap();
    assert_eq!(
        (modified["type"].as_str(), &modified["object"]["spec"]["size"]),
        (Some("MODIFIED"), &json!(2))
    );
    assert_eq!(modified["object"]["kind"], "Gadget");
    let deleted = watch.next().await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    assert_ne!(
        deleted["object"]["metadata"]["resourceVersion"],
        modified["object"]["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn a_watch_list_ends_its_initial_events_with_a_bookmark() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    server.gadget("b", json!({})).await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Watch::json(&server, query).await;
    assert_eq!(watch.types(2).await, [r#"ADDED "a""#, r#"ADDED "b""#]);
    let end = watch.next().await.unwrap();
    assert_eq!(end["type"], "BOOKMARK");
    assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(end["object"]["kind"], "Gadget");
    assert!(end["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > 0);
}

#[tokio::test]
async fn a_watch_without_bookmarks_gets_none() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    let mut watch = Watch::json(&server, "").await;
    assert_eq!(watch.types(1).await, [r#"ADDED "a""#]);
    server.gadget("b", json!({})).await;
    assert_eq!(watch.types(1).await, [r#"ADDED "b""#]);
}

#[tokio::test]
async fn an_object_that_leaves_the_selection_is_deleted_for_the_watcher() {
    let server = Server::start().await;
    let made = server.gadget("a", json!({"metadata": {"labels": {"l": "x"}}})).await;
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = Watch::json(&server, &format!("labelSelector=l%3Dx&resourceVersion={version}")).await;
    for label in ["y", "x"] {
        server
            .merge(&format!("{GADGETS}/a"), &json!({"metadata": {"labels": {"l": label}}}))
            .await
            .expect(200);
    }
    let left = watch.next().await.unwrap();
    assert_eq!(
        (left["type"].as_str(), left["object"]["metadata"]["labels"]["l"].as_str()),
        (Some("DELETED"), Some("x"))
    );
    assert_eq!(watch.types(1).await, [r#"ADDED "a""#]);
}

#[tokio::test]
async fn a_version_that_is_gone_is_an_error_within_the_stream() {
    let server = Server::forgetful().await;
    for name in ["a", "b", "c"] {
        server.gadget(name, json!({})).await;
    }
    // A consistent read: the cache has seen it all, and forgotten what was first.
    server.get(GADGETS).await.expect(200);
    let newest = server.backend.current_revision().await.unwrap();
    server.backend.compact(newest).await.unwrap();
    let mut watch = Watch::json(&server, "resourceVersion=1").await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!((&event["object"]["code"], &event["object"]["reason"]), (&json!(410), &json!("Expired")));
    // The revision from which a watch can resume: that before the oldest change of the cache.
    assert_eq!(event["object"]["message"], format!("too old resource version: 1 ({})", newest.0 - 1));
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_watch_ends_when_its_time_is_over() {
    let server = Server::start().await;
    let mut watch = Watch::json(&server, "timeoutSeconds=600").await;
    pass(Duration::from_secs(600)).await;
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn shutdown_ends_watches_cleanly() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    let mut watch = Watch::json(&server, "").await;
    watch.next().await.unwrap();
    server.shutdown.cancel();
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn one_object_can_be_watched_by_name() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    server.gadget("b", json!({})).await;
    let mut watch = Watch::json(&server, "fieldSelector=metadata.name%3Db").await;
    assert_eq!(watch.types(1).await, [r#"ADDED "b""#]);
    server.merge(&format!("{GADGETS}/a"), &json!({"spec": {"size": 2}})).await.expect(200);
    server.merge(&format!("{GADGETS}/b"), &json!({"spec": {"size": 2}})).await.expect(200);
    assert_eq!(watch.types(1).await, [r#"MODIFIED "b""#]);
}

/// An object that comes into the selection is ADDED, and one that leaves it is DELETED, although no object was
/// created or deleted.
#[tokio::test]
async fn a_watch_by_a_field_of_the_kind_tells_who_comes_and_who_goes() {
    let server = Server::start().await;
    server.gadget("a", json!({"spec": {"color": "blue"}})).await;
    server.gadget("b", json!({})).await;
    let color = async |name: &str, color: &str| {
        server.merge(&format!("{GADGETS}/{name}"), &json!({"spec": {"color": color}})).await.expect(200)
    };
    let mut blue = Watch::json(&server, "fieldSelector=spec.color%3Dblue").await;
    let mut others = Watch::json(&server, "fieldSelector=spec.color!%3Dblue").await;
    assert_eq!(blue.types(1).await, [r#"ADDED "a""#]);
    assert_eq!(others.types(1).await, [r#"ADDED "b""#]);
    color("b", "blue").await;
    let left = color("a", "green").await;
    color("a", "red").await;
    color("b", "red").await;
    assert_eq!(blue.types(1).await, [r#"ADDED "b""#]);
    let gone = blue.next().await.unwrap();
    // As it was when it was last in the selection, at the version of the change that took it out.
    assert_eq!((&gone["type"], &gone["object"]["spec"]["color"]), (&json!("DELETED"), &json!("blue")));
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], left["metadata"]["resourceVersion"]);
    assert_eq!(blue.types(1).await, [r#"DELETED "b""#]);
    let seen = [r#"DELETED "b""#, r#"ADDED "a""#, r#"MODIFIED "a""#, r#"ADDED "b""#];
    assert_eq!(others.types(4).await, seen);
}

#[tokio::test]
async fn a_watched_table_has_columns_once() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    server.gadget("b", json!({})).await;
    let mut watch = Watch::open(&server, "", "application/json;as=Table;v=v1;g=meta.k8s.io").await;
    let first = watch.next().await.unwrap();
    assert_eq!(first["object"]["columnDefinitions"].as_array().unwrap().len(), 2);
    assert_eq!(first["object"]["rows"][0]["cells"], json!(["a", 1]));
    assert_eq!(watch.next().await.unwrap()["object"]["columnDefinitions"], Value::Null);
}

#[tokio::test]
async fn bad_watch_options_are_answered_before_the_stream() {
    let server = Server::start().await;
    for (query, status) in
        [("resourceVersion=x", 500), ("sendInitialEvents=true", 422), ("labelSelector=,", 400)]
    {
        assert_eq!(server.get(&format!("{GADGETS}?watch=1&{query}")).await.status, status, "{query}");
    }
    let yaml = server.send("GET", &format!("{GADGETS}?watch=1"), &[("accept", "application/yaml")], "").await;
    assert_eq!(yaml.status, 406);
}

#[tokio::test]
async fn a_bookmark_comes_before_the_end() {
    let server = Server::start().await;
    let made = server.gadget("a", json!({})).await;
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    let query = format!("resourceVersion={version}&allowWatchBookmarks=true&timeoutSeconds=30");
    // The cache has seen it.
    assert_eq!(server.get(GADGETS).await.status, 200);
    let clock = StoppedClock::stop();
    let mut watch = Watch::json(&server, &query).await;
    clock.advance(Duration::from_secs(28)).await;
    let bookmark = watch.next().await.unwrap();
    assert_eq!(
        (bookmark["type"].as_str(), &bookmark["object"]["metadata"]["resourceVersion"]),
        (Some("BOOKMARK"), &json!(version))
    );
    assert_eq!(bookmark["object"]["metadata"].get("annotations"), None);
    clock.advance(Duration::from_secs(2)).await;
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_dropped_watch_leaves_nothing_behind_and_others_go_on() {
    let server = Server::start().await;
    let mut kept = Watch::json(&server, "").await;
    drop(Watch::json(&server, "").await);
    server.gadget("a", json!({})).await;
    assert_eq!(kept.types(1).await, [r#"ADDED "a""#]);
}
