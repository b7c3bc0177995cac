//! OpenAPI documents of the kinds: v2 for the aggregator's merged document, v3 for kubectl.
//!
//! They are made as JSON, for which the aggregator and kubectl ask, and encoded as protobuf, which client-go prefers.
//! The v3 document is converted from the v2 document, as the aggregator itself does for servers without v3.

mod definitions;
mod gnostic;
mod operations;
#[cfg(test)]
mod tests;
mod v3;

pub use operations::PATCH_TYPES;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::document::Document;
use crate::kind::Kind;

/// All OpenAPI documents of a server, encoded once.
#[derive(Clone, Debug)]
pub struct OpenApi {
    /// `/openapi/v2`
    pub v2: Document,
    /// `/openapi/v3`: the index of the documents below.
    pub v3_index: Document,
    /// The key in the index (`apis/GROUP/VERSION`) and the document at `/openapi/v3/KEY`.
    pub v3: Vec<(String, Document)>,
}

impl OpenApi {
    /// Creates the documents of these kinds; title and version are those of the server.
    pub fn new(kinds: &[&dyn Kind], title: &str, version: &str) -> Self {
        let v3: Vec<_> = group_versions(kinds)
            .into_iter()
            .map(|(key, kinds)| (key, encoded(&v3_document(&kinds, title, version), &gnostic::v3::DOCUMENT)))
            .collect();
        let v3_index = Document::new(&v3_index(&v3));
        let v2 = encoded(&v2_document(kinds, title, version), &gnostic::v2::DOCUMENT);
        Self { v2, v3_index, v3 }
    }

    /// The document at `/openapi/v3/KEY`.
    pub fn v3_document(&self, key: &str) -> Option<&Document> {
        self.v3.iter().find(|(known, _)| known == key).map(|(_, document)| document)
    }
}

/// Encodes a document as JSON and as protobuf. It has no protobuf if the message lacks one of its fields.
fn encoded(document: &Value, message: &gnostic::MessageTable) -> Document {
    let protobuf = gnostic::encode(document, message).ok().map(Bytes::from);
    Document { protobuf, ..Document::new(document) }
}

/// Returns the path and query of a v3 document. Clients may cache the response for ever.
pub fn v3_url(key: &str, document: &Document) -> String {
    format!("/openapi/v3/{key}?hash={}", document.hash)
}

/// The Swagger 2.0 document of these kinds.
pub fn v2_document(kinds: &[&dyn Kind], title: &str, version: &str) -> Value {
    let mut paths = Map::new();
    kinds.iter().for_each(|kind| operations::add_paths(&mut paths, *kind));
    json!({
        "swagger": "2.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "definitions": definitions::definitions(kinds),
        "securityDefinitions": {"BearerToken": bearer_token()},
        "security": [{"BearerToken": []}],
    })
}

/// Returns the OpenAPI 3.0 document of these kinds, which should have one group and version.
pub fn v3_document(kinds: &[&dyn Kind], title: &str, version: &str) -> Value {
    v3::from_v2(v2_document(kinds, title, version))
}

fn v3_index(documents: &[(String, Document)]) -> Value {
    let paths: Map<_, _> = documents
        .iter()
        .map(|(key, document)| (key.clone(), json!({"serverRelativeURL": v3_url(key, document)})))
        .collect();
    json!({"paths": paths})
}

/// Returns the kinds by `apis/GROUP/VERSION`.
fn group_versions<'k>(kinds: &[&'k dyn Kind]) -> Vec<(String, Vec<&'k dyn Kind>)> {
    let mut versions: Vec<(String, Vec<&dyn Kind>)> = Vec::new();
    for kind in kinds {
        let key = format!("apis/{}", kind.names().api_version());
        match versions.iter_mut().find(|(known, _)| *known == key) {
            Some((_, kinds)) => kinds.push(*kind),
            None => versions.push((key, vec![*kind])),
        }
    }
    versions
}

fn bearer_token() -> Value {
    json!({"description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"})
}
