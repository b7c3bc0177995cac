//! Clients that ask and do not read.

use std::time::Duration;

use bytes::Bytes;
use drydock_server::responses::{Limits, OpenResponses};
use drydock_serving::clock::testing::pass;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use tokio_util::task::AbortOnDropHandle;

use super::certificates::Identity;
use super::fixture::{Port, Settings, code};
use crate::fixture::GADGETS;

/// Longer than anything here takes.
const HANG: Duration = Duration::from_secs(60);

/// A client over HTTP/2 that grants each stream so many bytes, and more only where it says so.
struct Lazy {
    requests: SendRequest<Bytes>,
    _connection: AbortOnDropHandle<()>,
}

impl Lazy {
    async fn connect(port: &Port, identity: Option<&Identity>, window: u32) -> Self {
        let stream = port.connect(identity, "h2").await;
        let mut builder = h2::client::Builder::new();
        let (requests, connection) = builder.initial_window_size(window).handshake(stream).await.unwrap();
        let connection = tokio::spawn(async move {
            // It ends when the server has enough of it.
            let _ = connection.await;
        });
        Self { requests, _connection: AbortOnDropHandle::new(connection) }
    }

    /// The head of an answer, and what would read its body.
    async fn get(&self, path: &str) -> Response<RecvStream> {
        let request = Request::get(format!("https://localhost{path}")).body(()).unwrap();
        let mut requests = self.requests.clone().ready().await.unwrap();
        requests.send_request(request, true).unwrap().0.await.unwrap()
    }
}

/// Waits until the server ends a stream that is not read; the reason why.
async fn reset(mut body: RecvStream) -> Option<Reason> {
    let ended = async {
        loop {
            match body.data().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.reason(),
                None => return None,
            }
        }
    };
    tokio::time::timeout(HANG, ended).await.expect("the server ends the stream")
}

/// Stores a gadget of about so many bytes.
async fn gadget(port: &Port, name: &str, bytes: usize) {
    let object = crate::fixture::gadget(name, serde_json::json!({"spec": {"color": "x".repeat(bytes)}}));
    let answer = port.send_body(&format!("POST {GADGETS}"), &object.to_string()).await;
    assert_eq!(code(&answer), 201, "{answer}");
}

/// Small answers left their seats at once and had no deadline: one client could have 1,000 of them on each connection.
#[tokio::test]
async fn a_small_answer_that_is_not_read_keeps_its_seat_until_its_deadline() {
    let port = Port::open(Settings { in_flight: 1, ..Settings::default() }).await;
    let user = port.clients.issue("mallory", "g");
    gadget(&port, "a", 100).await;
    let lazy = Lazy::connect(&port, Some(&user), 0).await;
    let path = format!("{GADGETS}/a");
    // There is one seat for it.
    let unread = lazy.get(&path).await;
    assert_eq!(unread.status(), 200);
    let get = |timeout: &str| format!("GET {path}?timeout={timeout}");
    assert_eq!(code(&port.send(Some(&user), &get("1s"), &[]).await), 429);
    drop((unread, lazy));
    assert_eq!(code(&port.send(Some(&user), &get("60s"), &[]).await), 200);
    let lazy = Lazy::connect(&port, Some(&user), 0).await;
    let late = lazy.get(&format!("{path}?timeout=30s")).await;
    assert_eq!(late.status(), 200);
    pass(Duration::from_secs(30)).await;
    assert_eq!(reset(late.into_body()).await, Some(Reason::CANCEL));
    assert_eq!(code(&port.send(Some(&user), &get("60s"), &[]).await), 200, "the seat was given back");
}

/// The body of a watch that is not read is not polled, so its own timer was never looked at.
#[tokio::test]
async fn a_watch_that_is_not_read_ends_at_its_timeout() {
    let port = Port::open(Settings::default()).await;
    for name in ["a", "b", "c"] {
        gadget(&port, name, 100_000).await;
    }
    let lazy = Lazy::connect(&port, None, 10).await;
    let watch = lazy.get(&format!("{GADGETS}?watch=true&timeoutSeconds=10")).await;
    assert_eq!(watch.status(), 200);
    // Less than the time after which a connection of nobody is closed.
    pass(Duration::from_secs(12)).await;
    assert_eq!(reset(watch.into_body()).await, Some(Reason::CANCEL));
}

/// Waits until the open answers hold no more than this.
async fn within(responses: &OpenResponses, bytes: usize) {
    let freed = async {
        while responses.held() > bytes {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG, freed).await.unwrap_or_else(|_| panic!("{} are held", responses.held()));
}

/// How many answers were ended for their user's share.
async fn ended(port: &Port) -> usize {
    let metrics = port.send(None, "GET /metrics", &[]).await;
    let of = r#"drydock_ended_answers_total{reason="share"} "#;
    metrics.lines().find_map(|line| line.strip_prefix(of)).map_or(0, |count| count.parse().unwrap())
}

fn roomy(bytes: usize) -> (OpenResponses, Settings) {
    let responses = OpenResponses::new(Limits { bytes, ..Limits::default() });
    (responses.clone(), Settings { in_flight: 10_000, responses, ..Settings::default() })
}

/// 400 answers of 20 KB on four connections held 8 MB until their deadline, however little room there was.
#[tokio::test]
async fn unread_answers_of_one_user_are_kept_to_its_share_and_cost_another_none() {
    let (responses, settings) = roomy(2 << 20);
    let port = Port::open(settings).await;
    gadget(&port, "small", 20_000).await;
    gadget(&port, "large", 200_000).await;
    let (mallory, ann) = (port.clients.issue("mallory", "g"), port.clients.issue("ann", "g"));
    let reader = Lazy::connect(&port, Some(&ann), 65_535).await;
    let mut slow = reader.get(&format!("{GADGETS}/large")).await.into_body();
    let (mut unread, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let lazy = Lazy::connect(&port, Some(&mallory), 0).await;
        for _ in 0..100 {
            unread.push(lazy.get(&format!("{GADGETS}/small")).await.into_body());
        }
        clients.push(lazy);
    }
    within(&responses, 2 << 20).await;
    assert!(ended(&port).await > 0);
    assert_eq!(reset(unread.swap_remove(0)).await, Some(Reason::CANCEL), "the oldest goes first");
    let mut read = 0;
    while let Some(data) = slow.data().await {
        let data = data.expect("the other user loses nothing");
        slow.flow_control().release_capacity(data.len()).unwrap();
        read += data.len();
    }
    assert!(read > 200_000);
}

/// If the window is open, HTTP takes the whole of a small answer: the stream's task ends, and only the end of the
/// connection frees the answer.
#[tokio::test]
async fn small_answers_that_http_has_taken_are_freed_with_their_connection() {
    let (responses, settings) = roomy(1 << 20);
    let port = Port::open(settings).await;
    gadget(&port, "a", 3_000).await;
    let mallory = port.clients.issue("mallory", "g");
    let (mut unread, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let lazy = Lazy::connect(&port, Some(&mallory), 1_000).await;
        for _ in 0..150 {
            unread.push(lazy.get(&format!("{GADGETS}/a")).await.into_body());
        }
        clients.push(lazy);
    }
    within(&responses, 1 << 20).await;
    assert!(ended(&port).await > 0);
}
