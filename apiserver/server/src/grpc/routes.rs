//! The method that a path names, and the service that answers it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use drydock_serving::health::Health;
use drydock_serving::request::user::User;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::server::{Builder, Error};

use super::health::{CHECK, ServiceReadiness, WATCH};
use super::{ResourceRead, Service};

/// Answers the calls of one of the services that every server has.
pub(super) type Handler = Box<dyn Fn(Request<Body>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// Everything that can be called.
pub(super) struct Routes {
    service: Arc<dyn Service>,
    pub(super) readiness: ServiceReadiness,
    health: Handler,
    reflection: Reflection,
}

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Health/Check, which needs no authentication.
    HealthCheck,
    /// Health/Watch.
    HealthWatch,
    /// Server reflection: its messages are not read before it is called.
    Reflection { v1: bool },
    /// A method of the mounted service.
    Service { streams: bool },
}

impl Route {
    /// Whether the answer is a stream.
    pub(super) fn streams(self) -> bool {
        !matches!(self, Self::HealthCheck | Self::Service { streams: false })
    }

    /// Whether the client sends one message, which is read before the call.
    pub(super) fn has_one_message(self) -> bool {
        !matches!(self, Self::Reflection { .. })
    }
}

impl Routes {
    /// # Errors
    /// The service's descriptors cannot be decoded.
    pub(super) fn new(
        service: Arc<dyn Service>,
        health: Health,
    ) -> Result<Self, tonic_reflection::server::Error> {
        let readiness = ServiceReadiness::new(health, service.name());
        let reflection = Reflection::new(service.descriptors())?;
        let health = handler(HealthServer::new(readiness.clone()));
        Ok(Self { service, readiness, health, reflection })
    }

    /// The method that a path names, if there is one.
    pub(super) fn find(&self, path: &str) -> Option<Route> {
        match path {
            CHECK => Some(Route::HealthCheck),
            WATCH => Some(Route::HealthWatch),
            V1 => Some(Route::Reflection { v1: true }),
            V1ALPHA => Some(Route::Reflection { v1: false }),
            path => self.service.is_streaming(path).map(|streams| Route::Service { streams }),
        }
    }

    /// What a call with this message reads.
    ///
    /// # Errors
    /// What is wrong with the message.
    pub(super) fn reads(
        &self,
        route: Route,
        path: &str,
        message: &[u8],
    ) -> Result<Vec<ResourceRead>, tonic::Status> {
        match route {
            Route::Service { .. } => self.service.reads(path, message),
            Route::HealthCheck | Route::HealthWatch | Route::Reflection { .. } => Ok(Vec::new()),
        }
    }

    /// Answers a call.
    pub(super) async fn call(&self, route: Route, user: &User, request: Request<Body>) -> Response<Body> {
        match route {
            Route::HealthCheck | Route::HealthWatch => (self.health)(request).await,
            Route::Reflection { v1: true } => (self.reflection.v1)(request).await,
            Route::Reflection { v1: false } => (self.reflection.v1alpha)(request).await,
            Route::Service { .. } => self.service.call(user, request).await,
        }
    }
}

/// A generated server as a handler.
pub(super) fn handler<S>(server: S) -> Handler
where
    S: tower::Service<Request<Body>, Response = Response<tonic::body::Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    Box::new(move |request| {
        // Generated servers are always ready.
        let call = server.clone().call(request);
        call.map(|answer| match answer {
            Ok(answer) => answer.map(Body::new),
            Err(never) => match never {},
        })
        .boxed()
    })
}

/// Path of the method of reflection v1.
const V1: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
/// Path of the method of reflection v1alpha, which older clients call.
const V1ALPHA: &str = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
/// Longest request of a client, in bytes: a name.
const MAX_REQUEST: usize = 8 << 10;

/// Server reflection, in both versions that clients speak: of the service with these descriptors, and of health.
struct Reflection {
    v1: Handler,
    v1alpha: Handler,
}

impl Reflection {
    /// # Errors
    /// The descriptors cannot be decoded.
    pub(super) fn new(descriptors: &'static [u8]) -> Result<Self, Error> {
        let builder = || {
            Builder::configure()
                .register_encoded_file_descriptor_set(descriptors)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let v1 = builder().build_v1()?.max_decoding_message_size(MAX_REQUEST);
        let v1alpha = builder().build_v1alpha()?.max_decoding_message_size(MAX_REQUEST);
        Ok(Self { v1: handler(v1), v1alpha: handler(v1alpha) })
    }
}
