//! The answer of a server, before it is normalised.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

use super::wire;

/// One answer.
#[derive(Clone, Debug)]
pub struct RecordedAnswer {
    /// The request, for people.
    pub title: String,
    /// Status code; 0 for what came on a stream later.
    pub code: u16,
    /// Headers in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Content,
}

/// A body, as far as it can be read.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// None.
    Empty,
    /// JSON.
    Json(Value),
    /// JSON or YAML whose text itself is compared, and its value.
    Text(String, Value),
    /// Protobuf, as the tree of its fields.
    Protobuf(Value),
    /// Events of a watch.
    Events(Vec<Value>),
}

impl RecordedAnswer {
    /// Reads an answer that has come whole.
    pub fn new(title: String, code: u16, headers: &HeaderMap, body: &Bytes) -> Self {
        let headers: Vec<(String, String)> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let of =
            |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone()).unwrap_or_default();
        let body = read(&of("content-type"), &of("content-encoding"), body);
        Self { title, code, headers, body }
    }

    /// Events that came on a stream.
    pub fn of_events(title: String, events: Vec<Value>) -> Self {
        Self { title, code: 0, headers: Vec::new(), body: Content::Events(events) }
    }

    /// What later requests may refer to.
    pub fn value(&self) -> Value {
        match &self.body {
            Content::Empty => Value::Null,
            Content::Json(value) | Content::Text(_, value) | Content::Protobuf(value) => value.clone(),
            Content::Events(events) => events.clone().into(),
        }
    }
}

fn read(type_: &str, encoding: &str, body: &Bytes) -> Content {
    if body.is_empty() {
        return Content::Empty;
    }
    let plain = if encoding == "gzip" { wire::gunzip(body) } else { body.to_vec() };
    if type_.contains("protobuf") {
        return Content::Protobuf(wire::protobuf(&plain));
    }
    let text = String::from_utf8_lossy(&plain).into_owned();
    if let Ok(value) = serde_json::from_str(&text) {
        // Pretty-printed: the layout is part of the answer.
        return if text.starts_with("{\n") { Content::Text(text, value) } else { Content::Json(value) };
    }
    let value = if type_.contains("yaml") { serde_yaml_ng::from_str(&text).ok() } else { None };
    Content::Text(text, value.unwrap_or_default())
}
