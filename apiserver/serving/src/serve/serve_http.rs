//! HTTP on one connection, from its first request to its end.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use http::{Request, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use super::client_stream::ClientStream;
use super::connections::ConnectionStage;
use super::deferred::DeferredConnection;
use super::permit::ConnectionPermit;
use super::unfinished_heads::{Http1HeadScanner, Http2HeadScanner};
use super::windows::{Rewind, lower_window};
use super::write_coalescing::{Seen, WRITE_BUFFER, coalesce};
use super::{Bounds, RequestHandler};
use crate::auth::authn::Peer;
use crate::connection::{Connection, StreamExecutor};
use crate::guarded_body::guard;

/// Bytes of a body that a client may send before the body is read. No memory budget counts them.
const STREAM_WINDOW: u32 = 64 * 1024;
/// The same for all bodies on a connection that is no front proxy's.
const CONNECTION_WINDOW: u32 = 4 * STREAM_WINDOW;
/// Time for the answer to a ping.
const PONG: Duration = Duration::from_secs(20);
/// Bytes of a request's head. The longest parts are a token, a URL with selectors, and values to impersonate.
const HEAD_BYTES: u32 = 64 * 1024;
/// The same for a front proxy, which sends a header for each group of a user, and some users are in hundreds
/// (Go: http.DefaultMaxHeaderBytes is 1 MiB, for all of them together).
const PROXY_HEAD_BYTES: u32 = 256 * 1024;
/// Headers of an HTTP/1.1 request.
const HEADERS: usize = 1024;
/// Maximum requests of a front proxy that were cancelled before h2 handed them over. One turn of its connection reads
/// less than 48 KiB, including what the turn before has left ([`super::write_coalescing`]), and a request and its
/// cancellation take at least 25 bytes: there are never so many.
const CANCELLED: usize = 4096;

/// The client of a connection.
pub(super) struct Client {
    pub(super) peer: Arc<Peer>,
    /// Whether it is a front proxy, or may be one because the host has not named the CAs yet.
    pub(super) is_front_proxy: bool,
}

/// Why a connection is to end.
enum EndOfConnection {
    /// At once: the client does not read its answers, or it was retired long ago and is nobody's still.
    Close,
    /// When the requests that are under way have been answered, or the connection has overstayed.
    Retire,
    /// There have been no requests for too long.
    Idle,
}

/// Answers the requests of one connection until it ends, idles, or the port stops.
pub(super) async fn serve_http<A: RequestHandler>(
    stream: TlsStream<ClientStream>,
    client: Client,
    handler: &Arc<A>,
    permit: &Arc<ConnectionPermit>,
    stop: &CancellationToken,
    bounds: Bounds,
) {
    let (Client { peer, is_front_proxy }, requests) = (client, OpenRequestCount::default());
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let is_lowered = is_front_proxy && is_http2;
    let Some(stream) = begin(stream, is_lowered, bounds, stop).await else { return };
    // As in Go's server, HTTP/2 only where TLS has negotiated it (ALPN): the heads of others are not followed as frames.
    let builder = http_settings(bounds, is_front_proxy);
    let builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
    let connection = peer.connection().clone();
    let heads = UnfinishedHead::new(permit.clone());
    let http1_head = (!is_http2).then(|| heads.clone());
    let (handler, counted, here) = (handler.clone(), requests.clone(), permit.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let (handler, peer, here, open) = (handler.clone(), peer.clone(), here.clone(), counted.open());
        http1_head.iter().for_each(|head| head.set(false));
        here.enter_stage(ConnectionStage::Requesting);
        here.close_if_overstayed(bounds.headers);
        // Boxed: its state has many KiB, and the futures around it would move it.
        Box::pin(async move {
            let version = request.version();
            let answer = handler.handle(request.map(Body::new), &peer).await;
            // An HTTP/1.1 connection has one request at a time, so it is retired only if it has the limits of a front
            // proxy: another connection would cost another handshake.
            if version == Version::HTTP_2 || here.is_assumed_front_proxy() {
                here.retire_if_nobodys();
            }
            Ok::<_, Infallible>(guard(answer, open))
        })
    });
    let seen = if is_http2 { http2_heads(heads) } else { http1_heads(heads, requests.clone()) };
    let (stream, outbox) = coalesce(stream, Some(seen));
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let mut serving = DeferredConnection::new(serving, outbox);
    let mut notices = notices(&connection, permit, stop, &requests, bounds);
    let ended = loop {
        let notice = tokio::select! {
            biased;
            ended = &mut serving => break ended,
            Some(notice) = notices.next() => notice,
        };
        match notice {
            EndOfConnection::Close => break Ok(()),
            EndOfConnection::Retire => serving.connection.as_mut().graceful_shutdown(),
            EndOfConnection::Idle => {
                serving.connection.as_mut().graceful_shutdown();
                // A request that the client sent before it saw the GOAWAY is still answered, within `bounds.headers`.
                break tokio::time::timeout(bounds.headers, &mut serving).await.unwrap_or(Ok(()));
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, "connection ended");
        // HTTP leaves the stream as it is after an error. The client is told that it has ended, if it takes that now.
        let _ = std::future::poll_fn(|context| serving.poll_shutdown(context)).now_or_never();
    }
}

/// Why a connection is to end, as soon as that is known. The connection is polled for each request; these futures are
/// polled only if they have been woken.
fn notices<'a>(
    connection: &'a Connection,
    permit: &'a ConnectionPermit,
    stop: &'a CancellationToken,
    requests: &'a OpenRequestCount,
    bounds: Bounds,
) -> FuturesUnordered<BoxFuture<'a, EndOfConnection>> {
    FuturesUnordered::from_iter([
        connection.closed().map(|()| EndOfConnection::Close).boxed(),
        permit.overstayed(bounds.headers).map(|()| EndOfConnection::Close).boxed(),
        farewell(permit, stop).map(|()| EndOfConnection::Retire).boxed(),
        requests.idle(bounds.headers, bounds.idle).map(|()| EndOfConnection::Idle).boxed(),
    ])
}

/// Whether a head on the connection has begun and not ended, of which the table of connections is told each change.
struct UnfinishedHead {
    permit: Arc<ConnectionPermit>,
    is_unfinished: AtomicBool,
}

impl UnfinishedHead {
    fn new(permit: Arc<ConnectionPermit>) -> Arc<Self> {
        Arc::new(Self { permit, is_unfinished: AtomicBool::new(false) })
    }

    fn set(&self, is_unfinished: bool) {
        if self.is_unfinished.swap(is_unfinished, Ordering::Relaxed) != is_unfinished {
            self.permit.has_unfinished_head(is_unfinished);
        }
    }
}

/// Follows the heads in the frames that an HTTP/2 client sends.
fn http2_heads(head: Arc<UnfinishedHead>) -> Seen {
    let mut scanner = Http2HeadScanner::default();
    Box::new(move |bytes| head.set(scanner.scan(bytes)))
}

/// Follows the heads that an HTTP/1.1 client sends. What comes while a request is open is its body.
fn http1_heads(head: Arc<UnfinishedHead>, requests: OpenRequestCount) -> Seen {
    let mut scanner = Http1HeadScanner::default();
    Box::new(move |bytes| match requests.is_open() {
        true => scanner = Http1HeadScanner::default(),
        false => head.set(scanner.scan(bytes)),
    })
}

/// Lowers the windows of a front proxy's connection ([`lower_window`]). `None` if it sends nothing for too long, or
/// fails, or if the port stops.
async fn begin(
    stream: TlsStream<ClientStream>,
    is_lowered: bool,
    bounds: Bounds,
    stop: &CancellationToken,
) -> Option<Rewind<TlsStream<ClientStream>>> {
    if !is_lowered {
        return Some(Rewind::new(stream));
    }
    let begun = tokio::select! {
        begun = tokio::time::timeout(bounds.headers, lower_window(stream)) => begun,
        () = stop.cancelled() => return None,
    };
    let begun = begun.unwrap_or_else(|elapsed| Err(elapsed.into()));
    begun.inspect_err(|error| tracing::debug!(%error, "a front proxy's connection did not begin")).ok()
}

async fn farewell(permit: &ConnectionPermit, stop: &CancellationToken) {
    tokio::select! {
        () = permit.retired() => {}
        () = stop.cancelled() => {}
    }
}

/// The client, as far as TLS shows it.
pub(super) fn peer(stream: &TlsStream<ClientStream>, permit: &Arc<ConnectionPermit>) -> Peer {
    let (stream, session) = stream.get_ref();
    let certificates = session.peer_certificates().unwrap_or_default();
    let peer = Peer::new(certificates.iter().map(|c| c.clone().into_owned()).collect());
    let peer = peer.observed_by(permit.clone());
    match stream.peer_addr() {
        Ok(address) => peer.at(address.ip()),
        Err(_) => peer,
    }
}

/// The limits of HTTP on a connection. A front proxy sends the requests of all users over one connection, so nothing
/// that one user does may end it.
fn http_settings(bounds: Bounds, is_front_proxy: bool) -> auto::Builder<StreamExecutor> {
    let (head, window) = match is_front_proxy {
        // As much as all its streams together, so that a user whose requests wait does not hold up the bodies of others.
        true => (PROXY_HEAD_BYTES, bounds.streams.saturating_mul(STREAM_WINDOW)),
        false => (HEAD_BYTES, CONNECTION_WINDOW),
    };
    let mut builder = auto::Builder::new(StreamExecutor);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.headers)
        .max_headers(HEADERS)
        .max_buf_size(head as usize);
    let mut http2 = builder.http2();
    http2
        .timer(TokioTimer::new())
        .max_concurrent_streams(bounds.streams)
        .max_header_list_size(head)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(window)
        // More than the outbox takes would only wait.
        .max_send_buf_size(WRITE_BUFFER)
        .keep_alive_interval(bounds.idle)
        .keep_alive_timeout(PONG);
    if is_front_proxy {
        http2
            .max_pending_accept_reset_streams(CANCELLED)
            // h2 counts these for as long as the connection lasts, so a long connection would reach any limit; the
            // work for such a stream ends with the stream.
            .max_local_error_reset_streams(None);
    }
    builder
}

/// Counts the requests of one connection.
#[derive(Clone, Default)]
struct OpenRequestCount(Arc<OpenRequests>);

#[derive(Default)]
struct OpenRequests {
    open: AtomicUsize,
    seen: AtomicUsize,
}

/// A request whose answer has not been sent.
struct OpenRequest(Arc<OpenRequests>);

impl OpenRequestCount {
    /// A request has come.
    fn open(&self) -> OpenRequest {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        self.0.seen.fetch_add(1, Ordering::Relaxed);
        OpenRequest(self.0.clone())
    }

    /// Whether a request is open.
    fn is_open(&self) -> bool {
        self.0.open.load(Ordering::Relaxed) > 0
    }

    /// Ends when no request has come within `first`, or when there has been none for `idle` or up to twice that.
    async fn idle(&self, first: Duration, idle: Duration) {
        tokio::time::sleep(first).await;
        let mut seen = 0;
        while self.is_open() || self.0.seen.load(Ordering::Relaxed) != seen {
            seen = self.0.seen.load(Ordering::Relaxed);
            tokio::time::sleep(idle).await;
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::permit::ConnectionPermits;
    use super::*;

    /// More connections than may have a head that has begun and not ended.
    const MANY: usize = 300;

    /// Tells the table what comes on each of [`MANY`] connections, while they have an open request or not. Returns how
    /// many have been closed.
    fn closed(has_request: bool, pieces: &[&[u8]]) -> usize {
        let permits = ConnectionPermits::new(4 * MANY, MANY);
        let connections: Vec<_> = (0..MANY)
            .map(|_| {
                let permit = Arc::new(permits.take(Ipv4Addr::LOCALHOST.into()));
                let (head, requests) = (UnfinishedHead::new(permit.clone()), OpenRequestCount::default());
                let _open = has_request.then(|| requests.open());
                let mut seen = http1_heads(head, requests);
                pieces.iter().for_each(|bytes| seen(bytes));
                permit
            })
            .collect();
        connections.iter().filter(|permit| permit.closed().now_or_never().is_some()).count()
    }

    /// Heads over HTTP/1.1 had no bound together: a user's thousands of connections kept 64 KiB each.
    #[test]
    fn unfinished_heads_over_http1_are_bounded_together() {
        assert!(closed(false, &[b"GET / HTTP/1.1\r\n", b"a: b\r\n"]) > 0);
        assert_eq!(closed(false, &[b"GET / HTTP/1.1\r\n", b"a: b\r\n\r\n"]), 0);
    }

    #[test]
    fn what_comes_while_a_request_is_open_is_no_head() {
        assert_eq!(closed(true, &[b"{\"a\": 1}", b"more"]), 0);
    }
}
