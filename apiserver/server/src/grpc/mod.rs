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
use drydock_serving::request::user::User;
use http::{Request, Response};
use tokio_util::sync::CancellationToken;

use crate::chain::Chain;
use crate::flow_control::fair_budget::FairBudget;
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

    /// Reviews the open streams of `chain` and follows the readiness of the server, until the future is dropped.
    pub(crate) async fn review_streams(&self, chain: Arc<Chain>) {
        tokio::join!(recheck_streams(&self.streams, chain), self.routes.readiness.follow());
    }
}

/// Why a call is refused: the status for the client, and the error for audit and metrics.
#[derive(Debug)]
struct CallRefusal {
    status: tonic::Status,
    error: ApiError,
}
