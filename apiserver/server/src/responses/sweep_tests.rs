//! Tests of the sweep over all open responses.
#![allow(clippy::unwrap_used)]

use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use bytes::{Buf, Bytes};
use drydock_serving::connection::{Http2Stream, within};
use drydock_serving::request::user::User;
use drydock_storage::storage::Pinned;
use http::Response;
use hyper::body::{Body as _, Frame};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::open_response::{BASE, SMALL};
use super::super::open_responses::LATE;
use super::super::{Delivery, InitialEvents, Limits, Piece, ResponseBody, Streaming};
use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn responses(bytes: usize) -> OpenResponses {
    OpenResponses::new(Limits { bytes, ..Limits::default() })
}

fn user(name: &str) -> Option<Arc<User>> {
    Some(Arc::new(User { name: name.to_owned(), ..User::default() }))
}

fn delivery(name: &str, connection: &Arc<Connection>) -> (Delivery<Seat>, CancellationToken) {
    let seat = CancellationToken::new();
    let (user, connection, guard) = (user(name), connection.clone(), seat.clone().drop_guard());
    (Delivery { deadline: Instant::now() + MINUTE, user, connection, guard, sizes: None }, seat)
}

type Seat = DropGuard;

/// The pieces that a body gives without being read, one after another.
fn polled(body: &mut ResponseBody<Seat>) -> Vec<Piece<Seat>> {
    let mut context = Context::from_waker(Waker::noop());
    let mut pieces = Vec::new();
    while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut *body).poll_frame(&mut context) {
        pieces.push(frame.into_data().ok().unwrap());
    }
    pieces
}

/// The next piece that a body gives.
fn first(body: &mut ResponseBody<Seat>) -> Piece<Seat> {
    let polled = Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Some(Ok(frame))) = polled else { unreachable!("it has a piece") };
    frame.into_data().ok().unwrap()
}

fn whole(bytes: usize) -> Response<Body> {
    Response::new(Body::from(vec![b'x'; bytes]))
}

#[tokio::test]
async fn an_answer_counts_until_the_transport_has_taken_its_last_piece() {
    let (responses, connection) = (responses(1 << 20), Arc::default());
    let (delivery, seat) = delivery("ann", &connection);
    let mut body = responses.send(whole(20_000), delivery).into_body();
    let mut pieces = polled(&mut body);
    assert!(body.is_end_stream(), "the last piece says that it is the last");
    assert_eq!(pieces.iter().map(Buf::remaining).collect::<Vec<_>>(), [16_384, 20_000 - 16_384]);
    drop(body);
    assert_eq!((responses.held(), seat.is_cancelled()), (BASE + 20_000, false));
    pieces.pop();
    assert_eq!((responses.held(), seat.is_cancelled()), (BASE + 20_000, false));
    pieces.clear();
    assert_eq!((responses.held(), seat.is_cancelled()), (0, true));
}

/// The bytes that the task of a stream has left in HTTP's buffers when it ends are freed only when the connection
/// is closed.
#[tokio::test]
async fn the_last_piece_is_small() {
    let (responses, connection) = (responses(1 << 20), Arc::default());
    for bytes in [1, SMALL, SMALL + 1, 16_384, 16_385, 100_000] {
        let mut body = responses.send(whole(bytes), delivery("ann", &connection).0).into_body();
        let pieces = polled(&mut body);
        assert!(pieces.last().is_some_and(|last| last.remaining() <= SMALL), "{bytes}");
        assert_eq!(pieces.iter().map(Buf::remaining).sum::<usize>(), bytes);
    }
}

/// A response of these frames, which then ends or never sends anything more.
fn streamed<const N: usize>(frames: [usize; N], ends: bool) -> Response<Body> {
    let frames = frames.map(|bytes| Ok::<_, std::convert::Infallible>(Bytes::from(vec![b'x'; bytes])));
    let frames = futures::stream::iter(frames);
    match ends {
        true => Response::new(Body::from_stream(frames)),
        false => {
            Response::new(Body::from_stream(futures::StreamExt::chain(frames, futures::stream::pending())))
        }
    }
}

#[tokio::test]
async fn a_stream_ends_when_nearly_everything_was_taken() {
    let (responses, connection) = (responses(1 << 20), Arc::default());
    let (delivery, seat) = delivery("ann", &connection);
    let mut body = responses.send(streamed([40_000], true), delivery).into_body();
    let mut pieces = polled(&mut body);
    assert_eq!((pieces.len(), responses.held()), (3, BASE + 40_000));
    let waits = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context));
    tokio::pin!(waits);
    assert!(futures::poll!(waits.as_mut()).is_pending());
    pieces.clear();
    let last = waits.await.unwrap().unwrap().into_data().ok().unwrap();
    assert_eq!((last.remaining(), body.is_end_stream()), (0, true));
    drop(body);
    assert_eq!((responses.held(), seat.is_cancelled()), (BASE, false), "its frame is gone, its end is not");
    drop(last);
    assert_eq!((responses.held(), seat.is_cancelled()), (0, true));
}

/// Each small frame was counted by an allocation of its own; and none of them was charged, so that a response held a
/// hundred of them in HTTP's buffers as if it held one.
#[tokio::test]
async fn small_frames_are_counted_together_and_nearly_all_of_them() {
    let (responses, connection) = (responses(1 << 20), Arc::default());
    let response = streamed([1000; 22], false);
    let mut body = responses.send(response, delivery("ann", &connection).0).into_body();
    let mut pieces = polled(&mut body);
    assert_eq!((pieces.len(), responses.held()), (22, BASE + 20_000));
    pieces.drain(..5);
    assert_eq!(responses.held(), BASE + 15_000);
    pieces.drain(..14);
    assert_eq!(responses.held(), BASE + 5000);
    drop(pieces);
    assert_eq!(responses.held(), BASE);
}

#[tokio::test]
async fn a_deadline_gives_the_seat_back_though_a_piece_is_unread() {
    let (responses, connection) = (responses(1 << 20), Arc::default());
    let (delivery, seat) = delivery("ann", &connection);
    let mut body = responses.send(whole(100), delivery).into_body();
    let _unread = polled(&mut body);
    drop(body);
    let now = Instant::now();
    responses.0.sweep(now);
    assert!(!seat.is_cancelled());
    responses.0.sweep(now + MINUTE);
    assert!(seat.is_cancelled());
}

/// The sweep must run for the first response, and again for one that comes after the last.
#[tokio::test]
async fn answers_are_looked_after_whenever_any_is_open() {
    let limits = Limits { period: Duration::from_millis(1), ..Limits::default() };
    let (responses, connection) = (OpenResponses::new(limits), Arc::default());
    let looking = responses.clone();
    let _looking = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
        looking.look_after().await;
    }));
    for _ in 0..3 {
        let (delivery, seat) = delivery("ann", &connection);
        let delivery = Delivery { deadline: Instant::now(), ..delivery };
        let mut body = responses.send(whole(100), delivery).into_body();
        let _unread = polled(&mut body);
        seat.cancelled().await;
    }
}

/// An HTTP/2 stream whose task has ended and has left its output in HTTP's buffers.
fn stream() -> Http2Stream {
    Http2Stream::of(tokio::spawn(async {}).abort_handle())
}

/// The stream is reset first, which frees nothing if HTTP has all of it; then the connection is closed, unless other
/// users are on it.
#[tokio::test]
async fn a_connection_is_closed_for_its_only_user_alone() {
    let (responses, now) = (responses(4 * BASE), Instant::now());
    let ([own, mixed], proxy) = (<[Arc<Connection>; 2]>::default(), Arc::new(Connection::shared()));
    let mut unread = Vec::new();
    for (name, connection) in
        [("mallory", &own), ("mallory", &own), ("mallory", &mixed), ("ann", &mixed), ("mallory", &proxy)]
    {
        let mut body =
            within(stream(), || responses.send(whole(100), delivery(name, connection).0).into_body());
        unread.push(polled(&mut body));
    }
    for second in 0..8 {
        responses.0.sweep(now + second * Duration::from_secs(2));
    }
    assert!(own.is_closed());
    assert!(!mixed.is_closed() && !proxy.is_closed());
}

/// One sweep reset the stream at its deadline and then, by what it had read before that, closed the connection to
/// make room.
#[tokio::test]
async fn a_front_proxys_connection_stays_open_when_deadlines_pass_while_room_is_short() {
    let (responses, proxy) = (responses(4 * BASE), Arc::new(Connection::shared()));
    let mut unread = Vec::new();
    for _ in 0..8 {
        let send = || responses.send(whole(100), delivery("mallory", &proxy).0).into_body();
        unread.push(polled(&mut within(stream(), send)));
    }
    responses.0.sweep(Instant::now() + 2 * MINUTE);
    assert!(!proxy.is_closed());
}

#[derive(Default)]
struct Held(AtomicUsize);

impl Pinned for Held {
    fn bytes(&self) -> usize {
        100_000
    }

    fn release(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A selector of 1 MB counted as nothing.
#[tokio::test]
async fn what_a_watch_keeps_counts_for_as_long_as_it_is_open() {
    let (responses, connection) = (responses(1 << 20), Arc::default());
    let backlog = Arc::new(Held::default());
    let mut response = streamed([5], false);
    response.extensions_mut().insert(Streaming { backlog, constant: 300_000, ..Streaming::default() });
    let body = responses.send(response, delivery("ann", &connection).0).into_body();
    assert_eq!(responses.held(), BASE + 300_000);
    drop(body);
    assert_eq!(responses.held(), 0);
}

#[tokio::test]
async fn a_watch_without_progress_gives_back_what_it_can_and_ends_at_its_own_time() {
    let (responses, connection, now) = (responses(1 << 20), Arc::default(), Instant::now());
    let held = Arc::new(Held::default());
    let (seat, initial) = (CancellationToken::new(), InitialEvents::default());
    initial.keep(seat.clone().drop_guard(), now + MINUTE);
    let streaming = Streaming {
        ends: Some(now + 10 * MINUTE),
        backlog: held.clone(),
        initial: Some(initial),
        ..Streaming::default()
    };
    let mut response = streamed([5], false);
    response.extensions_mut().insert(streaming);
    let mut body = responses.send(response, delivery("ann", &connection).0).into_body();
    // HTTP has a piece, and does not ask for more.
    let unread = first(&mut body);
    let patience = Limits::default().patience;
    responses.0.sweep(now);
    responses.0.sweep(now + patience / 2);
    assert_eq!(held.0.load(Relaxed), 0);
    responses.0.sweep(now + patience);
    assert_eq!((held.0.load(Relaxed), seat.is_cancelled()), (1, false));
    responses.0.sweep(now + 2 * MINUTE);
    assert!(seat.is_cancelled(), "its initial events took too long");
    let before = held.0.load(Relaxed);
    drop(unread);
    assert!(polled(&mut body).is_empty());
    responses.0.sweep(now + 4 * MINUTE);
    assert_eq!(held.0.load(Relaxed), before, "all is read");
    assert!(!connection.is_closed());
    responses.0.sweep(now + 11 * MINUTE);
    assert!(connection.is_closed());
}

/// The body of a stream that its client does not read is not polled, so that it never sent the status with which it
/// ended.
#[tokio::test]
async fn an_unread_stream_that_is_ended_from_outside_is_reset() {
    let (responses, connection, now) = (responses(1 << 20), Arc::default(), Instant::now());
    let (ended_at, ends) = (Arc::<OnceLock<Instant>>::default(), Some(now + 100 * MINUTE));
    let mut response = streamed([40_000], false);
    response.extensions_mut().insert(Streaming {
        ends,
        ended_at: Some(ended_at.clone()),
        ..Streaming::default()
    });
    let (delivery, seat) = delivery("ann", &connection);
    let mut body = within(stream(), || responses.send(response, delivery).into_body());
    let _unread = first(&mut body);
    responses.0.sweep(now + MINUTE);
    assert!(!seat.is_cancelled());
    ended_at.set(now + MINUTE).unwrap();
    responses.0.sweep(now + MINUTE);
    assert!(!seat.is_cancelled(), "it has a moment to end by itself");
    responses.0.sweep(now + MINUTE + LATE);
    assert!(seat.is_cancelled());
}

/// Clients with h2 close a connection after a hundred empty frames that do not end a stream.
#[tokio::test]
async fn trailers_end_a_body_without_an_empty_piece_and_keep_the_answer_until_they_are_taken() {
    let (responses, connection) = (responses(1 << 20), Arc::default());
    let trailers = http::HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
    let frames = [Frame::data(Bytes::from(vec![b'x'; 100])), Frame::trailers(trailers.clone())];
    let frames = futures::stream::iter(frames.map(Ok::<_, std::convert::Infallible>));
    let response = Response::new(Body::new(http_body_util::StreamBody::new(frames)));
    let (delivery, seat) = delivery("ann", &connection);
    let mut body = responses.send(response, delivery).into_body();
    let data = first(&mut body);
    assert_eq!((data.chunk().len(), body.is_end_stream()), (100, false));
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(Some(Ok(end))) = Pin::new(&mut body).poll_frame(&mut context) else { unreachable!() };
    let sent = end.into_trailers().ok().unwrap();
    assert_eq!(sent, trailers);
    assert!(body.is_end_stream());
    drop((data, body));
    assert!(responses.held() > 0 && !seat.is_cancelled(), "HTTP holds them still");
    drop(sent);
    assert!(responses.held() == 0 && seat.is_cancelled());
}
