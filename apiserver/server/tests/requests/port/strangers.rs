//! What strangers, and users who act as others, can make this server ask the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use drydock_serving::clock::testing::{StoppedClock, time_lapse};
use drydock_serving::serve::Bounds;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;

use super::fixture::{Port, Settings, code};
use crate::fixture::GADGETS;

/// Far more than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Sends a request with a token on a connection that stays open, and returns the answer's head.
async fn ask(stream: &mut TlsStream<TcpStream>, path: &str, token: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut answer, mut part) = (Vec::new(), vec![0; 1 << 14]);
    // The answers here end with a brace or a line break.
    while !answer.ends_with(b"}") && !answer.ends_with(b"}\n") && !answer.ends_with(b"later\n") {
        let read = stream.read(&mut part).await.unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&part[..read]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Regression: two hundred tokens of one stranger took all permits, and no other token was reviewed
/// any more.
#[tokio::test]
async fn junk_tokens_of_one_address_do_not_hold_up_a_good_one_of_another() {
    // However much time passes until they are read, they are not too late.
    let bounds = Bounds { headers: Duration::from_secs(3600), ..Bounds::default() };
    let port = Port::open(Settings { bounds, ..Settings::default() }).await;
    port.host_answers_strangers.send(false).unwrap();
    let (refused, mut strangers) = (Arc::<AtomicUsize>::default(), JoinSet::new());
    let mut streams = Vec::new();
    for _ in 0..250 {
        streams.push(port.connect_from([127, 0, 0, 2], None, "http/1.1").await);
    }
    for (i, mut stream) in streams.into_iter().enumerate() {
        let refused = refused.clone();
        strangers.spawn(async move {
            let answer = ask(&mut stream, GADGETS, &format!("junk-{i}")).await;
            assert!(code(&answer) == 429 && answer.contains("retry-after: "), "{answer}");
            refused.fetch_add(1, SeqCst);
        });
    }
    let many_have_asked = async {
        while port.tokens() + refused.load(SeqCst) < 200 {
            tokio::task::yield_now().await;
        }
    };
    time_lapse(many_have_asked).await;
    let good = async {
        let mut stream = port.connect_from([127, 0, 0, 3], None, "http/1.1").await;
        ask(&mut stream, GADGETS, "good").await
    };
    let good = tokio::time::timeout(LIMIT, good).await.expect("a good token is not held up");
    assert_eq!(code(&good), 200, "{good}");
}

/// One client over one address caused 3,117 reviews a second.
#[tokio::test]
async fn strangers_together_cause_at_most_200_reviews_a_second() {
    const CONNECTIONS: u8 = 40;
    let port = Arc::new(Port::open(Settings::default()).await);
    let mut strangers = JoinSet::new();
    let mut streams = Vec::new();
    for i in 0..CONNECTIONS {
        streams.push((i, port.connect_from([127, 0, 1, i % 10], None, "http/1.1").await));
    }
    let started = Instant::now();
    for (i, mut stream) in streams {
        strangers.spawn(async move {
            for j in 0..15 {
                let answer = ask(&mut stream, GADGETS, &format!("junk-{i}-{j}")).await;
                assert!(matches!(code(&answer), 401 | 429), "{answer}");
            }
        });
    }
    strangers.join_all().await;
    let (tokens, seconds) = (port.tokens(), started.elapsed().as_secs_f64());
    // As many may be on their way at once.
    assert!(tokens as f64 <= 200.0 * seconds + 32.0, "{tokens} reviews in {seconds} s");
    assert!(tokens >= 200, "only {tokens}");
}

#[tokio::test]
async fn a_request_that_names_hundreds_of_groups_to_act_in_causes_no_reviews() {
    let port = Port::open(Settings::default()).await;
    let caller = port.clients.issue("caller", "callers");
    let groups: Vec<String> = (0..300).map(|i| format!("group-{i}")).collect();
    let headers: Vec<(&str, &str)> = std::iter::once(("impersonate-user", "jane"))
        .chain(groups.iter().map(|group| ("impersonate-group", group.as_str())))
        .collect();
    let answer = port.send(Some(&caller), &format!("GET {GADGETS}"), &headers).await;
    assert_eq!((code(&answer), port.asked().len()), (400, 0), "{answer}");
    assert!(answer.contains("at most 128 groups"), "{answer}");
    let answer = port.send(Some(&caller), &format!("GET {GADGETS}"), &headers[..100]).await;
    assert_eq!(code(&answer), 200, "{answer}");
}

/// A review for a caller who acts as another user counts for the caller, not for the other user.
#[tokio::test]
async fn a_stranger_who_may_not_act_as_others_asks_as_a_stranger() {
    let port = Port::open(Settings { rule: |_| false, ..Settings::default() }).await;
    let clock = StoppedClock::stop();
    // Each request has an address of its own, because an address may begin only some handshakes while the clock stands still.
    let ask = async |i: u8| {
        let mut stream = port.connect_from([127, 0, 2, i], None, "http/1.1").await;
        let request = format!(
            "GET {GADGETS} HTTP/1.1\r\nhost: a\r\nconnection: close\r\nimpersonate-user: jane-{i}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        code(&answer)
    };
    // Far more than the server does for an answer.
    let meanwhile = async |i: u8| {
        for _ in 0..10 {
            let mut stream = port.connect_from([127, 0, 3, i], None, "http/1.1").await;
            let request = b"GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
            stream.write_all(request).await.unwrap();
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    };
    assert_eq!(ask(0).await, 403);
    let mut answered = 1;
    let mut waits = loop {
        let mut asked = Box::pin(ask(answered));
        let answer = tokio::select! {
            biased;
            code = &mut asked => Some(code),
            () = meanwhile(answered) => None,
        };
        let Some(code) = answer else { break asked };
        assert_eq!(code, 403);
        answered += 1;
        assert!(answered <= 32, "as many as strangers have at once");
    };
    clock.advance(Duration::from_secs(1)).await;
    assert_eq!((&mut waits).await, 403);
}
