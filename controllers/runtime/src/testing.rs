//! A context for tests of what surrounds the machines: its API server is a function.

use std::sync::Arc;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cache::Caches;
use crate::context::Context;
use crate::events::Recorder;
use crate::lease::LeaseHandle;
use crate::metrics::Metrics;

/// A context that holds the lease, with empty caches. `answer` is given the method, the path with its query, and the body
/// (null if there is none) of each request, and gives code and body.
pub fn context(answer: impl Fn(&str, &str, Value) -> (u16, Value) + Send + Sync + 'static) -> Context {
    let metrics = Metrics::new();
    let client = client(answer);
    Context {
        evictions: client.clone(),
        client,
        caches: Caches::default(),
        recorder: Recorder::disconnected(&metrics),
        metrics,
        shutdown: CancellationToken::new(),
        lease: LeaseHandle::unelected(),
        tasks: TaskTracker::new(),
    }
}

/// The body of a failure.
pub fn failure(code: u16, reason: &str) -> (u16, Value) {
    (
        code,
        json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code }),
    )
}

fn client(answer: impl Fn(&str, &str, Value) -> (u16, Value) + Send + Sync + 'static) -> Client {
    let answer = Arc::new(answer);
    let service = tower::service_fn(move |request: Request<Body>| {
        let answer = answer.clone();
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect_bytes().await?;
            let body = serde_json::from_slice(&bytes).unwrap_or_default();
            let path = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
            let (code, body) = answer(parts.method.as_str(), &path, body);
            let mut response = Response::new(Body::from(body.to_string().into_bytes()));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
            Ok::<_, kube::Error>(response)
        }
    });
    Client::new(service, "default")
}
