//! For tests of the code around the machines: a context whose API server is a function.

use std::collections::BTreeMap;
use std::sync::Arc;

use drydock_serving::tasks::ProgramTasks;
use http::header::DATE;
use http::{HeaderValue, Request, Response};
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::cache::{DaemonSetOwner, HostCaches, MIRROR_ANNOTATION, OwnerRef, Pod};
use crate::clock::Clock;
use crate::context::ControllerContext;
use crate::events::EventRecorder;
use crate::lease::LeaseHandle;
use crate::metrics::Metrics;
use crate::skew::Skew;

/// A context that holds the lease, with empty caches and a clock that goes as tokio's does. `answer` gets the method, the
/// path with its query, and the body (null if there is none) of each request, and returns the code and the body of the
/// response.
pub fn context(
    answer: impl Fn(&str, &str, Value) -> (u16, Value) + Send + Sync + 'static,
) -> ControllerContext {
    context_ahead(SignedDuration::ZERO, answer)
}

/// Like [`context`], with an API server whose clock is ahead of ours by `by`.
pub fn context_ahead(
    by: SignedDuration,
    answer: impl Fn(&str, &str, Value) -> (u16, Value) + Send + Sync + 'static,
) -> ControllerContext {
    let metrics = Metrics::new();
    let clock = Clock::of_tokio(Timestamp::now());
    let client = client(clock, by, answer);
    let tasks = ProgramTasks::new(CancellationToken::new());
    ControllerContext {
        evictions: client.clone(),
        client,
        caches: HostCaches::default(),
        recorder: EventRecorder::disconnected(&metrics, clock),
        metrics,
        lease: LeaseHandle::unelected(clock),
        clock,
        skew: Skew::default(),
        tasks,
    }
}

/// A pod as one of a DaemonSet that is alive.
pub fn of_daemon_set(name: &str, uid: &str, pod: Pod) -> Pod {
    let (api_version, kind) = ("apps/v1".into(), "DaemonSet".into());
    let owner = OwnerRef { api_version, kind, name: name.into(), uid: uid.into() };
    Pod { controller: Some(owner.into()), daemon_set_owner: DaemonSetOwner::Alive, ..pod }
}

/// A pod as its kubelet writes the mirror of a static one.
pub fn mirror(pod: Pod) -> Pod {
    let (api_version, kind) = ("v1".into(), "Node".into());
    let owner = OwnerRef { api_version, kind, name: pod.node_name.clone(), uid: "node".into() };
    let mut annotations = BTreeMap::clone(&pod.annotations);
    annotations.insert(MIRROR_ANNOTATION.into(), "a-hash".into());
    let daemon_set_owner = DaemonSetOwner::Unnamed;
    Pod { controller: Some(owner.into()), annotations: annotations.into(), daemon_set_owner, ..pod }
}

/// A pod as it is once the cache has its DaemonSet, if it names one: that is alive.
pub fn with_its_daemon_set(pod: Pod) -> Pod {
    let daemon_set_owner = if pod.is_undecided() { DaemonSetOwner::Alive } else { pod.daemon_set_owner };
    Pod { daemon_set_owner, ..pod }
}

/// Returns the code and the body of a failure. A NotFound names an object, as that of a server does which has
/// looked for one.
pub fn failure(code: u16, reason: &str) -> (u16, Value) {
    let mut body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": reason, "code": code,
    });
    if reason == "NotFound" {
        body["details"] = json!({ "name": "name", "kind": "things" });
    }
    (code, body)
}

/// The answer of a server that does not know the API for a moment.
pub fn unknown_path() -> (u16, Value) {
    let mut answer = failure(404, "NotFound");
    answer.1["details"] = json!({});
    answer
}

fn client(
    clock: Clock,
    ahead: SignedDuration,
    answer: impl Fn(&str, &str, Value) -> (u16, Value) + Send + Sync + 'static,
) -> Client {
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
            response.headers_mut().extend(date(clock, ahead).map(|date| (DATE, date)));
            Ok::<_, kube::Error>(response)
        }
    });
    Client::new(service, "default")
}

fn date(clock: Clock, ahead: SignedDuration) -> Option<HeaderValue> {
    let now = clock.now().checked_add(ahead).ok()?;
    HeaderValue::from_str(&DateTimePrinter::new().timestamp_to_rfc9110_string(&now).ok()?).ok()
}
