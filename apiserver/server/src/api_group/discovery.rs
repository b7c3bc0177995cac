//! `/version`, and `/apis` and below: which groups, versions and resources there are
//! (k8s.io/apiserver/pkg/endpoints/discovery, with its aggregated form).

use axum::body::Body;
use bytes::Bytes;
use drydock_machinery::ApiError;
use drydock_machinery::discovery;
use drydock_machinery::document::Document;
use drydock_machinery::kind::Kind;
use drydock_serving::request::query::Query;
use drydock_serving::wire::negotiate::{self, Output, Transform, WireFormat};
use drydock_serving::wire::response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

/// The documents, made once.
pub struct Discovery {
    aggregated: DiscoveryDocument,
    /// Of the JSON of the aggregated document, in whatever format it is sent.
    etag: String,
    /// By path below `/apis`, which itself has the empty path.
    plain: Vec<(String, DiscoveryDocument)>,
    groups: Vec<&'static str>,
}

/// A document, and what it is in protobuf.
struct DiscoveryDocument {
    json: Value,
    protobuf: Bytes,
}

impl DiscoveryDocument {
    fn new(json: Value) -> Self {
        Self { protobuf: discovery::encode_document(&json), json }
    }

    fn response(&self, output: Output, headers: &HeaderMap) -> Response<Body> {
        match output.format {
            WireFormat::Protobuf => {
                response::bytes(StatusCode::OK, output.format.media_type(), self.protobuf.clone(), headers)
            }
            _ => response::value(&self.json, output, headers),
        }
    }
}

impl Discovery {
    /// Documents of these kinds.
    pub fn new(kinds: &[&dyn Kind]) -> Self {
        let mut plain = vec![(String::new(), DiscoveryDocument::new(discovery::api_group_list(kinds)))];
        for names in kinds.iter().map(|kind| kind.names()) {
            let (group, version) = (names.group, names.version);
            push(&mut plain, group.to_owned(), discovery::api_group(kinds, group));
            let resources = discovery::api_resource_list(kinds, group, version);
            push(&mut plain, format!("{group}/{version}"), resources);
        }
        let aggregated = discovery::api_group_discovery_list(kinds);
        Self {
            etag: Document::new(&aggregated).etag(),
            aggregated: DiscoveryDocument::new(aggregated),
            plain,
            groups: kinds.iter().map(|kind| kind.names().group).collect(),
        }
    }

    /// Whether a path is within a group that is served. Nothing else below `/apis` has a route.
    pub fn has_route(&self, path: &str) -> bool {
        let group = path.strip_prefix("/apis/").and_then(|below| below.split('/').next());
        group.is_some_and(|group| self.groups.contains(&group))
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
        let aggregated = if path.is_empty() { negotiate::aggregated_discovery(headers, query) } else { None };
        if let Some(output) = aggregated {
            return Some(Ok(self.aggregated(output, headers)));
        }
        let (_, document) = self.plain.iter().find(|(known, _)| known == path)?;
        let output = match path.contains('/') {
            true => negotiate::routed(headers, query),
            false => negotiate::plain(headers, query),
        };
        Some(output.map(|output| document.response(output, headers)))
    }

    /// k8s.io/apiserver/pkg/endpoints/discovery/aggregated/etag.go
    fn aggregated(&self, output: Output, headers: &HeaderMap) -> Response<Body> {
        let same = headers.get(IF_NONE_MATCH).is_some_and(|sent| sent.as_bytes() == self.etag.as_bytes());
        let mut response = if same {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            let mut response = self.aggregated.response(output, headers);
            let media_type = HeaderValue::from_static(aggregated_media_type(output.format));
            response.headers_mut().insert(CONTENT_TYPE, media_type);
            response
        };
        let own = response.headers_mut();
        own.insert(ETAG, HeaderValue::from_str(&self.etag).unwrap_or(HeaderValue::from_static("")));
        own.append(VARY, HeaderValue::from_static("Accept"));
        own.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        response
    }
}

/// The aggregator looks for the parameters.
fn aggregated_media_type(format: WireFormat) -> &'static str {
    match format {
        WireFormat::Json => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        WireFormat::Yaml => "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        WireFormat::Protobuf => {
            "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        }
    }
}

fn push(documents: &mut Vec<(String, DiscoveryDocument)>, path: String, document: Option<Value>) {
    if let Some(document) = document.filter(|_| documents.iter().all(|(known, _)| *known != path)) {
        documents.push((path, DiscoveryDocument::new(document)));
    }
}

/// Answers with a document in indented JSON, whatever the client accepts.
pub fn raw_json(document: &Value, headers: &HeaderMap) -> Response<Body> {
    let output = Output { format: WireFormat::Json, pretty: true, transform: Transform::None };
    response::value(document, output, headers)
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
