//! Connections with an anonymous or refused request: they are retired, and a front proxy's never is (k8s.io/apiserver
//! pkg/endpoints/filters/authentication.go, UnauthenticatedHTTP2DOSMitigation).

use std::time::Duration;

use drydock_serving::auth::authn::HostConfig;
use drydock_serving::clock::testing::{pass, time_lapse};
use drydock_serving::serve::Bounds;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::certificates::Authority;
use super::fixture::{Port, Settings, trust};
use super::frames::{Connection, Kind};
use super::resets::{ANN, assert_served, proxied};
use crate::fixture::{GADGETS, gadget};

/// Far more than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);
const TOKEN: (&str, &str) = ("authorization", "Bearer good");

/// Reads up to the GOAWAY, and past it to the end of the answer on `stream`.
async fn answer_and_farewell(connection: &mut Connection, stream: u32) {
    let (mut answered, mut retired) = (false, false);
    while !(answered && retired) {
        let frame = tokio::time::timeout(LIMIT, connection.next()).await.expect("a farewell");
        let frame = frame.expect("not closed before");
        assert!(frame.kind != Kind::Reset, "{frame:?}");
        answered |= frame.stream == stream && frame.ends_stream();
        if frame.kind == Kind::GoAway {
            // After the last stream that is answered comes the reason, which is none.
            assert_eq!(frame.payload[4..8], [0; 4]);
            retired = true;
        }
    }
}

/// Streams that a client without a user cancels are counted for no user.
#[tokio::test]
async fn a_connection_of_nobody_is_retired_after_its_answer() {
    let port = Port::open(Settings::default()).await;
    for (line, header) in [
        (format!("GET {GADGETS}"), ("accept", "*/*")),
        (format!("GET {GADGETS}"), ("authorization", "Bearer bad")),
        ("GET /livez".to_owned(), ("accept", "*/*")),
    ] {
        let mut connection = Connection::open(port.connect(None, "h2").await).await;
        let stream = connection.ask(&line, &[header], "").await;
        answer_and_farewell(&mut connection, stream).await;
        let closed = async { while connection.next().await.is_some() {} };
        tokio::time::timeout(LIMIT, closed).await.expect("closed when nothing is in flight");
    }
    let authority = Authority::new();
    let stranger = authority.issue("ann", "");
    let mut connection = Connection::open(port.connect(Some(&stranger), "h2").await).await;
    let stream = connection.ask(&format!("GET {GADGETS}"), &[], "").await;
    answer_and_farewell(&mut connection, stream).await;
}

#[tokio::test]
async fn what_is_in_flight_goes_on_after_the_farewell() {
    let port = Port::open(Settings::default()).await;
    let mut connection = Connection::open(port.connect(None, "h2").await).await;
    let watch = connection.ask(&format!("GET {GADGETS}?watch=true"), &[TOKEN], "").await;
    connection.until("the watch opens", |frame| frame.stream == watch).await;
    let stream = connection.ask(&format!("GET {GADGETS}"), &[], "").await;
    answer_and_farewell(&mut connection, stream).await;
    port.send_body(&format!("POST {GADGETS}"), &gadget("later", serde_json::json!({})).to_string()).await;
    loop {
        let frame = connection.next().await.expect("the watch lasts");
        if frame.stream == watch && frame.text().contains("later") {
            break;
        }
    }
}

#[tokio::test]
async fn who_asks_on_after_the_farewell_is_cut_off() {
    let port = Port::open(Settings::default()).await;
    let mut connection = Connection::open(port.connect(None, "h2").await).await;
    // The server takes further streams until the client answers the ping that follows its GOAWAY.
    connection.pongs = false;
    connection.ask(&format!("GET {GADGETS}?watch=true"), &[TOKEN], "").await;
    let asks_on = async {
        loop {
            let stream = connection.insist(&format!("GET {GADGETS}")).await;
            loop {
                match connection.next().await {
                    Some(frame) if frame.stream == stream && frame.ends_stream() => break,
                    Some(_) => {}
                    None => return,
                }
            }
        }
    };
    // Cut off.
    time_lapse(asks_on).await;
}

/// A stranger kept a connection, and a thousand answers on it, by reading none of them.
#[tokio::test]
async fn what_nobody_has_in_flight_is_cut_off_after_the_farewell() {
    let port = Port::open(Settings::default()).await;
    let mut connection = Connection::open(port.connect(None, "h2").await).await;
    connection.ask(&format!("GET {GADGETS}?watch=true"), &[], "").await;
    let cut = async { while connection.next().await.is_some() {} };
    time_lapse(cut).await;
}

/// A client with any certificate had the limits of a front proxy for as long as its connection lasted, if it had come
/// before the host's CAs were read.
#[tokio::test]
async fn a_certificate_of_unknown_cas_has_the_limits_of_a_front_proxy_until_it_is_known() {
    let port = Port::open(Settings::default()).await;
    port.trusted.set_flags(HostConfig::default());
    let (tenant, proxy) = (Authority::new().issue("ann", ""), port.proxies.issue("front-proxy", ""));
    let mut of_tenant = Connection::open(port.connect(Some(&tenant), "h2").await).await;
    let mut of_proxy = Connection::open(port.connect(Some(&proxy), "h2").await).await;
    let early = of_proxy.ask(&format!("GET {GADGETS}"), &ANN, "").await;
    assert!(of_proxy.answer(early).await.contains("has not yet read the trusted client CAs"));
    of_tenant.ask(&format!("GET {GADGETS}?watch=true"), &[TOKEN], "").await;
    let farewell = async { while of_tenant.next().await.expect("a farewell").kind != Kind::GoAway {} };
    tokio::time::timeout(LIMIT, farewell).await.expect("the token proves that it is no front proxy");
    pass(Bounds::default().headers).await;
    let cut = async { while of_tenant.next().await.is_some() {} };
    tokio::time::timeout(LIMIT, cut).await.expect("cut off");
    port.trusted.set_flags(trust(&port.clients, &port.proxies));
    for _ in 0..2 {
        let stream = of_proxy.ask(&format!("GET {GADGETS}"), &ANN, "").await;
        assert!(of_proxy.answer(stream).await.contains("GadgetList"));
    }
}

/// The aggregator sends everybody's requests over one connection.
#[tokio::test]
async fn nobody_through_a_front_proxy_retires_no_connection() {
    let port = Port::open(Settings::default()).await;
    let (mut connection, watch) = proxied(&port).await;
    let nobody = [("x-remote-user", "system:anonymous"), ("x-remote-group", "system:unauthenticated")];
    let refused = [("authorization", "Bearer bad")];
    for (round, headers) in [&nobody[..], &refused, &[]].into_iter().enumerate() {
        for line in [format!("GET {GADGETS}"), "GET /livez".to_owned()] {
            let stream = connection.ask(&line, headers, "").await;
            connection.answer(stream).await;
        }
        assert_served(&mut connection, watch, &format!("g{round}")).await;
    }
}

#[tokio::test]
async fn a_connection_with_a_users_certificate_is_not_retired() {
    let port = Port::open(Settings::default()).await;
    let ann = port.clients.issue(ANN[0].1, "");
    let mut connection = Connection::open(port.connect(Some(&ann), "h2").await).await;
    for line in ["GET /livez".to_owned(), format!("GET {GADGETS}"), format!("GET {GADGETS}")] {
        let stream = connection.ask(&line, &[], "").await;
        connection.answer(stream).await;
    }
}

/// One request at a time is no danger, and another connection would cost another handshake (upstream: ProtoMajor == 2).
#[tokio::test]
async fn a_connection_of_nobody_over_http1_is_kept() {
    let port = Port::open(Settings::default()).await;
    let mut stream = port.connect(None, "http/1.1").await;
    for end in ["", "connection: close\r\n"] {
        let request = format!("GET {GADGETS} HTTP/1.1\r\nhost: a\r\n{end}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
    }
    let mut answers = String::new();
    let _ = tokio::time::timeout(LIMIT, stream.read_to_string(&mut answers)).await.expect("closed at last");
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
}
