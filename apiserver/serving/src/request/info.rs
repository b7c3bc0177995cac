//! What a request is about, read off its method and URL (k8s.io/apiserver/pkg/endpoints/request/requestinfo.go).

use std::fmt;

use drydock_machinery::ApiError;

use crate::request::query::Query;

/// Maximum bytes of a path that are read; Kubernetes serves none longer than about 900. The rest of a longer path
/// appears in no review, log or metric.
pub(crate) const PATH_MAX: usize = 2_048;
/// Paths that every client may get, without authentication; those below them show the reasons of failures
/// (k8s.io/apiserver pkg/server/options, NewDelegatingAuthorizationOptions).
pub(crate) const PROBE_PATHS: [&str; 3] = ["/healthz", "/livez", "/readyz"];
/// Bytes of the longest selector that is sent to an authorizer. Without a selector the authorizer decides on a
/// request for all objects, which is never granted more easily (KEP-4601).
const TOLD_MAX: usize = 1_024;

/// What a request wants done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verb {
    /// One object.
    #[default]
    Get,
    /// Many objects.
    List,
    /// A stream of changes.
    Watch,
    /// A new object.
    Create,
    /// A whole object in place of another.
    Update,
    /// A change to an object.
    Patch,
    /// Removal of one object.
    Delete,
    /// Removal of many objects.
    DeleteCollection,
    /// Lower-case method of a request that is not about a resource; empty for an unknown method on a resource.
    Other(String),
}

impl Verb {
    /// As authorization and metrics spell it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other(method) => method,
        }
    }

    /// Whether a request of this verb may change something.
    pub fn is_mutating(&self) -> bool {
        match self {
            Self::Get | Self::List | Self::Watch => false,
            Self::Other(method) => !matches!(method.as_str(), "get" | "head" | "options"),
            _ => true,
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether it is about a resource of an API group.
    pub is_resource: bool,
    /// Decoded URL path, up to 2,048 bytes.
    pub path: String,
    /// Whether the path is longer than that.
    pub is_cut: bool,
    /// What is to be done.
    pub verb: Verb,
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace; empty for cluster-scoped and all-namespaces requests.
    pub namespace: String,
    /// Resource (lower-case plural).
    pub resource: String,
    /// Subresource, empty for the object itself.
    pub subresource: String,
    /// Object's name; a list or watch with a field selector on `metadata.name` has one too.
    pub name: String,
    /// Path segments beyond the subresource: a URL that has them names nothing.
    pub rest: Vec<String>,
    /// Query parameters.
    pub query: Query,
    /// Raw label selector of a list, watch or deletecollection, for the authorizer; absent if it is long.
    pub label_selector: Option<String>,
    /// The same of the field selector.
    pub field_selector: Option<String>,
}

impl RequestInfo {
    /// Reads what a request is about.
    pub fn parse(method: &http::Method, uri: &http::Uri) -> Self {
        let read = uri.path().as_bytes();
        let is_cut = read.len() > PATH_MAX;
        let read = read.get(..PATH_MAX).unwrap_or(read);
        let path = percent_encoding::percent_decode(read).decode_utf8_lossy().into_owned();
        let mut info = Self {
            verb: Verb::Other(method.as_str().to_ascii_lowercase()),
            query: Query::parse(uri.query().unwrap_or_default()),
            is_cut,
            ..Self::default()
        };
        if is_cut {
            info.path = path;
            return info;
        }
        if let Some((group, version, parts)) = split_resource_path(&path) {
            info.is_resource = true;
            info.group = group.to_owned();
            info.version = version.to_owned();
            read_parts(&mut info, method, &parts);
        }
        info.path = path;
        info
    }

    /// Returns 404 if the path is longer than 2,048 bytes. kube-apiserver has no such bound, and answers 404 when it
    /// has authorized the request and found nothing under that name.
    pub fn check_path(&self) -> Result<(), ApiError> {
        if self.is_cut { Err(ApiError::unknown_path()) } else { Ok(()) }
    }
}

/// Group, version and what follows them, if the path is a resource's.
fn split_resource_path(path: &str) -> Option<(&str, &str, Vec<&str>)> {
    let mut parts = path.trim_matches('/').split('/');
    let group = match parts.next()? {
        "api" => "",
        "apis" => parts.next()?,
        _ => return None,
    };
    let version = parts.next()?;
    let rest: Vec<&str> = parts.collect();
    (!rest.is_empty()).then_some((group, version, rest))
}

fn read_parts(info: &mut RequestInfo, method: &http::Method, parts: &[&str]) {
    let mut parts = parts;
    let by_path = parts.len() > 1 && parts[0] == "watch";
    if by_path {
        info.verb = Verb::Watch;
        parts = &parts[1..];
    } else {
        info.verb = verb_of(method);
    }
    if let ["namespaces", namespace, rest @ ..] = parts {
        info.namespace = (*namespace).to_owned();
        if rest.first().is_some_and(|r| *r != "status" && *r != "finalize") {
            parts = rest;
        }
    }
    let part = |i: usize| parts.get(i).map(|p| (*p).to_owned()).unwrap_or_default();
    (info.resource, info.name, info.subresource) = (part(0), part(1), part(2));
    info.rest = parts.iter().skip(3).map(|p| (*p).to_owned()).collect();
    if info.name.is_empty() {
        widen_to_collection(info);
    }
    if !by_path && matches!(info.verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
        let told = |selector: &&str| selector.len() <= TOLD_MAX;
        info.label_selector = info.query.get("labelSelector").filter(told).map(str::to_owned);
        info.field_selector = info.query.get("fieldSelector").filter(told).map(str::to_owned);
    }
}

fn verb_of(method: &http::Method) -> Verb {
    match method.as_str() {
        "GET" | "HEAD" => Verb::Get,
        "POST" => Verb::Create,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        "DELETE" => Verb::Delete,
        _ => Verb::Other(String::new()),
    }
}

/// Without a name, a get is a list or a watch, and a delete is a deletecollection.
fn widen_to_collection(info: &mut RequestInfo) {
    match info.verb {
        Verb::Get => {
            info.verb = if info.query.flag("watch") { Verb::Watch } else { Verb::List };
            if let Some(name) = info.query.get("fieldSelector").and_then(exact_name) {
                info.name = name;
            }
        }
        Verb::Delete => info.verb = Verb::DeleteCollection,
        _ => {}
    }
}

/// The name that a field selector demands, if it is one that can stand in a path and the selector is not too long.
fn exact_name(selector: &str) -> Option<String> {
    if selector.len() > TOLD_MAX {
        return None;
    }
    let term = selector.split(',').find_map(|term| term.trim().strip_prefix("metadata.name="))?;
    let name = term.strip_prefix('=').unwrap_or(term);
    let bad = name.is_empty() || name == "." || name == ".." || name.contains(['/', '%', '\\', '=']);
    (!bad).then(|| name.to_owned())
}

#[cfg(test)]
#[path = "info_tests.rs"]
mod tests;
