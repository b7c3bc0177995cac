//! Which form an answer takes, from the Accept header, the query and the user agent
//! (k8s.io/apiserver/pkg/endpoints/handlers/negotiation, and the route matching of go-restful before it).

mod accept;
mod documents;

pub use documents::{aggregated_discovery, only_json, plain, routed, subtype};

use drydock_machinery::ApiError;
use drydock_machinery::error::StatusDetails;
use http::HeaderMap;
use http::header::{ACCEPT, USER_AGENT};

use crate::request::query::Query;
use accept::Clause;

/// Bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFormat {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

/// In the order of preference.
const FORMATS: [WireFormat; 3] = [WireFormat::Json, WireFormat::Yaml, WireFormat::Protobuf];

/// What the 406 and 415 answers list.
pub const MEDIA_TYPES: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAM_MEDIA_TYPES: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

impl WireFormat {
    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// The format of a media type without parameters.
    pub fn of_media_type(media_type: &str) -> Option<Self> {
        FORMATS.into_iter().find(|f| f.media_type().eq_ignore_ascii_case(media_type.trim()))
    }

    fn subtype(self) -> &'static str {
        self.media_type().trim_start_matches("application/")
    }
}

/// What is shown in place of the object itself, in a version of meta.k8s.io (`v1` or `v1beta1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Nothing.
    None,
    /// A table of printer columns.
    Table(&'static str),
    /// Metadata only.
    Partial(&'static str),
    /// A list of metadata.
    PartialList(&'static str),
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Bytes.
    pub format: WireFormat,
    /// Indented for people (JSON only).
    pub pretty: bool,
    /// What is shown in place of the object.
    pub transform: Transform,
}

/// The form of an answer that is one document.
pub fn document(headers: &HeaderMap, query: &Query, streams: bool) -> Result<Output, ApiError> {
    let header = accept_header(headers);
    let more: &[&str] = if streams { &STREAM_MEDIA_TYPES } else { &[] };
    let produced = [&MEDIA_TYPES[..], more].concat();
    if !header.is_empty() && !route_accepts(&header, &produced) {
        return Err(route_refusal(&produced));
    }
    choose(&header, headers, query, true).ok_or_else(|| ApiError::not_acceptable(&MEDIA_TYPES))
}

/// The form of a watch's events.
pub fn stream(headers: &HeaderMap, query: &Query) -> Result<Output, ApiError> {
    match document(headers, query, true) {
        Ok(output) if output.format != WireFormat::Yaml => Ok(output),
        Ok(_) => Err(ApiError::not_acceptable(&STREAM_MEDIA_TYPES)),
        Err(refusal) => Err(refusal),
    }
}

/// The form of an error: never transformed; indented JSON if nothing fits.
pub fn error(headers: &HeaderMap, query: &Query) -> Output {
    let fallback = Output { format: WireFormat::Json, pretty: true, transform: Transform::None };
    choose(&accept_header(headers), headers, query, false).unwrap_or(fallback)
}

fn accept_header(headers: &HeaderMap) -> String {
    let values: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    values.join(",")
}

/// go-restful matches a whole media type, or `*/*`, before Kubernetes negotiates; only the media types of a stream are
/// matched with their parameter.
fn route_accepts(header: &str, produced: &[&str]) -> bool {
    header.split(',').any(|clause| {
        let media_type = clause.split(';').next().unwrap_or_default().trim();
        media_type == "*/*" || produced.contains(&media_type) || produced.contains(&clause.trim())
    })
}

fn route_refusal(produced: &[&str]) -> ApiError {
    let message = format!("406: Not Acceptable\n\nAvailable representations: {}", produced.join(", "));
    ApiError::new(406, "NotAcceptable", message, Some(StatusDetails::default()))
}

fn choose(header: &str, headers: &HeaderMap, query: &Query, transforms: bool) -> Option<Output> {
    let pretty = wants_pretty(headers, query);
    if header.is_empty() {
        return Some(Output { format: WireFormat::Json, pretty, transform: Transform::None });
    }
    let clauses = accept::parse(header);
    let fits = |clause: &Clause<'_>| {
        FORMATS
            .into_iter()
            .filter(|f| clause.matches(f.subtype()))
            .find_map(|f| options(clause, f, transforms))
    };
    let (format, transform, pretty_param) = clauses.iter().find_map(fits)?;
    Some(Output { format, pretty: pretty || pretty_param, transform })
}

/// What a clause's parameters ask of a format, if it can do that.
fn options(
    clause: &Clause<'_>,
    format: WireFormat,
    transforms: bool,
) -> Option<(WireFormat, Transform, bool)> {
    let stream = clause.param("stream");
    let stream_served = stream.is_empty() || (stream == "watch" && format != WireFormat::Yaml);
    let sv = clause.param("sv");
    let version_served = sv.is_empty() || (transforms && sv == "v1");
    if !stream_served || !version_served {
        return None;
    }
    let pretty = clause.param("pretty") == "1";
    if !["as", "g", "v"].into_iter().any(|key| clause.has(key)) {
        return Some((format, Transform::None, pretty));
    }
    let transform = transform_of(clause, format).filter(|_| transforms)?;
    Some((format, transform, pretty))
}

fn transform_of(clause: &Clause<'_>, format: WireFormat) -> Option<Transform> {
    let version = match clause.param("v") {
        "v1" => "v1",
        "v1beta1" => "v1beta1",
        _ => return None,
    };
    if clause.param("g") != "meta.k8s.io" {
        return None;
    }
    match clause.param("as") {
        "Table" if format != WireFormat::Protobuf => Some(Transform::Table(version)),
        "PartialObjectMetadata" => Some(Transform::Partial(version)),
        "PartialObjectMetadataList" => Some(Transform::PartialList(version)),
        _ => None,
    }
}

fn wants_pretty(headers: &HeaderMap, query: &Query) -> bool {
    if let Some(pretty) = query.non_empty("pretty") {
        return matches!(pretty, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let agent = headers.get(USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].into_iter().any(|prefix| agent.starts_with(prefix))
}

#[cfg(test)]
#[path = "negotiate_tests.rs"]
mod tests;
