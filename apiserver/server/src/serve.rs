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
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::authn::Peer;
use crate::chain::Chain;
use crate::sending::Held;
use gather::gather;
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
/// Connections at one time: a bound on memory, far above what a cluster opens.
const MAX_CONNECTIONS: usize = 16_384;

/// How long the secure port waits for a client.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For its handshake, its first request, and each request's headers.
    pub headers: Duration,
    /// For another request on a connection that has none.
    pub idle: Duration,
    /// For requests in flight at shutdown.
    pub drain: Duration,
}

impl Default for Patience {
    /// k8s.io/apiserver pkg/server/secure_serving.go, and its request timeout.
    fn default() -> Self {
        let [headers, idle, drain] = [32, 90, 60].map(Duration::from_secs);
        Self { headers, idle, drain }
    }
}

/// Binds the port; the error names it and the flag to change.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|e| io::Error::new(e.kind(), format!("--secure-port: cannot listen on {address}: {e}")))
}

/// Serves until `stop` is cancelled, then lets what is in flight finish.
pub async fn serve(
    listener: TcpListener,
    tls: ServerConfig,
    chain: Arc<Chain>,
    stop: CancellationToken,
    patience: Patience,
) {
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let connections = TaskTracker::new();
    let places = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Some((stream, place)) = accepted else { continue };
        let (acceptor, chain, stop) = (acceptor.clone(), chain.clone(), stop.clone());
        connections.spawn(async move {
            connection(stream, acceptor, chain, stop, patience).await;
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(patience.drain, connections.wait()).await.is_err() {
        tracing::warn!(
            open = connections.len(),
            "connections still open at the end of the grace period are cut"
        );
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<tokio::sync::Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
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

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    chain: Arc<Chain>,
    stop: CancellationToken,
    patience: Patience,
) {
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(patience.headers, acceptor.accept(stream));
    let stream = tokio::select! {
        shaken = handshake => match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => return tracing::debug!("TLS handshake timed out"),
        },
        () = stop.cancelled() => return,
    };
    let address = stream.get_ref().0.peer_addr();
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let peer = Peer::new(certificates.iter().map(|c| c.clone().into_owned()).collect());
    let peer = Arc::new(match address {
        Ok(address) => peer.at(address.ip()),
        Err(_) => peer,
    });
    let requests = Requests::default();
    let counted = requests.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (chain, peer, open) = (chain.clone(), peer.clone(), counted.open());
        // Its state is of many KiB, and would be moved about by those who wrap it.
        Box::pin(async move {
            let answer = chain.serve(request.map(Body::new), &peer).await;
            Ok::<_, Infallible>(answer.map(|body| Held::new(body, open)))
        })
    });
    let builder = http_settings(patience);
    let (stream, outbox) = gather(stream);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let mut serving = Turns::new(serving, outbox);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        () = stop.cancelled() => {
            serving.connection.as_mut().graceful_shutdown();
            serving.await
        }
        () = requests.idle(patience.headers, patience.idle) => {
            serving.connection.as_mut().graceful_shutdown();
            // A request that crossed the farewell is still answered, within bounds.
            tokio::time::timeout(patience.headers, serving).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, "connection ended");
    }
}

fn http_settings(patience: Patience) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(patience.headers).max_headers(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(HEADER_BYTES)
        .keep_alive_interval(patience.idle)
        .keep_alive_timeout(PONG);
    builder
}
