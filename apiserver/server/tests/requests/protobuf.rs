//! Protobuf on the wire, read back with the machinery and with a reader of its own for the list and watch types.

use axum::body::Body;
use drydock_machinery::Object;
use drydock_machinery::kind::Kind;
use drydock_machinery::protobuf::{Envelope, decode, encode};
use drydock_serving::clock::testing::time_lapse;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::fixture::{GADGETS, Server, gadget};
use crate::gadget::Gadget;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Length-delimited and varint fields of a message.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => varint(&mut bytes).to_string().into_bytes(),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                value.to_vec()
            }
            other => panic!("wire type {other}"),
        };
        out.push((key >> 3, value));
    }
    out
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
        shift += 7;
    }
}

fn all(message: &[u8], number: u64) -> Vec<Vec<u8>> {
    fields(message).into_iter().filter(|(n, _)| *n == number).map(|(_, v)| v).collect()
}

fn read(body: &[u8]) -> Value {
    decode(body, Gadget::namespaced().schema()).unwrap().into_value()
}

fn written(object: Value) -> Vec<u8> {
    let Value::Object(map) = object else { panic!("an object") };
    encode(&Object::from(map), Gadget::namespaced().schema()).to_vec()
}

#[tokio::test]
async fn an_object_goes_both_ways() {
    let server = Server::start().await;
    let headers = [("content-type", PROTOBUF), ("accept", PROTOBUF), ("user-agent", "go/1")];
    let parts = json!({"spec": {"parts": [{"name": "p", "count": 2}]}, "metadata": {"labels": {"a": "b"}}});
    let made = server.send_bytes("POST", GADGETS, &headers, written(gadget("a", parts))).await;
    assert_eq!((made.status, made.header("content-type")), (201, vec![PROTOBUF.to_owned()]));
    let made = read(&made.body);
    assert_eq!(made["spec"], json!({"size": 1, "color": "red", "parts": [{"name": "p", "count": 2}]}));
    assert_eq!(made["metadata"], server.get(&format!("{GADGETS}/a")).await.expect(200)["metadata"]);
    let mut changed = made.clone();
    changed["spec"]["size"] = json!(7);
    let put = server.send_bytes("PUT", &format!("{GADGETS}/a"), &headers, written(changed)).await;
    assert_eq!((put.status, &read(&put.body)["spec"]["size"]), (200, &json!(7)));
}

#[tokio::test]
async fn a_list_is_an_envelope_of_bare_items() {
    let server = Server::start().await;
    for name in ["a", "b", "c"] {
        server.gadget(name, json!({})).await;
    }
    let answer = server.send("GET", &format!("{GADGETS}?limit=2"), &[("accept", PROTOBUF)], "").await;
    let envelope = Envelope::open(&answer.body).unwrap();
    assert_eq!((envelope.api_version.as_str(), envelope.kind.as_str()), ("test.io/v1", "GadgetList"));
    assert_eq!(all(envelope.raw, 2).len(), 2);
    let meta = &all(envelope.raw, 1)[0];
    assert!(!all(meta, 3)[0].is_empty());
    assert_eq!(all(meta, 4), [b"1"]);
}

#[tokio::test]
async fn metadata_alone_is_what_the_garbage_collector_reads() {
    let server = Server::start().await;
    let made = server.gadget("a", json!({})).await;
    let accept = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json");
    let answer = server.send("GET", GADGETS, &[("accept", &accept)], "").await;
    let envelope = Envelope::open(&answer.body).unwrap();
    assert_eq!(
        (envelope.api_version.as_str(), envelope.kind.as_str()),
        ("meta.k8s.io/v1", "PartialObjectMetadataList")
    );
    let meta = &all(&all(envelope.raw, 2)[0], 1)[0];
    assert_eq!(all(meta, 1), [b"a"]);
    assert_eq!(all(meta, 5)[0], made["metadata"]["uid"].as_str().unwrap().as_bytes());
}

#[tokio::test]
async fn a_watch_is_frames_of_bare_events() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    let query = "watch=1&allowWatchBookmarks=true&timeoutSeconds=60";
    let accept = [("accept", PROTOBUF)];
    let response = server.raw("GET", &format!("{GADGETS}?{query}"), &accept, Body::empty()).await;
    assert_eq!(response.headers()["content-type"], format!("{PROTOBUF};stream=watch"));
    // The end of the watch, and a bookmark two seconds before it.
    let body = time_lapse(response.into_body().collect()).await.unwrap().to_bytes();
    let (mut rest, mut events) = (&body[..], Vec::new());
    while !rest.is_empty() {
        let length = usize::try_from(u32::from_be_bytes(rest[..4].try_into().unwrap())).unwrap();
        let event = &rest[4..4 + length];
        let object = read(&all(&all(event, 2)[0], 1)[0]);
        events.push((String::from_utf8(all(event, 1)[0].clone()).unwrap(), object));
        rest = &rest[4 + length..];
    }
    assert_eq!((events[0].0.as_str(), &events[0].1["metadata"]["name"]), ("ADDED", &json!("a")));
    let end = &events[1];
    assert_eq!(end.0, "BOOKMARK");
    assert_eq!(end.1["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
}

#[tokio::test]
async fn errors_and_successes_are_statuses() {
    let server = Server::start().await;
    let missing = server.send("GET", &format!("{GADGETS}/a"), &[("accept", PROTOBUF)], "").await;
    let envelope = Envelope::open(&missing.body).unwrap();
    assert_eq!((envelope.api_version.as_str(), envelope.kind.as_str()), ("v1", "Status"));
    assert_eq!(
        (all(envelope.raw, 4), all(envelope.raw, 6)),
        (vec![b"NotFound".to_vec()], vec![b"404".to_vec()])
    );
    for garbage in ["", "k8s", "k8s\0\u{12}\u{7f}", "k8s\0\u{12}\u{4}\u{12}\u{9}aa"] {
        let headers = [("content-type", PROTOBUF)];
        assert_eq!(server.send("POST", GADGETS, &headers, garbage).await.status, 400, "{garbage:?}");
    }
}

#[tokio::test]
async fn delete_options_are_read() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    // DeleteOptions{preconditions: {uid: "other"}}
    let raw = [&[0x12, 7, 0x0a, 5][..], b"other"].concat();
    let body = Envelope::seal("v1", "DeleteOptions", &raw).to_vec();
    let headers = [("content-type", PROTOBUF)];
    let answer = server.send_bytes("DELETE", &format!("{GADGETS}/a"), &headers, body).await;
    assert_eq!(answer.expect(409)["reason"], "Conflict");
    let body = Envelope::seal("v1", "DeleteOptions", &[0x22, 10]).to_vec();
    let cut = server.send_bytes("DELETE", &format!("{GADGETS}/a"), &headers, body).await;
    assert_eq!(cut.status, 400);
}
