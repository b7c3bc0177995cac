//! Answers to the clients of a front proxy who do not read. The proxy keeps what it is sent for them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::fixture::{Port, Settings, code};
use super::frames::{Connection, Kind, frame};
use super::resets::ANN;
use crate::fixture::{GADGETS, gadget};

const TENANT: [(&str, &str); 1] = [("x-remote-user", "tenant")];
/// What Go's transport grants a stream.
const WINDOW: u32 = 4 << 20;
/// What a stream is sent of it.
const STREAM_BYTES: usize = 128 * 1024;
/// Longer than anything here takes.
const HANG: Duration = Duration::from_secs(60);

/// Reads until `is_enough` says so of the bytes that came on each stream.
async fn read(
    connection: &mut Connection,
    came: &mut BTreeMap<u32, usize>,
    is_enough: impl Fn(&BTreeMap<u32, usize>) -> bool,
) {
    while !is_enough(came) {
        let reading = connection.until("enough", |frame| frame.kind == Kind::Data);
        let data = tokio::time::timeout(HANG, reading).await.expect("more is sent");
        *came.entry(data.stream).or_default() += data.payload.len();
    }
}

/// 256 of them were sent 4 MiB each, which is all that the connection's window in Go's transport has room for, and no
/// other client's answer got through any more.
#[tokio::test]
async fn what_a_proxys_clients_do_not_read_leaves_its_connection_room() {
    let port = Port::open(Settings::default()).await;
    let large = gadget("large", serde_json::json!({"spec": {"color": "x".repeat(1_000_000)}}));
    let answer = port.send_body(&format!("POST {GADGETS}"), &large.to_string()).await;
    assert_eq!(code(&answer), 201, "{answer}");
    let proxy = port.proxies.issue("front-proxy", "");
    let mut connection = Connection::granting(WINDOW, port.connect(Some(&proxy), "h2").await).await;
    let mut came = BTreeMap::new();
    for _ in 0..8 {
        came.insert(connection.ask(&format!("GET {GADGETS}/large"), &TENANT, "").await, 0);
    }
    let unread: Vec<u32> = came.keys().copied().collect();
    read(&mut connection, &mut came, |came| came.values().all(|bytes| *bytes >= STREAM_BYTES)).await;
    // Whatever else they are sent comes before the answers to these.
    for _ in 0..4 {
        let ann = connection.ask(&format!("GET {GADGETS}?limit=1&timeout=30s"), &ANN, "").await;
        connection.send(&frame(Kind::WindowUpdate, 0, ann, &WINDOW.to_be_bytes())).await;
        read(&mut connection, &mut came, |came| came.get(&ann).is_some_and(|bytes| *bytes > 1_000_000)).await;
    }
    for stream in &unread {
        assert_eq!(came[stream], STREAM_BYTES, "stream {stream}");
    }
    // One who reads after all is sent the rest.
    let late = unread[0];
    connection.send(&frame(Kind::WindowUpdate, 0, late, &WINDOW.to_be_bytes())).await;
    read(&mut connection, &mut came, |came| came[&late] > 1_000_000).await;
}
