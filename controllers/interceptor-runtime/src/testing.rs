//! An API server with one request, which checks entries as the real one does.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use drydock_api::eviction_request::transitions::DEFAULT_HEARTBEAT_DEADLINE;
use drydock_api::eviction_request::{EvictionRequest, EvictionRequestStrategy};
use drydock_machinery::strategy::Strategy;
use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::requests::RequestClient;

/// The interceptor under test.
pub(crate) const NAME: &str = "a.example.com";

/// The time of the paused runtime.
pub(crate) fn clock() -> Timestamp {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let (start, now) = (*START, tokio::time::Instant::now().into_std());
    let at_start = Timestamp::from_second(1_800_000_000).unwrap();
    // The runtime of the first test began before the first call.
    let before = at_start.checked_sub(start.saturating_duration_since(now)).unwrap();
    before.checked_add(now.saturating_duration_since(start)).unwrap()
}

/// The API server.
pub(crate) struct ApiServer {
    pub(crate) request: Value,
    /// The entries that it accepted.
    pub(crate) accepted: Vec<Value>,
    /// What it answers at first, the last one first; none is an answer that never comes.
    pub(crate) unwell: Vec<Option<(u16, &'static str)>>,
    /// Its clock minus that of the interceptor.
    pub(crate) skew: SignedDuration,
}

impl ApiServer {
    /// With a request that the interceptor has the turn of.
    pub(crate) fn start() -> Arc<Mutex<ApiServer>> {
        let request = request("own", json!({"name": NAME, "message": ""}));
        let (accepted, unwell) = (Vec::new(), Vec::new());
        Arc::new(Mutex::new(ApiServer { request, accepted, unwell, skew: SignedDuration::ZERO }))
    }

    fn now(&self) -> Timestamp {
        clock().checked_add(self.skew).unwrap()
    }

    fn answer(&mut self, method: &str, body: &Value) -> Option<(u16, String)> {
        if let Some(answer) = self.unwell.pop() {
            return answer.map(|(code, text)| (code, text.to_owned()));
        }
        if method == "PATCH" {
            let mut changed = self.request.clone();
            changed["status"]["interceptors"][0] = body["status"]["interceptors"][0].clone();
            let [new, old] = [&changed, &self.request].map(|object| typed(object.clone()));
            let strategy = EvictionRequestStrategy::new(DEFAULT_HEARTBEAT_DEADLINE);
            let errors = strategy.validate_status_update(&new, &old, self.now());
            if let Some(error) = errors.first() {
                let status = json!({"kind": "Status", "code": 422, "message": error.to_string()});
                return Some((422, status.to_string()));
            }
            self.request = changed;
            self.accepted.push(body["status"]["interceptors"][0].clone());
        }
        Some((200, self.request.to_string()))
    }
}

/// A client of it, as the interceptor has one.
pub(crate) fn client(server: &Arc<Mutex<ApiServer>>) -> Arc<RequestClient> {
    let server = server.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = server.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
            let date = jiff::fmt::rfc2822::to_string(&server.lock().now().to_zoned(jiff::tz::TimeZone::UTC));
            let answer = server.lock().answer(parts.method.as_str(), &body);
            let Some((code, text)) = answer else { return std::future::pending().await };
            let response = Response::builder().status(code).header("date", date.unwrap());
            Ok::<_, kube::Error>(response.body(Body::from(text.into_bytes())).unwrap())
        }
    });
    Arc::new(RequestClient::new(Client::new(service, "ns"), NAME.to_owned(), clock))
}

/// A request with this UID, in which the interceptor with this entry is active.
pub(crate) fn request(uid: &str, entry: Value) -> Value {
    let last = "imperative-eviction.k8s.io";
    json!({
        "apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest",
        "metadata": {"name": "pod-uid", "namespace": "ns", "uid": uid},
        "spec": {"target": {"pod": {"name": "p", "uid": "pod-uid"}}, "requesters": [{"name": "r.example.com"}]},
        "status": {
            "activeInterceptors": [NAME], "targetInterceptors": [{"name": NAME}, {"name": last}],
            "interceptors": [entry, {"name": last, "message": ""}],
        },
    })
}

pub(crate) fn typed(request: Value) -> EvictionRequest {
    serde_json::from_value(request).unwrap()
}
