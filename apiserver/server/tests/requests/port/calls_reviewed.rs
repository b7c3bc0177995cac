//! Rights that are taken away while a stream is open.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

use drydock_server::responses::{Limits, OpenResponses};
use drydock_serving::clock::testing::pass;
use futures::FutureExt;
use serde_json::Value;

use super::calls_fixture::{Answer, Client, WATCH, frame, mounted};
use super::certificates::Authority;
use super::fixture::{Port, Settings, trust};

const PERMISSION_DENIED: u16 = 7;
const UNAUTHENTICATED: u16 = 16;
/// A call that asks nobody.
const CHECK: &str = "/grpc.health.v1.Health/Check";
const HOUR: Duration = Duration::from_secs(3600);
/// Answers of the host are remembered for 10 s, and asked for again then.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Far more than a review takes.
const REVIEWED: Duration = Duration::from_secs(60);

async fn open(client: &Client, namespace: &str) -> Answer {
    let mut stream = client.call(WATCH, namespace).await;
    assert!(stream.message().await.is_some());
    stream
}

async fn end(stream: &mut Answer) -> (u16, String) {
    tokio::time::timeout(REVIEWED, stream.end()).await.expect("the stream is reviewed and ended")
}

static MAY_READ_NS: AtomicBool = AtomicBool::new(true);

fn rule(spec: &Value) -> bool {
    spec["resourceAttributes"]["namespace"] != "ns" || MAY_READ_NS.load(SeqCst)
}

#[tokio::test]
async fn a_right_that_is_taken_away_ends_its_streams_by_one_review() {
    let port = Port::open(Settings { rule, ..mounted() }).await;
    let client = Client::connect(&port, None).await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(open(&client, "ns").await);
    }
    let mut other = open(&client, "other").await;
    assert_eq!(port.asked().len(), 2);
    MAY_READ_NS.store(false, SeqCst);
    pass(REMEMBERED).await;
    for stream in &mut streams {
        let (code, why) = end(stream).await;
        assert_eq!(code, PERMISSION_DENIED);
        assert!(why.contains("cannot watch resource"), "{why}");
    }
    let asked = port.asked();
    let again = asked.iter().filter(|spec| spec["resourceAttributes"]["namespace"] == "ns").count();
    assert_eq!(again, 1, "{asked:?}");
    assert_eq!(port.tokens(), 2, "at the beginning and once again");
    let mut more = Client::connect(&port, None).await.call(WATCH, "other").await;
    assert!(more.message().await.is_some());
    port.stop.cancel();
    assert_eq!(end(&mut other).await.0, 14, "it was open until now");
}

#[tokio::test]
async fn a_token_that_is_revoked_ends_its_streams() {
    let port = Port::open(mounted()).await;
    let client = Client::connect(&port, None).await;
    let mut streams = [open(&client, "ns").await, open(&client, "").await];
    port.good_is_revoked.store(true, SeqCst);
    pass(REMEMBERED).await;
    for stream in &mut streams {
        let (code, why) = end(stream).await;
        assert_eq!(code, UNAUTHENTICATED);
        assert!(why.contains("token"), "{why}");
    }
}

/// The stream's conditions become due while the host does not answer. The stream must not end before the host has
/// answered no.
#[tokio::test]
async fn a_host_that_is_away_ends_nothing() {
    let port = Port::open(mounted()).await;
    let client = Client::connect(&port, None).await;
    let mut stream = open(&client, "ns").await;
    port.host_answers.send(false).unwrap();
    let before = port.reviews();
    // Until the conditions are due, and until their reviews have taken too long.
    for time in [REMEMBERED, 4 * REMEMBERED] {
        pass(time).await;
        port.until_reviews(before + 1).await;
        // What ends a stream is sent before the answer to a later call on its connection.
        let (code, _) = client.ends(CHECK, frame(b""), &[]).await;
        assert_eq!((code, stream.end().now_or_never()), (0, None), "the host has not answered");
    }
    port.good_is_revoked.store(true, SeqCst);
    port.host_answers.send(true).unwrap();
    assert_eq!(end(&mut stream).await.0, UNAUTHENTICATED);
}

#[tokio::test]
async fn a_stream_ends_with_the_certificate_that_opened_it() {
    // Nothing else ends the stream, however late it is read.
    let responses = OpenResponses::new(Limits { period: 100 * HOUR, ..Limits::default() });
    let port = Port::open(Settings { responses, ..mounted() }).await;
    let identity = port.clients.issue_until("ann", "users", SystemTime::now() + HOUR);
    let client = Client::connect(&port, Some(&identity)).await;
    let mut stream = client.send(WATCH, frame(b"ns"), &[]).await;
    assert_eq!(stream.message().await.unwrap(), frame(b"ann"));
    pass(HOUR).await;
    let (code, why) = end(&mut stream).await;
    assert_eq!(code, UNAUTHENTICATED);
    assert!(why.contains("certificate has expired"), "{why}");
}

#[tokio::test]
async fn a_ca_that_is_trusted_no_more_ends_the_streams_of_its_certificates() {
    let port = Port::open(mounted()).await;
    let identity = port.clients.issue("ann", "users");
    let client = Client::connect(&port, Some(&identity)).await;
    let mut stream = client.send(WATCH, frame(b"ns"), &[]).await;
    assert_eq!(stream.message().await.unwrap(), frame(b"ann"));
    let other = Client::connect(&port, None).await;
    let mut by_token = open(&other, "ns").await;
    port.trusted.set_flags(trust(&Authority::new(), &Authority::new()));
    pass(REMEMBERED).await;
    let (code, why) = end(&mut stream).await;
    assert_eq!(code, UNAUTHENTICATED);
    assert!(why.contains("not trusted any more"), "{why}");
    port.stop.cancel();
    assert_eq!(end(&mut by_token).await.0, 14, "it was open until now");
}

/// Whether a caller may act as a node in the old way, or in the constrained one.
static IN_THE_OLD_WAY: AtomicBool = AtomicBool::new(false);

fn in_one_way(spec: &Value) -> bool {
    match spec["resourceAttributes"]["verb"].as_str().unwrap_or_default() {
        "impersonate" => IN_THE_OLD_WAY.load(SeqCst),
        verb if verb.starts_with("impersonate") => !IN_THE_OLD_WAY.load(SeqCst),
        _ => true,
    }
}

/// The user of a node has other groups in each way.
#[tokio::test]
async fn a_caller_who_may_act_as_a_user_in_another_way_only_loses_the_stream() {
    let port = Port::open(Settings { rule: in_one_way, ..mounted() }).await;
    let client = Client::connect(&port, None).await;
    let as_node = [("authorization", "Bearer good"), ("impersonate-user", "system:node:n1")];
    let mut stream = client.send(WATCH, frame(b"ns"), &as_node).await;
    assert_eq!(stream.message().await.unwrap(), frame(b"system:node:n1"));
    IN_THE_OLD_WAY.store(true, SeqCst);
    pass(REMEMBERED).await;
    let (code, why) = end(&mut stream).await;
    assert_eq!(code, PERMISSION_DENIED);
    assert!(why.contains("impersonate"), "{why}");
}

/// A stream that the caller opens as jane.
async fn open_as_jane(client: &Client) -> Answer {
    let as_jane = [("authorization", "Bearer good"), ("impersonate-user", "jane")];
    let mut stream = client.send(WATCH, frame(b"ns"), &as_jane).await;
    assert_eq!(stream.message().await.unwrap(), frame(b"jane"));
    stream
}

static MAY_IMPERSONATE: AtomicBool = AtomicBool::new(true);

fn impersonation(spec: &Value) -> bool {
    let verb = spec["resourceAttributes"]["verb"].as_str().unwrap_or_default();
    !verb.contains("impersonate") || MAY_IMPERSONATE.load(SeqCst)
}

#[tokio::test]
async fn a_caller_who_may_act_as_another_no_more_loses_the_others_stream() {
    let port = Port::open(Settings { rule: impersonation, ..mounted() }).await;
    let client = Client::connect(&port, None).await;
    let mut stream = open_as_jane(&client).await;
    MAY_IMPERSONATE.store(false, SeqCst);
    pass(REMEMBERED).await;
    let (code, why) = end(&mut stream).await;
    assert_eq!(code, PERMISSION_DENIED);
    assert!(why.contains("impersonate"), "{why}");
}

static JANE_MAY_READ: AtomicBool = AtomicBool::new(true);

fn of_jane(spec: &Value) -> bool {
    spec["user"] != "jane" || JANE_MAY_READ.load(SeqCst)
}

#[tokio::test]
async fn a_right_that_is_taken_from_whom_a_caller_acts_as_ends_the_stream() {
    let port = Port::open(Settings { rule: of_jane, ..mounted() }).await;
    let client = Client::connect(&port, None).await;
    let mut stream = open_as_jane(&client).await;
    let mut own = open(&client, "ns").await;
    JANE_MAY_READ.store(false, SeqCst);
    pass(REMEMBERED).await;
    let (code, why) = end(&mut stream).await;
    assert_eq!(code, PERMISSION_DENIED);
    assert!(why.contains("jane") && why.contains("cannot watch resource"), "{why}");
    port.stop.cancel();
    assert_eq!(end(&mut own).await.0, 14, "the caller's own was open until now");
}
