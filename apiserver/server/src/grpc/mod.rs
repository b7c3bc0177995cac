//! gRPC on the port of the API server: one mounted service, health and reflection.
//!
//! ```text
//!   chain ── POST, HTTP/2, application/grpc ──▶ call    authentication, message, what every request is asked, the call
//!                                    message ◀────┤     the one request message, bounded, decompressed
//!                                    Service ◀────┤     what it reads, and its answer
//!                           health, reflection ◀──┤
//!                                     status ◀────┤     refusals as trailers-only answers
//!                                    streams ◀────┘     open streams, counted for each user
//!                                       │ recheck       what must hold while they are open, reviewed again
//!                                       ▼
//!                                       body        ends a stream with trailers
//! ```
//!
//! A call is treated as the request for the objects that it reads: a unary method is a `get` of an object or a `list`
//! of all, and a server-streaming method is a `watch` of all of them, in authorization, flow control, metrics and
//! audit. A call that reads no objects is a `get` of its path.
//!
//! Bounds: a request message has at most 64 KiB, compressed and decompressed. A user has at most 4,096 open streams, and
//! 512 different conditions that are reviewed for them.

mod access;
mod answer;
mod body;
mod call;
mod health;
mod message;
mod read;
mod recheck;
mod routes;
mod status;
mod streams;
mod waiting_checks;

use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_serving::auth::authn::Peer;
use drydock_serving::request::user::User;
use drydock_serving::serve::RequestHandler;
use http::{Method, Request, Response, Version, header};
use tokio_util::sync::CancellationToken;

use crate::chain::{Chain, ResponseGuard};
use crate::flow_control::fair_budget::FairBudget;
use crate::responses::ResponseBody;
pub use read::ResourceRead;
use recheck::recheck_streams;
use routes::Routes;
use streams::Streams;
use waiting_checks::WaitingChecks;

/// A gRPC service that a server mounts beside its API.
#[async_trait]
pub trait Service: Send + Sync + 'static {
    /// Its full name, as `package.Service`; health checks know it by this.
    fn name(&self) -> &'static str;

    /// Whether the method with this path (`/package.Service/Method`) answers with a stream; `None` if there is no such
    /// method. Clients send one message to each method.
    fn is_streaming(&self, path: &str) -> Option<bool>;

    /// What the method reads when it is called with this message. The caller needs the right to all of it; a method that
    /// reads nothing is for every authenticated caller. Does no I/O.
    ///
    /// # Errors
    /// What is wrong with the message, for the client.
    fn reads(&self, path: &str, message: &[u8]) -> Result<Vec<ResourceRead>, tonic::Status>;

    /// Answers a call that `user` may make. The request has no credentials, and its body is one uncompressed frame. A
    /// streamed answer may carry [`Streaming`](crate::responses::Streaming) as an extension, for what it holds in
    /// memory. When the stream has to end, its body is dropped and the client gets the status.
    async fn call(&self, user: &User, request: Request<Body>) -> Response<Body>;

    /// Encoded `google.protobuf.FileDescriptorSet` of the service and all that it imports, for reflection.
    fn descriptors(&self) -> &'static [u8];
}

/// Everything that serves gRPC.
pub struct Grpc {
    routes: Routes,
    streams: Arc<Streams>,
    /// The budget of all request messages that are being read.
    messages: Arc<FairBudget>,
    checks: Arc<WaitingChecks>,
    shutdown: CancellationToken,
}

/// Bytes of all calls whose message is being read: one user alone may have some 1,500 of them.
const MESSAGES: usize = 32 << 20;

impl Grpc {
    /// Mounts `service`, health by the checks of `health`, and reflection. `shutdown` ends open streams.
    ///
    /// # Errors
    /// The service's descriptors cannot be decoded.
    pub fn new(
        service: Arc<dyn Service>,
        health: drydock_serving::health::Health,
        shutdown: CancellationToken,
    ) -> Result<Self, tonic_reflection::server::Error> {
        let why = "Too many bytes in the messages of calls in flight, please try again later.";
        let messages = Arc::new(FairBudget::new(MESSAGES, why));
        let routes = Routes::new(service, health)?;
        Ok(Self { routes, streams: Arc::default(), messages, checks: Arc::default(), shutdown })
    }
}

/// Everything that answers at the port: the chain of HTTP requests, and a gRPC service where one is mounted.
pub struct Mux {
    /// Answers requests.
    pub chain: Arc<Chain>,
    /// Answers calls.
    pub grpc: Option<Grpc>,
}

impl Mux {
    /// Reviews the open streams and follows the readiness of the server, until the future is dropped. Returns at once
    /// if no service is mounted.
    pub async fn review_streams(self: Arc<Self>) {
        let Some(grpc) = &self.grpc else { return };
        let rechecks = recheck_streams(&grpc.streams, self.chain.clone());
        tokio::join!(rechecks, grpc.routes.readiness.follow());
    }
}

impl RequestHandler for Mux {
    type Body = ResponseBody<ResponseGuard>;

    async fn handle(&self, request: Request<Body>, peer: &Peer) -> Response<Self::Body> {
        match self.grpc.as_ref().filter(|_| is_call(&request)) {
            // Boxed: its state is larger than that of other requests, which would all make room for it.
            Some(grpc) => Box::pin(self.chain.serve_call(grpc, request, peer)).await,
            None => self.chain.handle_request(request, peer).await,
        }
    }

    fn is_front_proxy(&self, peer: &Peer) -> bool {
        self.chain.authenticator.is_front_proxy(peer)
    }
}

/// Whether a request is a gRPC call. Other requests cost one comparison here, those with POST one look at a header. The
/// path of a resource is never a method's: a create of an object with this media type gets 415.
fn is_call(request: &Request<Body>) -> bool {
    request.method() == Method::POST
        && request.version() == Version::HTTP_2
        && request.headers().get(header::CONTENT_TYPE).is_some_and(|value| is_grpc(value.as_bytes()))
        && !["/api/", "/apis/"].iter().any(|start| request.uri().path().starts_with(start))
}

/// `application/grpc` or `application/grpc+proto`, with or without parameters.
fn is_grpc(media_type: &[u8]) -> bool {
    let end = media_type.iter().position(|byte| matches!(byte, b';' | b' ')).unwrap_or(media_type.len());
    let media_type = &media_type[..end];
    [&b"application/grpc"[..], b"application/grpc+proto"].iter().any(|it| media_type.eq_ignore_ascii_case(it))
}

/// Why a call is refused: the status for the client, and the error for audit and metrics.
#[derive(Debug)]
struct CallRefusal {
    status: tonic::Status,
    error: ApiError,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_post_over_http2_with_the_media_type_of_grpc_is_a_call() {
        let at = |path: &str, method: Method, version, media_type: &str| {
            let request = Request::builder().uri(path).method(method).version(version);
            is_call(&request.header(header::CONTENT_TYPE, media_type).body(Body::empty()).unwrap())
        };
        let call = |method, version, media_type: &str| at("/p.S/M", method, version, media_type);
        assert!(!at("/apis/g/v1/things", Method::POST, Version::HTTP_2, "application/grpc"));
        for media_type in ["application/grpc", "application/grpc+proto", "Application/gRPC; charset=utf-8"] {
            assert!(call(Method::POST, Version::HTTP_2, media_type), "{media_type}");
            assert!(!call(Method::POST, Version::HTTP_11, media_type), "{media_type}");
            assert!(!call(Method::GET, Version::HTTP_2, media_type), "{media_type}");
        }
        for media_type in
            ["application/grpc-web", "application/grpc+json", "application/grp", "application/json", ""]
        {
            assert!(!call(Method::POST, Version::HTTP_2, media_type), "{media_type}");
        }
    }
}
