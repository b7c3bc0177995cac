//! A server of gadgets, and requests to it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_machinery::kind::Kind;
use drydock_server::admission::Admission;
use drydock_server::api_group::{ApiGroup, ApiRequest};
use drydock_server::flow_control::PriorityLevels;
use drydock_server::handlers::Resource;
use drydock_server::handlers::fencing::FencingTokens;
use drydock_serving::auth::Caller;
use drydock_serving::auth::authz::CreateAuthorizer;
use drydock_serving::request::info::RequestInfo;
use drydock_serving::request::user::User;
use drydock_storage::backend::Backend;
use drydock_storage::cache::{self, Config, WatchCache};
use drydock_storage::fence::Fences;
use drydock_storage::store::Store;
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::gadget::Gadget;

pub struct Server {
    pub api: ApiGroup,
    pub backend: Arc<dyn Backend>,
    pub shutdown: CancellationToken,
    /// The metrics of the caches of gadgets and widgets.
    pub caches: [Arc<cache::Metrics>; 2],
    pub _dir: tempfile::TempDir,
}

pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    pub fn header(&self, name: &str) -> Vec<String> {
        self.headers.get_all(name).iter().map(|v| v.to_str().unwrap().to_owned()).collect()
    }
}

/// Lets everybody create but the user `reader`.
pub struct NotTheReader;

#[async_trait]
impl CreateAuthorizer for NotTheReader {
    async fn may_create(&self, _: &Caller, user: &User, _: &RequestInfo) -> Result<(), ApiError> {
        if user.name == "reader" { Err(ApiError::forbidden("test.io", "gadgets", "", "no")) } else { Ok(()) }
    }
}

impl Server {
    pub async fn start() -> Self {
        Self::with_admission(Vec::new()).await
    }

    pub async fn with_admission(admission: Vec<Arc<dyn Admission>>) -> Self {
        Self::with(admission, Config::default(), SqliteOptions::default()).await
    }

    /// Forgets history at once: what is compacted below is gone.
    pub async fn forgetful() -> Self {
        let config = Config { ring_events: 1, ..Config::default() };
        Self::with(Vec::new(), config, SqliteOptions::default()).await
    }

    /// Gadgets have a quota and a size.
    pub async fn bounded() -> Self {
        Self::bounded_in(SqliteOptions::default()).await
    }

    pub async fn bounded_in(store: SqliteOptions) -> Self {
        Self::of(Gadget::bounded(), Vec::new(), Config::default(), store).await
    }

    pub async fn with(admission: Vec<Arc<dyn Admission>>, config: Config, store: SqliteOptions) -> Self {
        Self::of(Gadget::namespaced(), admission, config, store).await
    }

    async fn of(
        gadget: Gadget,
        admission: Vec<Arc<dyn Admission>>,
        config: Config,
        store: SqliteOptions,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let backend: Arc<dyn Backend> = Arc::new(SqliteBackend::open(dir.path().join("db"), store).unwrap());
        let shutdown = CancellationToken::new();
        let (gadgets, of_gadgets) = resource(gadget, "gadgets", &backend, &admission, &config).await;
        let (widgets, of_widgets) =
            resource(Gadget::cluster(), "widgets", &backend, &admission, &config).await;
        let api = ApiGroup::new(vec![gadgets, widgets])
            .with_shutdown(shutdown.clone())
            .with_authorizer(Arc::new(NotTheReader))
            .with_fencing_tokens(FencingTokens::new(Arc::new(Fences::new(backend.clone()))));
        Self { api, backend, shutdown, caches: [of_gadgets, of_widgets], _dir: dir }
    }

    pub async fn raw(&self, method: &str, uri: &str, headers: &[(&str, &str)], body: Body) -> Response<Body> {
        let method: http::Method = method.parse().unwrap();
        let pairs = headers.iter().map(|(name, value)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        });
        let headers: HeaderMap = pairs.collect();
        let name = headers.get("x-user").map_or("tester", |v| v.to_str().unwrap()).to_owned();
        let group = headers.get("x-group").map(|v| v.to_str().unwrap().to_owned());
        let mut request = http::Request::new(body);
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) =
            (method, uri.parse().unwrap(), headers);
        let groups = group.into_iter().collect();
        let user = User { name, groups, ..User::default() };
        let level = PriorityLevels::new(["controller", "leader", "second"].map(str::to_owned)).of(&user);
        let time = request.headers().get("x-seconds").map_or(34, |v| v.to_str().unwrap().parse().unwrap());
        self.api.handle(ApiRequest::local(request, user, level, Duration::from_secs(time))).await
    }

    pub async fn send(&self, method: &str, uri: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send_bytes(method, uri, headers, body.as_bytes().to_vec()).await
    }

    pub async fn send_bytes(
        &self,
        method: &str,
        uri: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Answer {
        let (parts, body) = self.raw(method, uri, headers, Body::from(body)).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub async fn get(&self, uri: &str) -> Answer {
        self.send("GET", uri, &[], "").await
    }

    pub async fn post(&self, uri: &str, body: &Value) -> Answer {
        self.send("POST", uri, &[("user-agent", "tester/1")], &body.to_string()).await
    }

    pub async fn put(&self, uri: &str, body: &Value) -> Answer {
        self.send("PUT", uri, &[("user-agent", "tester/1")], &body.to_string()).await
    }

    pub async fn merge(&self, uri: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/merge-patch+json"), ("user-agent", "merger/1")];
        self.send("PATCH", uri, &headers, &body.to_string()).await
    }

    pub async fn strategic(&self, uri: &str, body: &Value) -> Answer {
        let headers =
            [("content-type", "application/strategic-merge-patch+json"), ("user-agent", "planner/1")];
        self.send("PATCH", uri, &headers, &body.to_string()).await
    }

    pub async fn apply(&self, uri: &str, body: &Value) -> Answer {
        self.send("PATCH", uri, &[("content-type", "application/apply-patch+yaml")], &body.to_string()).await
    }

    pub async fn delete(&self, uri: &str) -> Answer {
        self.send("DELETE", uri, &[], "").await
    }

    /// A stored gadget.
    pub async fn gadget(&self, name: &str, extra: Value) -> Value {
        self.post(GADGETS, &gadget(name, extra)).await.expect(201)
    }
}

pub const GADGETS: &str = "/apis/test.io/v1/namespaces/ns/gadgets";
pub const WIDGETS: &str = "/apis/test.io/v1/widgets";

/// A gadget with `extra` merged in.
pub fn gadget(name: &str, extra: Value) -> Value {
    let mut object = serde_json::json!({
        "apiVersion": "test.io/v1", "kind": "Gadget",
        "metadata": {"name": name}, "spec": {"size": 1},
    });
    merge(&mut object, extra);
    object
}

pub fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

async fn resource(
    kind: Gadget,
    plural: &str,
    backend: &Arc<dyn Backend>,
    admission: &[Arc<dyn Admission>],
    config: &Config,
) -> (Resource, Arc<cache::Metrics>) {
    let config = Config { quota: kind.quota(), ..config.clone() };
    let cache = WatchCache::start(Store::new(backend.clone(), "test.io", plural), config);
    cache.wait_until_ready().await;
    let metrics = cache.metrics();
    let (kind, usage, admission) = (Arc::new(kind), cache.usage(), admission.to_vec());
    (Resource { kind, storage: Arc::new(cache), admission, usage, versions: None }, metrics)
}
