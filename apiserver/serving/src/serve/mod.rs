//! The secure port: accepts connections, verifies client certificates, speaks HTTP/1.1 and HTTP/2, and stops in
//! order: no new connections, requests in flight finish, watches end.
//!
//! ```text
//!   connections       which connection gets a permit, and which is closed for it (groups; permit: one connection's)
//!   client_hello      the first message of a client, and what begins with it (client_stream: how much it may send)
//!   handshakes        the threads that work on TLS handshakes (handshake_order: whose is next)
//!   unfinished_heads  requests whose head has begun and not ended
//!   serve_http        HTTP on one connection (deferred, write_coalescing: when it reads and writes; windows: how many
//!                     bytes of its answers a front proxy may hold)
//! ```

mod client_hello;
mod client_stream;
mod connections;
mod deferred;
mod groups;
mod handshake_order;
mod handshakes;
mod permit;
mod serve_http;
mod unfinished_heads;
mod windows;
mod write_coalescing;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use http::{Request, Response};
use rustls::ServerConfig;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::authn::Peer;
use client_hello::{FirstStep, RETRY_STEPS, Retry};
use client_stream::ClientStream;
use connections::ConnectionStage;
use handshakes::Handshakes;
use permit::{ConnectionPermit, ConnectionPermits};
use serve_http::{Client, peer, serve_http};
use write_coalescing::WRITE_BUFFER;

/// What the port grants its clients.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at one time, without those of front proxies; a quarter of them is for connections that have
    /// authenticated no user yet. There are fewer where the limit of open files is low.
    pub connections: usize,
    /// Connections from one address, or one /64 network, whose handshake has begun and that have authenticated no
    /// user yet. One more closes one of them. The same number of handshakes may begin in a second.
    pub connections_per_address: usize,
    /// Requests at one time on an HTTP/2 connection. A stream whose answer is not read holds memory as long as the
    /// connection lasts.
    pub streams: u32,
    /// Time for a handshake, for the first request, and for each request's headers.
    pub headers: Duration,
    /// Time for another request on a connection that has none.
    pub idle: Duration,
    /// Time for requests in flight at shutdown.
    pub drain: Duration,
}

impl Bounds {
    /// The default of `connections_per_address`.
    pub const CONNECTIONS_PER_ADDRESS: usize = 256;
}

impl Default for Bounds {
    /// Streams and times as in k8s.io/apiserver pkg/server/secure_serving.go, and its request timeout. The connections are a bound
    /// on memory, far above what a cluster opens.
    fn default() -> Self {
        let [headers, idle, drain] = [32, 90, 60].map(Duration::from_secs);
        let connections_per_address = Self::CONNECTIONS_PER_ADDRESS;
        Self { connections: 16_384, connections_per_address, streams: 1_000, headers, idle, drain }
    }
}

/// Answers the requests that come in by a port.
pub trait RequestHandler: Send + Sync + 'static {
    /// The body of an answer.
    type Body: HttpBody<Data: Send, Error: Into<axum::BoxError>> + Send + Unpin + 'static;

    /// The answer to a request; whatever goes wrong, there is one.
    ///
    /// Must call [`Peer::proves`] before it returns, with what the request proves about the client. Otherwise the
    /// connection counts for its address as long as it lasts, and is never retired. Only where the host did not answer,
    /// so that nothing is known, it reports nothing.
    fn handle(
        &self,
        request: Request<Body>,
        peer: &Peer,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Whether a client is a front proxy, which sends the requests of many users; `None` if that is not known yet.
    /// Asked once, after the handshake. A client of which it is not known has the limits of a front proxy until a
    /// request proves that it is none.
    fn is_front_proxy(&self, _peer: &Peer) -> Option<bool> {
        Some(false)
    }
}

/// Maximum connections that the kernel queues until they are accepted. It lowers this to net.core.somaxconn, which
/// Go's listeners have by default. The standard library's 128 are fewer than one client opens at once, and the next
/// client's kernel would try again only after 1, 3 and 7 s.
const BACKLOG: u32 = 4096;

/// Binds the port; the error names it and the flag to change.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = listen(address);
    listener.map_err(|e| io::Error::new(e.kind(), format!("--secure-port: cannot listen on {address}: {e}")))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `stop` is cancelled, then waits for what is in flight, at most `bounds.drain`.
pub async fn serve<A: RequestHandler>(
    listener: TcpListener,
    tls: ServerConfig,
    handler: Arc<A>,
    stop: CancellationToken,
    bounds: Bounds,
) {
    let connections = TaskTracker::new();
    let permits = ConnectionPermits::new(
        permit::allowed_connections(bounds.connections),
        bounds.connections_per_address,
    );
    let port = Arc::new(SharedPort {
        tls: Arc::new(tls),
        handshakes: Handshakes::new(bounds.connections_per_address),
        handler,
        stop,
        bounds,
    });
    loop {
        let accepted = tokio::select! {
            () = port.stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                let (port, permit) = (port.clone(), Arc::new(permits.take(from.ip())));
                connections.spawn(async move { port.serve_connection(stream, &permit).await });
                // Lets the connection begin before so many others are accepted that it would lose its permit.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                // Most likely the process has no file descriptor left: closing a connection frees one.
                tracing::warn!(%error, "cannot accept a connection");
                permits.relieve();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
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

/// What every connection of a port has in common.
struct SharedPort<A> {
    tls: Arc<ServerConfig>,
    handshakes: Handshakes,
    handler: Arc<A>,
    stop: CancellationToken,
    bounds: Bounds,
}

impl<A: RequestHandler> SharedPort<A> {
    /// Serves one connection until it ends or loses its permit.
    async fn serve_connection(&self, stream: TcpStream, permit: &Arc<ConnectionPermit>) {
        let served = async {
            if let Some((stream, client)) = self.establish(stream, permit).await {
                serve_http(stream, client, &self.handler, permit, &self.stop, self.bounds).await;
            }
        };
        tokio::select! {
            () = served => {}
            () = permit.closed() => {}
        }
    }

    async fn establish(
        &self,
        stream: TcpStream,
        permit: &Arc<ConnectionPermit>,
    ) -> Option<(TlsStream<ClientStream>, Client)> {
        let _ = stream.set_nodelay(true);
        let shaken = async {
            let stream = self.handshake(stream, permit).await?;
            let client = self.identify(&stream, permit).await;
            io::Result::Ok((stream, client))
        };
        let handshake = tokio::time::timeout(self.bounds.headers, shaken);
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            () = self.stop.cancelled() => return None,
        };
        match shaken {
            Ok(Ok((mut stream, client))) => {
                stream.get_mut().1.set_buffer_limit(Some(WRITE_BUFFER));
                return Some((stream, client));
            }
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake timed out"),
        }
        None
    }

    /// Performs the TLS handshake. It waits for its turn once the ClientHello has come, and takes no other's while it waits
    /// for the client.
    async fn handshake(
        &self,
        stream: TcpStream,
        permit: &Arc<ConnectionPermit>,
    ) -> io::Result<TlsStream<ClientStream>> {
        let mut stream = ClientStream::new(stream, permit.clone());
        let hello = client_hello::read(&mut stream).await?;
        permit.enter_stage(ConnectionStage::Waiting);
        let tls = self.tls.clone();
        let begin = move || client_hello::begin(&hello, stream, tls);
        let begun = self.handshakes.handshake(permit.source, permit.id, begin).await;
        permit.enter_stage(ConnectionStage::Handshaking);
        let mut shaken = match begun {
            FirstStep::Answered(shaking) => shaking.await?,
            FirstStep::Retry(retry) => self.retry(retry, permit).await?,
            FirstStep::Refused { mut stream, alert, error } => {
                stream.write_all(&alert).await?;
                return Err(error);
            }
        };
        shaken.get_mut().0.established();
        permit.enter_stage(ConnectionStage::Established);
        Ok(shaken)
    }

    /// Goes on with the handshake of a client that has to send another ClientHello: in a turn whenever more has come. Fails
    /// if it is not over after [`RETRY_STEPS`] turns.
    async fn retry(
        &self,
        mut retry: Box<Retry>,
        permit: &ConnectionPermit,
    ) -> io::Result<TlsStream<ClientStream>> {
        for _ in 0..RETRY_STEPS {
            let again = match retry.shaken().await {
                Ok(shaken) => return shaken,
                Err(again) => again,
            };
            retry = self.handshakes.handshake(permit.source, permit.id, move || again.step()).await;
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the handshake comes in too many pieces"))
    }

    /// Verifies the client's certificates, if there are any, in its turn.
    async fn identify(&self, stream: &TlsStream<ClientStream>, permit: &Arc<ConnectionPermit>) -> Client {
        let peer = Arc::new(peer(stream, permit));
        let is_front_proxy = match peer.shows_certificates() {
            true => {
                let (handler, peer) = (self.handler.clone(), peer.clone());
                let verify = move || handler.is_front_proxy(&peer);
                self.handshakes.verification(permit.source, permit.id, verify).await
            }
            false => self.handler.is_front_proxy(&peer),
        };
        if is_front_proxy.is_none() {
            permit.assume_front_proxy();
        }
        Client { is_front_proxy: is_front_proxy.unwrap_or(true), peer }
    }
}

#[cfg(test)]
mod retry_tests;
