//! Tests of the look at all open answers.
#![allow(clippy::unwrap_used)]

use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use hyper::body::Body as _;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::answer::{BASE, SMALL};
use super::super::{Backlog, Limits, Sending, Streaming, Terms};
use super::*;
use crate::user::User;

const MINUTE: Duration = Duration::from_secs(60);

fn sending(bytes: usize) -> Sending {
    Sending::new(Limits { bytes, ..Limits::default() })
}

fn user(name: &str) -> Option<Arc<User>> {
    Some(Arc::new(User { name: name.to_owned(), ..User::default() }))
}

fn terms(name: &str, connection: &Arc<Connection>) -> (Terms<DropGuard>, CancellationToken) {
    let seat = CancellationToken::new();
    let (user, connection, guard) = (user(name), connection.clone(), seat.clone().drop_guard());
    (Terms { deadline: Instant::now() + MINUTE, user, connection, guard, sizes: None }, seat)
}

/// The pieces that a body gives without being read, one after another.
fn polled(body: &mut Body) -> Vec<Bytes> {
    let mut context = Context::from_waker(Waker::noop());
    let mut pieces = Vec::new();
    while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut *body).poll_frame(&mut context) {
        pieces.push(frame.into_data().unwrap());
    }
    pieces
}

fn whole(bytes: usize) -> Response<Body> {
    Response::new(Body::from(vec![b'x'; bytes]))
}

#[tokio::test]
async fn an_answer_counts_until_the_transport_has_taken_its_last_piece() {
    let (sending, connection) = (sending(1 << 20), Arc::default());
    let (terms, seat) = terms("ann", &connection);
    let mut body = sending.send(whole(20_000), terms).into_body();
    let mut pieces = polled(&mut body);
    assert!(body.is_end_stream(), "the last piece says that it is the last");
    assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [16_384, 20_000 - 16_384]);
    drop(body);
    assert_eq!((sending.held(), seat.is_cancelled()), (BASE + 20_000, false));
    pieces.pop();
    assert_eq!((sending.held(), seat.is_cancelled()), (BASE + 20_000, false));
    pieces.clear();
    assert_eq!((sending.held(), seat.is_cancelled()), (0, true));
}

/// What the task of a stream leaves with HTTP when it ends can only be had back by closing the connection.
#[tokio::test]
async fn the_last_piece_is_small() {
    let (sending, connection) = (sending(1 << 20), Arc::default());
    for bytes in [1, SMALL, SMALL + 1, 16_384, 16_385, 100_000] {
        let mut body = sending.send(whole(bytes), terms("ann", &connection).0).into_body();
        let pieces = polled(&mut body);
        assert!(pieces.last().is_some_and(|last| last.len() <= SMALL), "{bytes}");
        assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), bytes);
    }
}

#[tokio::test]
async fn a_stream_ends_when_nearly_everything_was_taken() {
    let (sending, connection) = (sending(1 << 20), Arc::default());
    let frames = [Bytes::from(vec![b'x'; 40_000])].map(Ok::<_, std::convert::Infallible>);
    let response = Response::new(Body::from_stream(futures::stream::iter(frames)));
    let mut body = sending.send(response, terms("ann", &connection).0).into_body();
    let mut pieces = polled(&mut body);
    assert_eq!((pieces.len(), sending.held()), (3, BASE + 40_000));
    let waits = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context));
    tokio::pin!(waits);
    assert!(futures::poll!(waits.as_mut()).is_pending());
    pieces.clear();
    assert!(waits.await.is_none());
    assert_eq!(sending.held(), BASE, "its frame is gone, its stream is not");
}

#[tokio::test]
async fn a_deadline_gives_the_seat_back_though_a_piece_is_unread() {
    let (sending, connection) = (sending(1 << 20), Arc::default());
    let (terms, seat) = terms("ann", &connection);
    let mut body = sending.send(whole(100), terms).into_body();
    let _unread = polled(&mut body);
    drop(body);
    let now = Instant::now();
    assert!(sending.0.sweep(now) && !seat.is_cancelled());
    assert!(sending.0.sweep(now + MINUTE), "something is unread");
    assert!(seat.is_cancelled());
}

#[tokio::test]
async fn nobody_looks_when_nothing_is_unread() {
    let (sending, connection) = (sending(1 << 20), Arc::default());
    let mut body = sending.send(whole(100), terms("ann", &connection).0).into_body();
    assert!(!sending.0.armed.load(SeqCst));
    let unread = polled(&mut body);
    assert!(sending.0.armed.load(SeqCst));
    assert!(!sending.0.disarm() && sending.0.armed.load(SeqCst));
    drop(unread);
    assert!(!sending.0.sweep(Instant::now()) && sending.0.disarm());
    assert!(!sending.0.armed.load(SeqCst));
}

/// Its stream first, which frees nothing where HTTP has it all; then the connection, unless others are on it.
#[tokio::test]
async fn a_connection_is_closed_for_its_only_user_alone() {
    let (sending, now) = (sending(4 * BASE), Instant::now());
    let [own, mixed, proxy]: [Arc<Connection>; 3] = Default::default();
    proxy.share();
    let mut unread = Vec::new();
    for (name, connection) in
        [("mallory", &own), ("mallory", &own), ("mallory", &mixed), ("ann", &mixed), ("mallory", &proxy)]
    {
        // As if an HTTP/2 stream's task had made it, and ended.
        let (handle, _) = futures::future::AbortHandle::new_pair();
        let send = async { sending.send(whole(100), terms(name, connection).0).into_body() };
        let mut body = super::super::stream::within(handle, send).await;
        unread.push(polled(&mut body));
    }
    for second in 0..8 {
        sending.0.sweep(now + second * Duration::from_secs(2));
    }
    assert!(own.is_closed());
    assert!(!mixed.is_closed() && !proxy.is_closed());
}

#[derive(Default)]
struct Held(AtomicUsize);

impl Backlog for Held {
    fn bytes(&self) -> usize {
        100_000
    }

    fn let_go(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[tokio::test]
async fn a_past_state_is_let_go_without_progress_and_a_watch_ends_at_its_own_time() {
    let (sending, connection, now) = (sending(1 << 20), Arc::default(), Instant::now());
    let held = Arc::new(Held::default());
    let streaming = Streaming { ends: Some(now + 10 * MINUTE), backlog: held.clone() };
    let frame = [Ok::<_, std::convert::Infallible>(Bytes::from_static(b"event"))];
    let events = futures::StreamExt::chain(futures::stream::iter(frame), futures::stream::pending());
    let mut response = Response::new(Body::from_stream(events));
    response.extensions_mut().insert(streaming);
    let mut body = sending.send(response, terms("ann", &connection).0).into_body();
    let unread = polled(&mut body);
    let patience = Limits::default().patience;
    sending.0.sweep(now + patience / 2);
    assert_eq!(held.0.load(Relaxed), 0);
    sending.0.sweep(now + 2 * patience);
    assert_eq!(held.0.load(Relaxed), 1);
    drop(unread);
    sending.0.sweep(now + 4 * patience);
    assert_eq!(held.0.load(Relaxed), 1, "all is read");
    assert!(!connection.is_closed());
    sending.0.sweep(now + 11 * MINUTE);
    assert!(connection.is_closed());
}
