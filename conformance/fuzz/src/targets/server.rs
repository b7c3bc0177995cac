//! Whole requests to a server of both kinds, as they leave authorization.
//!
//! An input is `METHOD URI`, header lines, an empty line, and a body. Nothing is stored: writes are dry runs.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_machinery::kind::Kind;
use drydock_server::api_group::ApiGroup;
use drydock_server::api_group::ApiRequest;
use drydock_server::flow_control::PriorityLevel;
use drydock_server::handlers::Resource;
use drydock_serving::auth::Caller;
use drydock_serving::auth::authz::CreateAuthorizer;
use drydock_serving::request::info::{RequestInfo, Verb};
use drydock_serving::request::user::User;
use drydock_storage::backend::Backend;
use drydock_storage::cache::{Config, WatchCache};
use drydock_storage::store::Store;
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Uri};
use http_body_util::BodyExt;

use crate::kinds;

struct FuzzedServer {
    runtime: tokio::runtime::Runtime,
    api: ApiGroup,
    _folder: tempfile::TempDir,
}

/// All users may create by applying.
struct Everybody;

#[async_trait]
impl CreateAuthorizer for Everybody {
    async fn may_create(&self, _: &Caller, _: &User, _: &RequestInfo) -> Result<(), ApiError> {
        Ok(())
    }
}

static SERVER: LazyLock<FuzzedServer> = LazyLock::new(FuzzedServer::start);

/// The reason of a 500 that is ours. Kubernetes answers some errors of clients with a 500 too, without a reason: a
/// resourceVersion that is no number, a patch that does not fit the schema.
const OURS: &str = "InternalError";

/// One request.
pub fn request(data: &[u8]) {
    let Some((method, uri, headers, body)) = parse(data) else { return };
    let server = &*SERVER;
    let (status, body) = server.runtime.block_on(server.send(method, uri, headers, body));
    let text = String::from_utf8_lossy(&body);
    assert!(status != 500 || !text.contains(OURS), "nobody's request is our fault: {text}");
}

type FuzzedParts = (Method, Uri, HeaderMap, Vec<u8>);

fn parse(data: &[u8]) -> Option<FuzzedParts> {
    let end = data.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = end.map_or((data, &b""[..]), |at| (&data[..at], &data[at + 2..]));
    let mut lines = head.split(|byte| *byte == b'\n');
    let line = std::str::from_utf8(lines.next()?).ok()?;
    let (method, uri) = line.split_once(' ')?;
    let method: Method = method.parse().ok()?;
    let dry = if uri.contains('?') { "&dryRun=All" } else { "?dryRun=All" };
    let reads = matches!(method, Method::GET | Method::HEAD);
    let uri = format!("{uri}{}", if reads { "" } else { dry }).parse().ok()?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let at = line.iter().position(|byte| *byte == b':')?;
        headers.append(
            HeaderName::from_bytes(&line[..at]).ok()?,
            HeaderValue::from_bytes(&line[at + 1..]).ok()?,
        );
    }
    Some((method, uri, headers, body.to_vec()))
}

impl FuzzedServer {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("db");
        let api = runtime.block_on(async {
            let options = SqliteOptions::default();
            let backend: Arc<dyn Backend> = Arc::new(SqliteBackend::open(path, options).expect("a database"));
            let mut resources = Vec::new();
            for kind in kinds::served() {
                resources.push(resource(kind, &backend).await);
            }
            ApiGroup::new(resources).with_authorizer(Arc::new(Everybody))
        });
        let server = Self { runtime, api, _folder: folder };
        server.runtime.block_on(server.fill());
        server
    }

    /// An object of each kind, so that there is something to change.
    async fn fill(&self) {
        for (kind, sample) in kinds::all().into_iter().zip(kinds::samples()) {
            let names = kind.names();
            let scope = if names.namespaced { "namespaces/default/" } else { "" };
            let uri = format!("/apis/{}/{scope}{}", names.api_version(), names.plural);
            let mut new = sample;
            new.set_meta("resourceVersion", None);
            let body = new.to_json().to_vec();
            let (status, answer) =
                self.send(Method::POST, uri.parse().expect("a URI"), HeaderMap::new(), body).await;
            assert_eq!(status, 201, "{}", String::from_utf8_lossy(&answer));
        }
    }

    /// The status and the body; of a stream, nothing is read.
    async fn send(&self, method: Method, uri: Uri, headers: HeaderMap, body: Vec<u8>) -> (u16, Vec<u8>) {
        let mut request = http::Request::new(Body::from(body));
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
        let user = User { name: "fuzz".to_owned(), ..User::default() };
        let request = ApiRequest::local(request, user, PriorityLevel::Everybody, Duration::from_secs(34));
        let is_watch = request.info.verb == Verb::Watch;
        let response: Response<Body> = self.api.handle(request).await;
        let status = response.status().as_u16();
        if is_watch {
            return (status, Vec::new());
        }
        let body = response.into_body().collect().await.map(|body| body.to_bytes().to_vec());
        (status, body.unwrap_or_default())
    }
}

async fn resource(kind: Arc<dyn Kind>, backend: &Arc<dyn Backend>) -> Resource {
    let names = kind.names();
    let cache = WatchCache::start(Store::new(backend.clone(), names.group, names.plural), Config::default());
    cache.wait_until_ready().await;
    Resource { kind, usage: cache.usage(), storage: Arc::new(cache), admission: Vec::new(), versions: None }
}
