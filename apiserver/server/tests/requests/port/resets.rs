//! Tenants who cancel what they ask for. A front proxy sends the requests of all users over one connection: what one of
//! them does must not end it for the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use async_trait::async_trait;
use drydock_machinery::ApiError;
use drydock_server::admission::{Admission, AdmissionAttributes};

use super::fixture::{Port, Settings};
use super::frames::{Connection, Kind, cancel, frame};
use crate::fixture::{GADGETS, gadget};

pub const ANN: [(&str, &str); 1] = [("x-remote-user", "ann")];
const TENANT: [(&str, &str); 1] = [("x-remote-user", "tenant")];

/// The front proxy's connection to `port`, and the stream of ann's watch on it.
pub async fn proxied(port: &Port) -> (Connection, u32) {
    let proxy = port.proxies.issue("front-proxy", "");
    let mut connection = Connection::open(port.connect(Some(&proxy), "h2").await).await;
    let watch = connection.ask(&format!("GET {GADGETS}?watch=true"), &ANN, "").await;
    connection.until("the watch opens", |frame| frame.stream == watch).await;
    (connection, watch)
}

/// Ann creates an object, and her watch gets the event.
pub async fn assert_served(connection: &mut Connection, watch: u32, name: &str) {
    let post = format!("POST {GADGETS}");
    let headers = [ANN[0], ("content-type", "application/json")];
    let write = connection.ask(&post, &headers, &gadget(name, serde_json::json!({})).to_string()).await;
    let (mut answer, mut answered, mut told) = (String::new(), false, false);
    while !(answered && told) {
        let frame = connection.until(name, |frame| [write, watch].contains(&frame.stream)).await;
        assert!(frame.kind != Kind::Reset && !(frame.stream == watch && frame.ends_stream()), "{frame:?}");
        if frame.stream == write && frame.kind == Kind::Data {
            answer.push_str(&frame.text());
        }
        answered |= frame.stream == write && frame.ends_stream();
        assert!(!answered || answer.contains("uid"), "{answer}");
        told |= frame.stream == watch && frame.text().contains(name);
    }
}

/// A request of the tenant, and its end.
fn cancelled(connection: &mut Connection, line: &str, has_body: bool) -> Vec<u8> {
    let (stream, request) = connection.request(line, &TENANT, has_body);
    [request, cancel(stream)].concat()
}

/// h2 ended a connection with ENHANCE_YOUR_CALM when 21 streams were cancelled before it had looked at them.
#[tokio::test]
async fn a_tenant_who_cancels_in_bursts_interrupts_nobody() {
    let port = Port::open(Settings::default()).await;
    let (mut connection, watch) = proxied(&port).await;
    for round in 0..20 {
        let burst: Vec<u8> =
            (0..90).flat_map(|_| cancelled(&mut connection, &format!("GET {GADGETS}"), false)).collect();
        connection.send(&burst).await;
        assert_served(&mut connection, watch, &format!("g{round}")).await;
    }
}

/// A server that was stopped for a while finds all of it at once.
#[tokio::test]
async fn a_backlog_of_cancelled_requests_interrupts_nobody() {
    let port = Port::open(Settings::default()).await;
    let (mut connection, watch) = proxied(&port).await;
    // Nothing is smaller: three fields of the static table. They wait in the socket.
    let mut backlog = Vec::new();
    for _ in 0..10_000 {
        let (stream, _) = connection.request("GET /", &[], false);
        backlog.extend(frame(Kind::Headers, 5, stream, &[0x82, 0x84, 0x87]));
        backlog.extend(cancel(stream));
    }
    connection.send(&backlog).await;
    assert_served(&mut connection, watch, "after").await;
}

/// Another client gets no more than h2 grants, and the GOAWAY says so.
#[tokio::test]
async fn a_client_that_is_no_front_proxy_is_cut_off_for_it() {
    let port = Port::open(Settings::default()).await;
    let user = port.clients.issue("tenant", "");
    let mut connection = Connection::open(port.connect(Some(&user), "h2").await).await;
    let burst: Vec<u8> =
        (0..90).flat_map(|_| cancelled(&mut connection, &format!("GET {GADGETS}"), false)).collect();
    connection.send(&burst).await;
    let farewell = loop {
        let frame = connection.next().await.expect("a farewell first");
        if frame.kind == Kind::GoAway {
            break frame.text();
        }
    };
    assert!(farewell.contains("too_many_resets"), "{farewell:?}");
}

/// Each frame of a body whose request was refused long ago is an error of that stream. h2 counted them for as long as
/// the connection lasted, and ended it at 1,024.
#[tokio::test]
async fn bodies_that_come_after_the_refusal_interrupt_nobody() {
    let rule = |spec: &serde_json::Value| spec["user"] == "ann";
    let port = Port::open(Settings { rule, ..Settings::default() }).await;
    let (mut connection, watch) = proxied(&port).await;
    let refused: Vec<_> =
        (0..300).map(|_| connection.request(&format!("POST {GADGETS}"), &TENANT, true)).collect();
    connection.send(&refused.iter().flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>()).await;
    for _ in &refused {
        connection.until("a refusal", |frame| frame.stream != watch && frame.ends_stream()).await;
    }
    for round in 0..6 {
        let parts = refused.iter().flat_map(|(stream, _)| frame(Kind::Data, 0, *stream, b"part"));
        connection.send(&parts.collect::<Vec<_>>()).await;
        assert_served(&mut connection, watch, &format!("g{round}")).await;
    }
}

/// Requests wait for reviews, for seats and for webhooks, and their bodies are not read meanwhile. One window for all
/// bodies of a connection, as large as that of one stream, was full with the first.
#[tokio::test]
async fn bodies_that_nobody_reads_hold_up_no_others() {
    let port = Port::open(Settings::default()).await;
    let (mut connection, watch) = proxied(&port).await;
    assert_served(&mut connection, watch, "before").await;
    port.host_answers.send(false).unwrap();
    for _ in 0..16 {
        let (stream, mut bytes) = connection.request(&format!("POST {GADGETS}"), &TENANT, true);
        (0..16).for_each(|_| bytes.extend(frame(Kind::Data, 0, stream, &[b' '; 16 * 1024])));
        connection.send(&bytes).await;
    }
    assert_served(&mut connection, watch, "after").await;
}

/// Holds up every write of the tenant.
#[derive(Default)]
struct HoldsUp {
    held: Arc<AtomicUsize>,
    most: AtomicUsize,
}

struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[async_trait]
impl Admission for HoldsUp {
    async fn admit(&self, write: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        if write.user.name == "tenant" {
            self.most.fetch_max(self.held.fetch_add(1, SeqCst) + 1, SeqCst);
            let _held = Held(self.held.clone());
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// Rapid reset (CVE-2023-44487): a cancelled stream counts no more, so what works for it must end with it.
#[tokio::test]
async fn nothing_works_on_for_who_has_cancelled() {
    let holds_up = Arc::new(HoldsUp::default());
    let settings = Settings { admission: vec![holds_up.clone()], in_flight: 10, ..Settings::default() };
    let port = Port::open(settings).await;
    let (mut connection, watch) = proxied(&port).await;
    let body = gadget("never", serde_json::json!({})).to_string();
    let headers = [TENANT[0], ("content-type", "application/json")];
    for round in 0..10 {
        let mut streams = Vec::new();
        for _ in 0..5 {
            streams.push(connection.ask(&format!("POST {GADGETS}"), &headers, &body).await);
        }
        let seen = holds_up.most.load(SeqCst);
        assert!(seen <= 10, "{seen} at one time");
        connection.send(&streams.into_iter().flat_map(cancel).collect::<Vec<_>>()).await;
        // If a cancelled request still held a seat, no other request would get one.
        assert_served(&mut connection, watch, &format!("g{round}")).await;
    }
    assert!(holds_up.most.load(SeqCst) > 0, "the tenant was held up");
    assert_eq!(holds_up.held.load(SeqCst), 0, "and nothing goes on for it");
}
