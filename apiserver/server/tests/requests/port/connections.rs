//! Clients that keep the server waiting.

use std::time::Duration;

use drydock_server::serve::Bounds;
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{Port, Settings};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty SETTINGS frame.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

fn impatient() -> Settings {
    let short = Duration::from_millis(50);
    let bounds = Bounds { headers: short, idle: short, drain: short, ..Bounds::default() };
    Settings { bounds, ..Settings::default() }
}

/// Hyper reads a connection's first bytes to tell HTTP/2 from HTTP/1.1, without a limit of time: sixteen thousand
/// silent clients would have held every place there is.
#[tokio::test]
async fn a_client_that_says_nothing_or_little_is_not_waited_for() {
    let port = Port::open(impatient()).await;
    for said in [&b""[..], b"PRI * HT", PREFACE, &[PREFACE, SETTINGS].concat(), b"GET / HTTP/1.1\r\nhost:"] {
        let protocol = if said.starts_with(b"GET") { "http/1.1" } else { "h2" };
        let mut stream = port.connect(None, protocol).await;
        stream.write_all(said).await.unwrap();
        stream.flush().await.unwrap();
        let mut rest = Vec::new();
        // Ends when the server closes, whatever it says before.
        let _ = stream.read_to_end(&mut rest).await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_shake_hands_is_not_waited_for() {
    let port = Port::open(impatient()).await;
    let mut stream = TcpStream::connect(port.address).await.unwrap();
    stream.write_all(&[0x16, 3, 1]).await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
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
    let answer = tokio::time::timeout(Duration::from_secs(30), host.request_text(get("/livez"))).await;
    assert_eq!(answer.expect("asked while the watch is open").unwrap(), "ok");
}
