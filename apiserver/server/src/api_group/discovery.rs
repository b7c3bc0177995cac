//! `/version`, and `/apis` and below: which groups, versions and resources there are
//! (k8s.io/apiserver/pkg/endpoints/discovery, with its aggregated form).

use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_machinery::discovery::{self, AGGREGATED_CONTENT_TYPE};
use drydock_machinery::document::Document;
use drydock_machinery::kind::Kind;
use drydock_serving::request::query::Query;
use drydock_serving::wire::{negotiate, response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

/// The documents, made once.
pub struct Discovery {
    aggregated: Document,
    /// By path below `/apis`, which itself has the empty path.
    plain: Vec<(String, Value)>,
}

impl Discovery {
    /// Documents of these kinds.
    pub fn new(kinds: &[&dyn Kind]) -> Self {
        let mut plain = vec![(String::new(), discovery::api_group_list(kinds))];
        for names in kinds.iter().map(|kind| kind.names()) {
            let (group, version) = (names.group, names.version);
            push(&mut plain, group.to_owned(), discovery::api_group(kinds, group));
            let resources = discovery::api_resource_list(kinds, group, version);
            push(&mut plain, format!("{group}/{version}"), resources);
        }
        Self { aggregated: discovery::api_group_discovery_list(kinds), plain }
    }

    /// Returns the answer to `/`: the paths that are served, among them those of the OpenAPI documents with these
    /// keys.
    pub fn root<'k>(&self, openapi: impl Iterator<Item = &'k String>) -> Value {
        let known = ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"];
        let below =
            self.plain.iter().map(|(path, _)| format!("/apis/{path}").trim_end_matches('/').to_owned());
        let openapi = openapi.map(|key| format!("/openapi/v3/{key}"));
        let mut paths: Vec<String> = below.chain(openapi).chain(known.map(str::to_owned)).collect();
        paths.sort();
        json!({"paths": paths})
    }

    /// Answers a get of a path below `/apis`; `None` if there is no such document.
    pub fn answer(
        &self,
        path: &str,
        headers: &HeaderMap,
        query: &Query,
    ) -> Option<Result<Response<Body>, ApiError>> {
        let path = path.trim_matches('/').strip_prefix("apis")?.trim_start_matches('/');
        if path.is_empty() && negotiate::wants_aggregated_discovery(headers) {
            return Some(Ok(self.aggregated(headers)));
        }
        let (_, document) = self.plain.iter().find(|(known, _)| known == path)?;
        Some(negotiate::plain(headers, query).map(|output| {
            let mut response = response::value(document, output, headers);
            if path.is_empty() {
                response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
            }
            response
        }))
    }

    fn aggregated(&self, headers: &HeaderMap) -> Response<Body> {
        let etag = self.aggregated.etag();
        let same = headers.get(IF_NONE_MATCH).is_some_and(|sent| sent.as_bytes() == etag.as_bytes());
        let mut response = if same {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            response::bytes(StatusCode::OK, AGGREGATED_CONTENT_TYPE, self.aggregated.body.clone(), headers)
        };
        let own = response.headers_mut();
        if same {
            own.remove(CONTENT_TYPE);
        }
        own.insert(ETAG, HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("")));
        own.append(VARY, HeaderValue::from_static("Accept"));
        own.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        response
    }
}

fn push(documents: &mut Vec<(String, Value)>, path: String, document: Option<Value>) {
    if let Some(document) = document.filter(|_| documents.iter().all(|(known, _)| *known != path)) {
        documents.push((path, document));
    }
}

/// What a server calls itself, in `/version` and in its OpenAPI documents.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Name.
    pub title: &'a str,
    /// `major.minor.patch`
    pub version: &'a str,
}

impl Identity<'_> {
    /// k8s.io/apimachinery/pkg/version Info.
    pub fn info(&self) -> Value {
        let mut parts = self.version.split('.');
        let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
        json!({
            "major": major, "minor": minor, "gitVersion": format!("v{}", self.version), "gitCommit": "",
            "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "rustc", "platform": platform,
        })
    }
}
