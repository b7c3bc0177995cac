//! Which form the documents that describe the API take. No object stands in for them but one: `/apis` has an aggregated
//! form.

use drydock_machinery::ApiError;
use http::HeaderMap;

use super::accept::{self, Clause};
use super::{
    FORMATS, MEDIA_TYPES, Output, Transform, WireFormat, accept_header, choose, options, route_accepts,
    route_refusal, wants_pretty,
};
use crate::request::query::Query;

/// The form of a document of discovery that kube-apiserver answers outside of go-restful: `/apis` and `/apis/GROUP`.
///
/// # Errors
/// 406 if the client accepts no format without a transform.
pub fn plain(headers: &HeaderMap, query: &Query) -> Result<Output, ApiError> {
    choose(&accept_header(headers), headers, query, false)
        .ok_or_else(|| ApiError::not_acceptable(&MEDIA_TYPES))
}

/// The form of `/apis/GROUP/VERSION`, which go-restful matches first: a range such as `application/*` names no format.
///
/// # Errors
/// 406 as [`plain`], and 406 in go-restful's words if no clause names a format or `*/*`.
pub fn routed(headers: &HeaderMap, query: &Query) -> Result<Output, ApiError> {
    let header = accept_header(headers);
    if !header.is_empty() && !route_accepts(&header, &MEDIA_TYPES) {
        return Err(route_refusal(&MEDIA_TYPES));
    }
    plain(headers, query)
}

/// Checks that the client accepts a document that is only JSON, as go-restful matches it.
///
/// # Errors
/// 406 in go-restful's words.
pub fn only_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let (header, json) = (accept_header(headers), [WireFormat::Json.media_type()]);
    let accepted = header.is_empty() || route_accepts(&header, &json);
    if accepted { Ok(()) } else { Err(route_refusal(&json)) }
}

/// The form of all of discovery in one document; `None` if the first clause that can be served does not ask for that
/// (k8s.io/apiserver/pkg/endpoints/discovery/aggregated/wrapper.go). Version v2beta1 is not served.
pub fn aggregated_discovery(headers: &HeaderMap, query: &Query) -> Option<Output> {
    let header = accept_header(headers);
    let clauses = accept::parse(&header);
    let fits = |clause: &Clause<'_>| {
        let mut formats = FORMATS.into_iter().filter(|format| clause.matches(format.subtype()));
        if is_aggregated(clause) {
            return formats.next().map(Some);
        }
        formats.any(|format| options(clause, format, false).is_some()).then_some(None)
    };
    let format = clauses.iter().find_map(fits)??;
    Some(Output { format, pretty: wants_pretty(headers, query), transform: Transform::None })
}

fn is_aggregated(clause: &Clause<'_>) -> bool {
    (clause.param("g"), clause.param("v"), clause.param("as"))
        == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
}

/// Returns the index of the first of these subtypes of `application` that the client's best clause takes; `None` if it
/// takes none (k8s.io/kube-openapi/pkg/handler, handler3).
pub fn subtype(headers: &HeaderMap, subtypes: &[&str]) -> Option<usize> {
    let header = accept_header(headers);
    let header = if header.is_empty() { "*/*" } else { &header };
    let first = |clause: &Clause<'_>| subtypes.iter().position(|subtype| clause.matches(subtype));
    accept::parse(header).iter().find_map(first)
}
