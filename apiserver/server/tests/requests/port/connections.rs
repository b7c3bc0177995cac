//! Clients that keep the server waiting, and that take its connections.

use std::time::Duration;

use drydock_serving::clock::testing::time_lapse;
use drydock_serving::serve::Bounds;
use futures::FutureExt;
use http::Request;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{Port, Settings, code};
use super::frames::{Connection, Kind};
use crate::fixture::GADGETS;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty SETTINGS frame.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Hyper reads a connection's first bytes to tell HTTP/2 from HTTP/1.1, without a limit of time: sixteen thousand
/// silent clients would have held all permits.
#[tokio::test]
async fn a_client_that_says_nothing_or_little_is_not_waited_for() {
    let port = Port::open(Settings::default()).await;
    for said in [&b""[..], b"PRI * HT", PREFACE, &[PREFACE, SETTINGS].concat(), b"GET / HTTP/1.1\r\nhost:"] {
        let protocol = if said.starts_with(b"GET") { "http/1.1" } else { "h2" };
        let mut stream = port.connect(None, protocol).await;
        stream.write_all(said).await.unwrap();
        stream.flush().await.unwrap();
        let mut rest = Vec::new();
        // Ends when the server closes, whatever it says before.
        let _ = time_lapse(stream.read_to_end(&mut rest)).await;
    }
}

/// HTTP/2 was served to whoever sent its preface. Without ALPN nobody followed its frames, and there was no bound on
/// heads that had begun and not ended.
#[tokio::test]
async fn a_client_that_speaks_another_protocol_than_it_negotiated_gets_an_end() {
    let bounds = Bounds { headers: FOR_A_HANDSHAKE, ..Bounds::default() };
    let port = Port::open(Settings { bounds, ..Settings::default() }).await;
    let http2 = [PREFACE, SETTINGS].concat();
    for (negotiated, said) in
        [("", &*http2), ("http/1.1", &http2), ("h2", b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n")]
    {
        let mut stream = port.connect(None, negotiated).await;
        stream.write_all(said).await.unwrap();
        stream.flush().await.unwrap();
        let mut answer = Vec::new();
        let ended = tokio::time::timeout(TEST_DEADLINE, stream.read_to_end(&mut answer)).await;
        ended.expect("an end").expect("TLS says that it is the end");
        let is_served = answer.starts_with(b"HTTP/1.1 200") || (negotiated != "h2" && !answer.is_empty());
        assert!(!is_served, "{negotiated}: {}", String::from_utf8_lossy(&answer));
    }
}

#[tokio::test]
async fn a_client_that_negotiates_nothing_speaks_http1() {
    let port = Port::open(Settings::default()).await;
    let mut stream = port.connect(None, "").await;
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert_eq!(code(&answer), 200, "{answer}");
}

#[tokio::test]
async fn a_client_that_does_not_shake_hands_is_not_waited_for() {
    let port = Port::open(Settings::default()).await;
    let mut stream = TcpStream::connect(port.address).await.unwrap();
    stream.write_all(&[0x16, 3, 1]).await.unwrap();
    let _ = time_lapse(stream.read_to_end(&mut Vec::new())).await;
}

#[tokio::test]
async fn a_handshake_on_its_way_does_not_hold_up_the_end() {
    let port = Port::open(Settings::default()).await;
    let _stream = TcpStream::connect(port.address).await.unwrap();
    port.stop.cancel();
    port.serving.await.unwrap();
}

#[tokio::test]
async fn a_host_that_speaks_http2_is_asked_over_one_connection() {
    let bounds = Bounds { connections: 1, ..Bounds::default() };
    let port = Port::open(Settings { bounds, ..Settings::default() }).await;
    let host = port.as_host().await;
    let get = |path: &str| Request::get(path).body(Vec::new()).unwrap();
    // It stays open: over HTTP/1.1 nothing else could be asked.
    let _watch = host.request_stream(get("/apis/test.io/v1/namespaces/ns/gadgets?watch=true")).await.unwrap();
    let answer = tokio::time::timeout(TEST_DEADLINE, host.request_text(get("/livez"))).await;
    assert_eq!(answer.expect("asked while the watch is open").unwrap(), "ok");
}

#[tokio::test]
async fn a_client_is_told_how_many_streams_a_connection_may_have() {
    let bounds = Bounds { streams: 7, ..Bounds::default() };
    let port = Port::open(Settings { bounds, ..Settings::default() }).await;
    let mut connection = Connection::open(port.connect(None, "h2").await).await;
    let settings = connection.until("the settings", |frame| frame.kind == Kind::Settings).await;
    // SETTINGS_MAX_CONCURRENT_STREAMS.
    let most = settings.payload.chunks(6).find(|setting| setting[..2] == [0, 3]);
    assert_eq!(most, Some(&[0, 3, 0, 0, 0, 7][..]));
}

const SHARED: [u8; 4] = [127, 0, 0, 2];
const ADDRESS_OF_FEW: [u8; 4] = [127, 0, 0, 3];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 4];
/// Longer than anything here takes, and shorter than the time for a handshake.
const TEST_DEADLINE: Duration = Duration::from_secs(60);
const FOR_A_HANDSHAKE: Duration = Duration::from_secs(3600);

fn crowded(connections: usize, connections_per_address: usize) -> Settings {
    let headers = FOR_A_HANDSHAKE;
    let bounds = Bounds { connections, connections_per_address, headers, ..Bounds::default() };
    Settings { bounds, ..Settings::default() }
}

/// Connections that say nothing.
async fn silent(port: &Port, from: [u8; 4], count: usize) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        streams.push(port.reach(from).await);
    }
    streams
}

async fn assert_closed(stream: &mut (impl AsyncRead + Unpin)) {
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(TEST_DEADLINE, stream.read_to_end(&mut rest)).await.expect("closed");
}

/// A kubelet's probe: a new connection without credentials.
async fn assert_probed(port: &Port, from: [u8; 4]) {
    let probe = async {
        let mut stream = port.connect_from(from, None, "http/1.1").await;
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert_eq!(code(&answer), 200, "{answer}");
    };
    tokio::time::timeout(TEST_DEADLINE, probe).await.expect("the probe is answered");
}

/// A client that opened as many connections as there are permits once shut everybody out, for 32 s at a time.
#[tokio::test]
async fn silent_connections_shut_nobody_out() {
    let port = Port::open(crowded(8, 4)).await;
    let mut flood = silent(&port, SHARED, 30).await;
    // Pods on the host's network, and those behind a NAT, share the kubelet's address.
    assert_probed(&port, SHARED).await;
    assert_probed(&port, ELSEWHERE).await;
    assert_closed(&mut flood[0]).await;
    assert!(flood[29].read(&mut [0]).now_or_never().is_none(), "the newest are still waited for");
}

#[tokio::test]
async fn when_all_places_are_taken_the_address_with_the_most_loses() {
    let port = Port::open(crowded(16, 6)).await;
    let mut few = silent(&port, ADDRESS_OF_FEW, 3).await;
    let mut many = silent(&port, SHARED, 4).await;
    let mut others = Vec::new();
    for other in 10..13 {
        others.extend(silent(&port, [127, 0, 0, other], 3).await);
    }
    assert_probed(&port, ELSEWHERE).await;
    assert_closed(&mut many[0]).await;
    assert!(few[0].read(&mut [0]).now_or_never().is_none(), "though it is the oldest");
}

/// Bytes of a ClientHello of 15,000 bytes.
fn half_hello(bytes: usize) -> Vec<u8> {
    let [high, low] = 15_004_u16.to_be_bytes();
    let mut hello = vec![22, 3, 1, high, low, 1, 0, high, low - 4];
    hello.resize(bytes, 0);
    hello
}

/// Each of all connections that may be open could hold 64 KiB of a message that does not end: bounds for an address did not
/// help against hundreds of addresses.
#[tokio::test]
async fn of_long_handshakes_from_hundreds_of_addresses_the_oldest_gives_way() {
    let port = Port::open(crowded(1_000, 100)).await;
    let mut short = port.reach(ELSEWHERE).await;
    short.write_all(&half_hello(1_000)).await.unwrap();
    let mut long = Vec::new();
    for at in 0..=256_u16 {
        let [high, low] = at.to_be_bytes();
        let mut stream = port.reach([127, 1, high, low]).await;
        stream.write_all(&half_hello(10_000)).await.unwrap();
        long.push(stream);
    }
    assert_closed(&mut long[0]).await;
    assert_probed(&port, ELSEWHERE).await;
    let mut others = long[1..].iter_mut().chain([&mut short]);
    assert!(others.all(|other| other.read(&mut [0]).now_or_never().is_none()), "they are waited for");
}

#[tokio::test]
async fn who_has_authenticated_keeps_the_connection_in_a_flood_from_the_same_address() {
    let port = Port::open(crowded(8, 2)).await;
    let user = port.clients.issue("ann", "");
    let mut by_certificate = Connection::open(port.connect_from(SHARED, Some(&user), "h2").await).await;
    let mut by_token = Connection::open(port.connect_from(SHARED, None, "h2").await).await;
    let token = [("authorization", "Bearer good")];
    let first = by_token.ask(&format!("GET {GADGETS}"), &token, "").await;
    by_token.answer(first).await;
    let mut flood = silent(&port, SHARED, 30).await;
    flood.extend(silent(&port, ELSEWHERE, 30).await);
    assert_probed(&port, SHARED).await;
    let again = by_token.ask(&format!("GET {GADGETS}"), &token, "").await;
    assert!(by_token.answer(again).await.contains("GadgetList"));
    let again = by_certificate.ask(&format!("GET {GADGETS}"), &[], "").await;
    assert!(by_certificate.answer(again).await.contains("GadgetList"));
}

#[tokio::test]
async fn one_user_cannot_take_all_places() {
    let port = Port::open(crowded(8, 8)).await;
    let (ann, bob) = (port.clients.issue("ann", ""), port.clients.issue("bob", ""));
    let mut of_ann = Vec::new();
    for _ in 0..10 {
        let connect = port.connect_from(SHARED, Some(&ann), "h2");
        of_ann.push(tokio::time::timeout(TEST_DEADLINE, connect).await.expect("connected"));
    }
    assert_probed(&port, SHARED).await;
    let mut of_bob = Connection::open(port.connect_from(SHARED, Some(&bob), "h2").await).await;
    let asked = of_bob.ask(&format!("GET {GADGETS}"), &[], "").await;
    assert!(of_bob.answer(asked).await.contains("GadgetList"));
    assert_closed(&mut of_ann[9]).await;
    let mut oldest = Connection::open(of_ann.swap_remove(0)).await;
    let asked = oldest.ask(&format!("GET {GADGETS}"), &[], "").await;
    assert!(oldest.answer(asked).await.contains("GadgetList"), "what lasts is kept");
}

#[tokio::test]
async fn connections_of_a_front_proxy_take_no_place_and_are_not_closed() {
    let port = Port::open(crowded(2, 2)).await;
    let proxy = port.proxies.issue("front-proxy", "");
    let mut proxied = Vec::new();
    for _ in 0..5 {
        proxied.push(Connection::open(port.connect_from(SHARED, Some(&proxy), "h2").await).await);
    }
    let _flood = silent(&port, SHARED, 30).await;
    for connection in &mut proxied {
        let asked = connection.ask(&format!("GET {GADGETS}"), &[("x-remote-user", "ann")], "").await;
        assert!(connection.answer(asked).await.contains("GadgetList"));
    }
    assert_probed(&port, SHARED).await;
}
