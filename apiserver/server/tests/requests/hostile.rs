//! Attacks with bodies and selectors, as any client may send them.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::fixture::Server;

const GADGETS: &str = "/apis/test.io/v1/namespaces/ns/gadgets";

fn gadget(name: &str) -> Value {
    json!({"apiVersion": "test.io/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": {"size": 1}})
}

/// Bodies of one user that never end take half of what there is for bodies: others are served as before.
#[tokio::test]
async fn a_user_who_never_ends_a_body_leaves_room_for_others() {
    let server = Arc::new(Server::start().await);
    let mut open = Vec::new();
    for _ in 0..100 {
        let chunks = stream::iter(vec![Ok::<_, Infallible>(vec![b' '; 1 << 19]); 5]).chain(stream::pending());
        let server = server.clone();
        let headers = [("x-user", "slow")];
        open.push(tokio::spawn(async move {
            server.raw("POST", GADGETS, &headers, Body::from_stream(chunks)).await.status()
        }));
    }
    for n in 0..20 {
        server.post(GADGETS, &gadget(&format!("a{n}"))).await.expect(201);
    }
    let large = json!({"metadata": {"annotations": {"a": "x".repeat(200_000)}}}).to_string();
    let merge = [("content-type", "application/merge-patch+json")];
    server.send("PATCH", &format!("{GADGETS}/a0"), &merge, &large).await.expect(200);
    open.iter().for_each(tokio::task::JoinHandle::abort);
}

/// The worker serves others while a large body is decoded: with one worker, a request that is sent meanwhile is
/// answered first.
#[tokio::test]
async fn a_large_body_does_not_hold_up_the_worker() {
    let server = Server::start().await;
    server.post(GADGETS, &gadget("a")).await.expect(201);
    let twice = vec![r#""a":1"#; 100_000].join(",");
    let patch = format!(r#"{{"{}":{{{twice}}}}}"#, "k".repeat(500_000));
    let merge = [("content-type", "application/merge-patch+json")];
    let uri = format!("{GADGETS}/a");
    let attack = server.send("PATCH", &uri, &merge, &patch);
    let probe = async { server.get(&uri).await.expect(200) };
    tokio::pin!(attack);
    tokio::select! {
        biased;
        _ = &mut attack => panic!("the patch was decoded before anybody else was served"),
        _ = probe => {}
    }
    attack.await.expect(200);
}

#[tokio::test]
async fn bodies_of_small_maps_are_refused_whatever_carries_them() {
    let server = Server::start().await;
    server.post(GADGETS, &gadget("a")).await.expect(201);
    let small = vec![r#"{"a":1}"#; 300_000].join(",");
    let (uri, spec) = (format!("{GADGETS}/a"), format!(r#"{{"spec":{{"parts":[{small}]}}}}"#));
    let object = spec.replacen('{', r#"{"metadata":{"name":"a"},"#, 1);
    let operations = format!(r#"[{{"op":"add","path":"/spec/parts","value":[{small}]}}]"#);
    for (method, media_type, body) in [
        ("PUT", "application/json", &object.replace("\"a\":1", "\"name\":\"\"")),
        ("PATCH", "application/merge-patch+json", &spec),
        ("PATCH", "application/json-patch+json", &operations),
        ("PATCH", "application/strategic-merge-patch+json", &spec),
        ("PATCH", "application/apply-patch+yaml", &object),
        ("DELETE", "application/json", &spec),
    ] {
        let uri = if media_type.contains("apply") { format!("{uri}?fieldManager=m") } else { uri.clone() };
        let answer = server.send(method, &uri, &[("content-type", media_type)], body).await;
        let status = answer.expect(413);
        assert_eq!(status["reason"], "RequestEntityTooLarge", "{method} {media_type}");
    }
    server.get(&uri).await.expect(200);
}

/// Each term is evaluated for every object and every event.
#[tokio::test]
async fn a_selector_as_long_as_a_url_is_refused() {
    let server = Server::start().await;
    for (name, term) in [("labelSelector", "!a"), ("fieldSelector", "metadata.name!=a")] {
        let selector = vec![term; 101].join(",").replace('=', "%3D");
        let status = server.get(&format!("{GADGETS}?{name}={selector}")).await.expect(400);
        assert_eq!(status["message"], "a selector may not have more than 100 terms");
    }
}
