//! The verbs, one file each (k8s.io/apiserver/pkg/endpoints/handlers).

mod admit;
mod context;
mod create;
mod delete;
pub mod fencing;
mod get;
mod guaranteed_update;
pub(crate) mod managed_fields;
mod metadata;
mod patch;
mod patched;
mod quota;
mod selection;
mod size;
mod update;
mod watch;

pub use context::{RequestContext, Resource};
use drydock_serving::request::info::Verb;
pub use get::{LIST_ROOM, budget as list_budget};

use axum::body::Body;
use drydock_machinery::quote::go_quote;
use drydock_machinery::{ApiError, names};
use http::Response;

use crate::wire::body::RequestBody;

/// Whether the body of a request with this verb is read.
pub fn takes_body(verb: &Verb) -> bool {
    matches!(verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection)
}

/// Answers a request on a resource.
pub async fn dispatch(request: &RequestContext, body: &RequestBody) -> Result<Response<Body>, ApiError> {
    check_name(&request.info.name)?;
    match request.info.verb {
        Verb::Get => get::get(request).await,
        Verb::List => get::list(request).await,
        Verb::Watch => watch::watch(request).await,
        Verb::Create => create::create(request, body).await,
        Verb::Update => update::update(request, body).await,
        Verb::Patch => patch::patch(request, body).await,
        Verb::Delete => delete::delete(request, body).await,
        Verb::DeleteCollection => delete::delete_collection(request, body).await,
        Verb::Other(_) => Err(ApiError::method_not_allowed()),
    }
}

/// Returns 400 for a name that could not be part of a key (k8s.io/apiserver pkg/registry/generic/registry/store.go,
/// NamespaceKeyFunc).
fn check_name(name: &str) -> Result<(), ApiError> {
    let wrong = if name.is_empty() { Vec::new() } else { names::path_segment(name, false) };
    if wrong.is_empty() {
        return Ok(());
    }
    let (name, why) = (go_quote(name), wrong.join(";"));
    Err(ApiError::bad_request(format!("Name parameter invalid: {name}: {why}")))
}

/// Whether a verb is served on the URL at all: the object or its status, by name or as a collection.
pub fn is_served(request: &RequestContext, method: &http::Method) -> bool {
    let named = !request.info.name.is_empty();
    let whole = !request.names().namespaced || !request.info.namespace.is_empty();
    if method == http::Method::HEAD {
        return false;
    }
    match (&request.info.verb, request.info.subresource.as_str()) {
        (Verb::Get | Verb::Update | Verb::Patch, "" | "status") => named,
        (Verb::List, "") => true,
        // A path may say `watch` too, under any method.
        (Verb::Watch, "") => method == http::Method::GET,
        (Verb::Create, "") => !named && whole,
        (Verb::Delete, "") => named,
        (Verb::DeleteCollection, "") => whole,
        _ => false,
    }
}
