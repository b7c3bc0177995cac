//! The status service: answers gRPC calls.

use std::sync::Arc;

use bytes::Bytes;
use drydock_storage::storage::Storage;
use futures::stream::{self, BoxStream, StreamExt};
use http::{Request, Response};
use prometheus_client::registry::Registry;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::server::{Grpc, ServerStreamingService, UnaryService};

use crate::codec::{self, EncodedCodec};
use crate::config::Config;
use crate::error::no_such_method;
use crate::get;
use crate::hub::Stores;
use crate::hubs::Hubs;
use crate::request::{self, Method, ReadAttributes, StatusCall, Watch};
use crate::subscriber::{SnapshotSent, Subscriber};

/// The status service.
pub struct StatusStream {
    hubs: Arc<Hubs>,
}

type Future<T> = futures::future::BoxFuture<'static, Result<tonic::Response<T>, Status>>;

impl StatusStream {
    /// The full name of the service.
    pub const NAME: &str = request::SERVICE;
    /// Encoded `FileDescriptorSet` of the service and all that it imports.
    pub const DESCRIPTORS: &[u8] = drydock_proto::FILE_DESCRIPTOR_SET;

    /// Creates a service that reads these resources. It reads nothing before it is called.
    pub fn new(maintenances: Arc<dyn Storage>, evictions: Arc<dyn Storage>, config: Config) -> Arc<Self> {
        Arc::new(Self { hubs: Arc::new(Hubs::new(Stores { maintenances, evictions }, config)) })
    }

    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        self.hubs.metrics.register(registry);
    }

    /// Whether the method of a path streams; `None` if there is no such method.
    pub fn is_streaming(path: &str) -> Option<bool> {
        request::method(path).map(|method| matches!(method, Method::Watch(_)))
    }

    /// Returns what a call reads, from its path and its message.
    ///
    /// # Errors
    /// UNIMPLEMENTED for a path without a method, INVALID_ARGUMENT for a message that is malformed.
    pub fn reads(path: &str, message: &[u8]) -> Result<Vec<ReadAttributes>, Status> {
        request::call(path, message).map(|call| call.reads())
    }

    /// Answers a call of an authorized user. The body of the request is one uncompressed message in its gRPC frame.
    /// Dropping the response ends its stream at once. `snapshot_sent` is called when the initial snapshot of a stream
    /// was sent, and dropped if the stream ends before that.
    pub async fn call<B>(
        &self,
        user: &str,
        request: Request<B>,
        snapshot_sent: impl FnOnce() + Send + 'static,
    ) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    {
        let path = request.uri().path().to_owned();
        let mut grpc = Grpc::new(EncodedCodec).accept_compressed(CompressionEncoding::Gzip);
        let snapshot_sent: Option<SnapshotSent> = Some(Box::new(snapshot_sent));
        let caller = CallHandler { hubs: self.hubs.clone(), user: user.into(), path, snapshot_sent };
        match request::method(&caller.path) {
            Some(Method::Get(_)) => {
                grpc.send_compressed(CompressionEncoding::Gzip).unary(caller, request).await
            }
            // Never compressed: else a client could make the server compress each message for each subscriber.
            Some(Method::Watch(_)) => grpc.server_streaming(caller, request).await,
            None => no_such_method(&caller.path).into_http(),
        }
    }
}

/// A call and its caller.
struct CallHandler {
    hubs: Arc<Hubs>,
    user: Arc<str>,
    path: String,
    /// `None` once a stream has taken it.
    snapshot_sent: Option<SnapshotSent>,
}

impl UnaryService<Bytes> for CallHandler {
    type Response = codec::Response;
    type Future = Future<codec::Response>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (hubs, call) = (self.hubs.clone(), request::call(&self.path, request.get_ref()));
        Box::pin(async move {
            match call? {
                StatusCall::Get(entity, key) => get::get(&hubs, entity, &key).await,
                StatusCall::Watch(_) => Err(Status::internal("a Watch is answered by a stream")),
            }
            .map(|message| tonic::Response::new(codec::Response::Whole(message)))
        })
    }
}

impl ServerStreamingService<Bytes> for CallHandler {
    type Response = codec::Response;
    type ResponseStream = BoxStream<'static, Result<codec::Response, Status>>;
    type Future = Future<Self::ResponseStream>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (hubs, user, snapshot_sent) = (self.hubs.clone(), self.user.clone(), self.snapshot_sent.take());
        let call = request::call(&self.path, request.get_ref());
        Box::pin(async move {
            match call? {
                StatusCall::Watch(watch) => {
                    subscribe(hubs, user, watch, snapshot_sent).await.map(tonic::Response::new)
                }
                StatusCall::Get(..) => Err(Status::internal("a Get is answered by one message")),
            }
        })
    }
}

/// Opens the stream of a Watch.
///
/// # Errors
/// The reason why the stream cannot be opened.
async fn subscribe(
    hubs: Arc<Hubs>,
    user: Arc<str>,
    watch: Watch,
    snapshot_sent: Option<SnapshotSent>,
) -> Result<BoxStream<'static, Result<codec::Response, Status>>, Status> {
    let subscriber = Subscriber::open(hubs, user, watch, snapshot_sent).await?;
    let responses = stream::unfold(Some(subscriber), |subscriber| async {
        let mut subscriber = subscriber?;
        match subscriber.next().await {
            Ok(message) => Some((Ok(codec::Response::Stream(message)), Some(subscriber))),
            Err(status) => Some((Err(status), None)),
        }
    });
    Ok(responses.boxed())
}
