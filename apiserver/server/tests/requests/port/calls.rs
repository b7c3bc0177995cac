//! gRPC calls by strangers, and by users with and without the right to them.

use std::time::Duration;

use bytes::Bytes;
use drydock_serving::clock::testing::pass;
use serde_json::{Value, json};

use super::calls_fixture::{Client, GET, LATER, PANIC, WATCH, frame, mounted};
use super::fixture::{Port, Settings, code};

/// gRPC's codes.
const INVALID_ARGUMENT: u16 = 3;
const DEADLINE_EXCEEDED: u16 = 4;
const NOT_FOUND: u16 = 5;
const PERMISSION_DENIED: u16 = 7;
const RESOURCE_EXHAUSTED: u16 = 8;
const UNIMPLEMENTED: u16 = 12;
const INTERNAL: u16 = 13;
const UNAVAILABLE: u16 = 14;
const UNAUTHENTICATED: u16 = 16;

const GOOD: (&str, &str) = ("authorization", "Bearer good");
const CHECK: &str = "/grpc.health.v1.Health/Check";
const HEALTH_WATCH: &str = "/grpc.health.v1.Health/Watch";
const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const REFLECTION_ALPHA: &str = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

fn only_ns(spec: &Value) -> bool {
    spec["resourceAttributes"]["namespace"] == "ns"
}

fn in_namespace(asked: &Value) -> Value {
    let of = &asked["resourceAttributes"];
    json!([of["verb"], of["group"], of["version"], of["resource"], of["namespace"], of["name"]])
}

#[tokio::test]
async fn a_call_is_authorized_as_the_get_or_watch_of_all_that_it_reads() {
    let port = Port::open(mounted()).await;
    let client = Client::connect(&port, None).await;
    let mut one = client.call(GET, "ns").await;
    assert_eq!(one.message().await.unwrap(), frame(b"tokened"));
    assert_eq!(one.end().await.0, 0);
    let asked: Vec<Value> = port.asked().iter().map(in_namespace).collect();
    assert_eq!(asked, [json!(["get", "test.io", "v1", "gadgets", "ns", "a"])]);
    let mut all = client.call(WATCH, "").await;
    assert_eq!(all.message().await.unwrap(), frame(b"tokened"));
    let asked: Vec<Value> = port.asked().iter().map(in_namespace).collect();
    let of = |resource: &str| json!(["watch", "test.io", "v1", resource, null, null]);
    assert_eq!(asked, [of("gadgets"), of("clustergadgets")]);
}

#[tokio::test]
async fn rights_in_a_namespace_give_a_stream_of_that_namespace() {
    let port = Port::open(Settings { rule: only_ns, ..mounted() }).await;
    let client = Client::connect(&port, None).await;
    assert!(client.call(WATCH, "ns").await.message().await.is_some());
    for message in ["", "other"] {
        let (code, why) = client.ends(WATCH, frame(message.as_bytes()), &[GOOD]).await;
        assert_eq!(code, PERMISSION_DENIED);
        assert!(why.contains("cannot watch resource"), "{why}");
    }
}

#[tokio::test]
async fn a_stranger_is_unauthenticated() {
    let port = Port::open(Settings { rule: |_| false, ..mounted() }).await;
    for path in [GET, WATCH, HEALTH_WATCH] {
        for credentials in [&[][..], &[("authorization", "Bearer junk")]] {
            // A connection without a user ends with each answer.
            let client = Client::connect(&port, None).await;
            let (code, _) = client.ends(path, frame(b""), credentials).await;
            assert_eq!(code, UNAUTHENTICATED, "{path} {credentials:?}");
        }
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_call_has_a_code_of_grpc() {
    let port = Port::open(mounted()).await;
    let client = Client::connect(&port, None).await;
    let long = Bytes::from(vec![0; 70_000]);
    for (path, body, expected) in [
        ("/test.Gadgets/Unknown", frame(b""), UNIMPLEMENTED),
        ("/other.Service/Get", frame(b""), UNIMPLEMENTED),
        (GET, frame(b"\xff"), INVALID_ARGUMENT),
        (GET, frame(b"a/b"), INVALID_ARGUMENT),
        (GET, Bytes::new(), INVALID_ARGUMENT),
        (GET, Bytes::from_static(b"\x00\x00\x00\x00\x09half"), INVALID_ARGUMENT),
        (GET, [frame(b"ns"), frame(b"ns")].concat().into(), INVALID_ARGUMENT),
        (GET, frame(&long), RESOURCE_EXHAUSTED),
        (PANIC, frame(b"ns"), INTERNAL),
    ] {
        let (code, why) = client.ends(path, body, &[GOOD]).await;
        assert_eq!(code, expected, "{path}: {why}");
        assert!(!why.is_empty(), "{path}");
    }
    let late = [GOOD, ("grpc-timeout", "60S")];
    let mut late = client.send(WATCH, frame(b"ns"), &late).await;
    assert!(late.message().await.is_some());
    pass(Duration::from_secs(60)).await;
    assert_eq!(late.end().await.0, DEADLINE_EXCEEDED);
    let wrong = [GOOD, ("grpc-timeout", "soon")];
    assert_eq!(client.ends(WATCH, frame(b"ns"), &wrong).await.0, INVALID_ARGUMENT);
    assert!(client.call(WATCH, "ns").await.message().await.is_some(), "the connection goes on");
}

#[tokio::test]
async fn other_requests_are_answered_as_before() {
    let port = Port::open(mounted()).await;
    for media_type in ["application/grpc", "application/grpc-web", "application/json"] {
        let headers = [GOOD, ("content-type", media_type)];
        let answer = port.send(None, &format!("POST {GET}"), &headers).await;
        assert!(code(&answer) == 404 && answer.contains("404 page not found"), "{answer}");
    }
}

/// Each call sent an empty frame before its trailers, and a client with h2 closes a connection on which 100 have come.
#[tokio::test]
async fn a_connection_has_any_number_of_calls() {
    let port = Port::open(mounted()).await;
    let client = Client::connect(&port, None).await;
    for _ in 0..300 {
        assert_eq!(client.ends(GET, frame(b"ns"), &[GOOD]).await.0, 0);
    }
}

#[tokio::test]
async fn a_stream_outlives_the_request_timeout() {
    let port = Port::open(mounted()).await;
    let client = Client::connect(&port, None).await;
    let mut stream = client.call(LATER, "ns").await;
    assert_eq!(stream.message().await.unwrap(), frame(b"tokened"));
    pass(2 * Settings::default().request_timeout).await;
    assert_eq!(stream.message().await.unwrap(), frame(b"two"));
}

#[tokio::test]
async fn a_shutdown_ends_streams_as_unavailable() {
    let port = Port::open(mounted()).await;
    let client = Client::connect(&port, None).await;
    let mut stream = client.call(WATCH, "ns").await;
    assert!(stream.message().await.is_some());
    port.stop.cancel();
    assert_eq!(stream.end().await.0, UNAVAILABLE);
}

#[tokio::test]
async fn a_caller_acts_as_whom_it_may() {
    let port = Port::open(mounted()).await;
    let client = Client::connect(&port, None).await;
    let other = [GOOD, ("impersonate-user", "jane")];
    let mut stream = client.send(WATCH, frame(b"ns"), &other).await;
    assert_eq!(stream.message().await.unwrap(), frame(b"jane"));
    let asked = port.asked();
    let last = asked.last().unwrap();
    assert_eq!((&last["user"], &in_namespace(last)[0]), (&json!("jane"), &json!("watch")));
}

#[tokio::test]
async fn a_health_check_asks_nobody_and_a_watch_of_it_is_for_users() {
    let port = Port::open(Settings { rule: |_| false, ..mounted() }).await;
    port.host_answers.send(false).unwrap();
    for service in [&b""[..], b"\x0a\x0ctest.Gadgets"] {
        let mut check = Client::connect(&port, None).await.send(CHECK, frame(service), &[]).await;
        assert_eq!(check.message().await.unwrap(), frame(b"\x08\x01"), "SERVING");
        assert_eq!(check.end().await.0, 0);
    }
    for (message, code) in [(&b"\x0a\x01x"[..], NOT_FOUND), (&[0; 2000], RESOURCE_EXHAUSTED)] {
        let client = Client::connect(&port, None).await;
        assert_eq!(client.ends(CHECK, frame(message), &[]).await.0, code);
    }
    port.host_answers.send(true).unwrap();
    let client = Client::connect(&port, None).await;
    let mut watch = client.call(HEALTH_WATCH, "").await;
    assert_eq!(watch.message().await.unwrap(), frame(b"\x08\x01"));
}

/// A request to list the services, and one more on the same stream.
#[tokio::test]
async fn reflection_is_for_users() {
    let port = Port::open(Settings { rule: |_| false, ..mounted() }).await;
    for path in [REFLECTION, REFLECTION_ALPHA] {
        let client = Client::connect(&port, None).await;
        let list = frame(b"\x3a\x00");
        let two: Bytes = [list.clone(), list.clone()].concat().into();
        let mut stream = client.send(path, two, &[GOOD]).await;
        for _ in 0..2 {
            let answer = stream.message().await.unwrap();
            assert!(String::from_utf8_lossy(&answer).contains("grpc.health.v1.Health"), "{answer:?}");
        }
        assert_eq!(stream.end().await.0, 0);
        assert_eq!(client.ends(path, list, &[]).await.0, UNAUTHENTICATED, "{path}");
    }
}

/// The reader of a client's messages does not notice that the answer was dropped. If the messages did not end, it
/// would wait for the next one as long as the connection is open, and so would thousands that no limit counts.
#[tokio::test]
async fn a_reflection_stream_that_has_ended_reads_no_more_messages() {
    let port = Port::open(mounted()).await;
    let client = Client::connect(&port, None).await;
    let soon = [GOOD, ("grpc-timeout", "60S")];
    let (mut messages, mut answer) = client.open(REFLECTION, frame(b"\x3a\x00"), &soon).await;
    assert!(answer.message().await.is_some());
    pass(Duration::from_secs(60)).await;
    assert_eq!(answer.end().await.0, DEADLINE_EXCEEDED);
    let reset = std::future::poll_fn(|context| messages.poll_reset(context));
    assert_eq!(reset.await.unwrap(), h2::Reason::NO_ERROR);
}

#[tokio::test]
async fn a_reflection_stream_reads_so_many_bytes_of_messages() {
    let port = Port::open(mounted()).await;
    let client = Client::connect(&port, None).await;
    let many: Bytes = frame(b"\x3a\x00").repeat((300 << 10) / 7).into();
    let (_messages, mut answer) = client.open(REFLECTION, many, &[GOOD]).await;
    answer.end().await;
}
