//! The secure port: accepts connections, proves who holds which certificate, speaks HTTP/1.1 and HTTP/2, and stops in
//! order: no new connections, requests in flight finish, watches end.

mod gather;
mod requests;
mod turns;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::authn::Peer;
use crate::chain::Chain;
use crate::sending::Held;
use gather::{MOST, gather};
use requests::Requests;
use turns::Turns;

/// Streams on one HTTP/2 connection (k8s.io/apiserver pkg/server/secure_serving.go).
const MAX_STREAMS: u32 = 1000;
/// Time for the answer to a ping.
const PONG: Duration = Duration::from_secs(20);
/// A front proxy sends a header for each group of a user, and some users are in hundreds
/// (Go: http.DefaultMaxHeaderBytes is 1 MiB, for all of them together).
const HEADER_BYTES: u32 = 256 * 1024;
/// The same in HTTP/1.1, which counts them.
const HEADERS: usize = 1024;

/// What the port grants its clients.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at one time; another one waits until one of them is closed.
    pub connections: usize,
    /// Time for a handshake, for the first request, and for each request's headers.
    pub headers: Duration,
    /// Time for another request on a connection that has none.
    pub idle: Duration,
    /// Time for requests in flight at shutdown.
    pub drain: Duration,
}

impl Default for Bounds {
    /// Times as in k8s.io/apiserver pkg/server/secure_serving.go, and its request timeout. The connections are a bound
    /// on memory, far above what a cluster opens.
    fn default() -> Self {
        let [headers, idle, drain] = [32, 90, 60].map(Duration::from_secs);
        Self { connections: 16_384, headers, idle, drain }
    }
}

/// Who answers the requests that come in by a port.
pub trait Answer: Send + Sync + 'static {
    /// The answer to a request; whatever goes wrong, there is one.
    fn answer(&self, request: Request<Body>, peer: &Peer) -> impl Future<Output = Response<Body>> + Send;
}

impl Answer for Chain {
    fn answer(&self, request: Request<Body>, peer: &Peer) -> impl Future<Output = Response<Body>> + Send {
        self.serve(request, peer)
    }
}

/// Binds the port; the error names it and the flag to change.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|e| io::Error::new(e.kind(), format!("--secure-port: cannot listen on {address}: {e}")))
}

/// Serves until `stop` is cancelled, then lets what is in flight finish.
pub async fn serve<A: Answer>(
    listener: TcpListener,
    tls: ServerConfig,
    answers: Arc<A>,
    stop: CancellationToken,
    bounds: Bounds,
) {
    let connections = TaskTracker::new();
    let places = Arc::new(Semaphore::new(bounds.connections));
    let door = Door { acceptor: TlsAcceptor::from(Arc::new(tls)), answers, stop, bounds };
    loop {
        let accepted = tokio::select! {
            () = door.stop.cancelled() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Some((stream, place)) = accepted else { continue };
        let door = door.clone();
        connections.spawn(async move {
            if let Some(stream) = door.handshake(stream).await {
                door.converse(stream).await;
            }
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(bounds.drain, connections.wait()).await.is_err() {
        tracing::warn!(
            open = connections.len(),
            "connections still open at the end of the grace period are cut"
        );
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            // Out of file descriptors, most likely: give connections time to close.
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// What every connection of a port has in common.
struct Door<A> {
    acceptor: TlsAcceptor,
    answers: Arc<A>,
    stop: CancellationToken,
    bounds: Bounds,
}

impl<A> Clone for Door<A> {
    fn clone(&self) -> Self {
        let (acceptor, answers, stop) = (self.acceptor.clone(), self.answers.clone(), self.stop.clone());
        Self { acceptor, answers, stop, bounds: self.bounds }
    }
}

impl<A: Answer> Door<A> {
    async fn handshake(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let _ = stream.set_nodelay(true);
        let handshake = tokio::time::timeout(self.bounds.headers, self.acceptor.accept(stream));
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            () = self.stop.cancelled() => return None,
        };
        match shaken {
            Ok(Ok(mut stream)) => {
                stream.get_mut().1.set_buffer_limit(Some(MOST));
                return Some(stream);
            }
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake timed out"),
        }
        None
    }

    /// Answers the requests of one connection until it ends, idles, or the port stops.
    async fn converse(&self, stream: TlsStream<TcpStream>) {
        let (answers, peer, requests) = (self.answers.clone(), Arc::new(peer(&stream)), Requests::default());
        let counted = requests.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (answers, peer, open) = (answers.clone(), peer.clone(), counted.open());
            // Its state is of many KiB, and would be moved about by those who wrap it.
            Box::pin(async move {
                let answer = answers.answer(request.map(Body::new), &peer).await;
                Ok::<_, Infallible>(answer.map(|body| Held::new(body, open)))
            })
        });
        let builder = http_settings(self.bounds);
        let (stream, outbox) = gather(stream);
        let serving = builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(serving);
        let mut serving = Turns::new(serving, outbox);
        let ended = tokio::select! {
            ended = &mut serving => ended,
            () = self.stop.cancelled() => {
                serving.connection.as_mut().graceful_shutdown();
                serving.await
            }
            () = requests.idle(self.bounds.headers, self.bounds.idle) => {
                serving.connection.as_mut().graceful_shutdown();
                // A request that crossed the farewell is still answered, within bounds.
                tokio::time::timeout(self.bounds.headers, serving).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error, "connection ended");
        }
    }
}

/// Who is at the other end, as far as TLS tells.
fn peer(stream: &TlsStream<TcpStream>) -> Peer {
    let (stream, session) = stream.get_ref();
    let certificates = session.peer_certificates().unwrap_or_default();
    let peer = Peer::new(certificates.iter().map(|c| c.clone().into_owned()).collect());
    match stream.peer_addr() {
        Ok(address) => peer.at(address.ip()),
        Err(_) => peer,
    }
}

fn http_settings(bounds: Bounds) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(bounds.headers).max_headers(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(HEADER_BYTES)
        .keep_alive_interval(bounds.idle)
        .keep_alive_timeout(PONG);
    builder
}
