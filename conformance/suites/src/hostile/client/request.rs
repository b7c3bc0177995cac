//! Requests and their answers.

use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

/// Media types of patches.
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A request.
#[derive(Clone, Debug)]
pub struct UserRequest {
    /// GET, POST and so on.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl UserRequest {
    /// Reads.
    pub fn get(path: impl Into<String>) -> UserRequest {
        UserRequest { method: Method::GET, path: path.into(), headers: Vec::new(), body: Bytes::new() }
    }

    /// Creates.
    pub fn post(path: impl Into<String>, body: &Value) -> UserRequest {
        UserRequest::body(Method::POST, path, "application/json", body.to_string())
    }

    /// Merges.
    pub fn merge(path: impl Into<String>, body: &Value) -> UserRequest {
        UserRequest::body(Method::PATCH, path, MERGE, body.to_string())
    }

    /// Patches by operations.
    pub fn operations(path: impl Into<String>, body: impl Into<Bytes>) -> UserRequest {
        UserRequest::body(Method::PATCH, path, JSON_PATCH, body)
    }

    /// Applies a configuration in YAML or JSON; the manager stands in the path.
    pub fn apply(path: impl Into<String>, body: impl Into<Bytes>) -> UserRequest {
        UserRequest::body(Method::PATCH, path, APPLY, body)
    }

    /// Deletes.
    pub fn delete(path: impl Into<String>) -> UserRequest {
        UserRequest { method: Method::DELETE, ..UserRequest::get(path) }
    }

    /// Any other.
    pub fn body(method: Method, path: impl Into<String>, type_: &str, body: impl Into<Bytes>) -> UserRequest {
        UserRequest { method, body: body.into(), ..UserRequest::get(path) }
            .with(header::CONTENT_TYPE.as_str(), type_)
    }

    /// The path of the object that this creates.
    pub fn created(&self) -> Result<String> {
        let object: Value = serde_json::from_slice(&self.body)?;
        let name = object["metadata"]["name"].as_str().context("an object without a name")?;
        Ok(format!("{}/{name}", self.path))
    }

    /// With a header field.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> UserRequest {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

/// An answer that was read to its end.
#[derive(Clone, Debug)]
pub struct UserResponse {
    /// HTTP status.
    pub code: StatusCode,
    /// The body.
    pub body: Bytes,
}

/// The Retry-After of an answer that client-go retries (rest/with_retry.go: 429 and 5xx).
pub fn retry_after(code: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let again = code == StatusCode::TOO_MANY_REQUESTS || code.is_server_error();
    let after = headers.get(header::RETRY_AFTER).filter(|_| again)?;
    Some(Duration::from_secs(after.to_str().ok()?.parse().ok()?))
}

/// What the host says when its quota admission got no turn in time (Kubernetes: resourcequota/controller.go).
const QUOTA_TIMEOUT: &str = "resource quota evaluation timed out";

impl UserResponse {
    /// Whether the answer leaves open what becomes of the request: the time of a server or of the host's quota admission was
    /// over, or the aggregator, which answers in plain text, has not found us available yet.
    pub fn is_undecided(&self) -> bool {
        match self.code {
            StatusCode::GATEWAY_TIMEOUT => true,
            StatusCode::SERVICE_UNAVAILABLE => self.json().is_null(),
            StatusCode::INTERNAL_SERVER_ERROR => self.summary().contains(QUOTA_TIMEOUT),
            _ => false,
        }
    }

    /// Reads an answer to its end.
    pub async fn read(answer: Response<Incoming>) -> Result<UserResponse> {
        let (parts, body) = answer.into_parts();
        Ok(UserResponse { code: parts.status, body: body.collect().await?.to_bytes() })
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The code and the start of the message.
    pub fn summary(&self) -> String {
        let message = self.json()["message"].as_str().map(str::to_owned);
        let text = message.unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned());
        format!("{}: {}", self.code, text.chars().take(200).collect::<String>())
    }
}
