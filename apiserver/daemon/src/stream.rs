//! The gRPC status stream as a service that the generic server mounts.

use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use axum::body::Body;
use drydock_api::{GROUP, VERSION, eviction_request, node_maintenance};
use drydock_server::generic::Server;
use drydock_server::grpc::{ResourceRead, Service};
use drydock_server::responses::{InitialEvents, Streaming};
use drydock_serving::request::user::User;
use drydock_stream::{Config, StatusStream};
use http::{Request, Response};

use crate::flags::Flags;

/// Mounts the status stream over the watch caches of both kinds. Fails if a kind is not installed.
pub fn mount(server: &mut Server, flags: &Flags) -> anyhow::Result<()> {
    let storage =
        |resource| server.storage(GROUP, resource).with_context(|| format!("{resource} is not installed"));
    let (maintenances, evictions) =
        (storage(node_maintenance::RESOURCE)?, storage(eviction_request::RESOURCE)?);
    let usual = Config::default();
    let fill_timeout = usual.fill_timeout.min(flags.request_timeout / 2);
    let config = Config { heartbeat_deadline: flags.heartbeat_deadline, fill_timeout, ..usual };
    let stream = StatusStream::new(maintenances, evictions, config);
    stream.register(server.metrics().registry());
    server.mount(Arc::new(Mounted(stream)));
    Ok(())
}

struct Mounted(Arc<StatusStream>);

#[async_trait]
impl Service for Mounted {
    fn name(&self) -> &'static str {
        StatusStream::NAME
    }

    fn is_streaming(&self, path: &str) -> Option<bool> {
        StatusStream::is_streaming(path)
    }

    fn reads(&self, path: &str, message: &[u8]) -> Result<Vec<ResourceRead>, tonic::Status> {
        let reads = StatusStream::reads(path, message)?;
        let read = |read: drydock_stream::ReadAttributes| ResourceRead {
            watch: read.watch,
            group: GROUP.to_owned(),
            version: VERSION.to_owned(),
            resource: read.resource.to_owned(),
            namespace: read.namespace,
            name: read.name,
        };
        Ok(reads.into_iter().map(read).collect())
    }

    async fn call(&self, user: &User, request: Request<Body>) -> Response<Body> {
        let initial = InitialEvents::default();
        let (snapshot, streams) = (initial.clone(), self.is_streaming(request.uri().path()) == Some(true));
        let answer = self.0.call(user.flow(), request, move || snapshot.sent()).await;
        let mut answer = answer.map(Body::new);
        if streams {
            answer.extensions_mut().insert(Streaming { initial: Some(initial), ..Streaming::default() });
        }
        answer
    }

    fn descriptors(&self) -> &'static [u8] {
        StatusStream::DESCRIPTORS
    }
}
