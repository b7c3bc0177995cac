//! One request, the same for both servers but for what `$(...)` stands for (see [`crate::template`]).

use http::Method;
use serde_json::Value;

/// The content type of most bodies.
pub const JSON: &str = "application/json";

/// A request as a sequence has it.
#[derive(Clone, Debug, Default)]
pub struct SequenceRequest {
    /// GET and so on.
    pub method: Method,
    /// Path; may contain placeholders.
    pub path: String,
    /// Query, without the question mark.
    pub query: String,
    /// Headers in addition to those that every request has.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: SentBody,
    /// Whether it comes without any certificate.
    pub anonymous: bool,
}

/// What is sent.
#[derive(Clone, Debug, Default)]
pub enum SentBody {
    /// No body.
    #[default]
    None,
    /// Text; may contain placeholders.
    Text(String),
    /// Bytes as they are.
    Bytes(Vec<u8>),
}

impl SequenceRequest {
    /// A request without query and body.
    pub fn new(method: Method, path: &str) -> Self {
        Self { method, path: path.to_owned(), ..Self::default() }
    }

    /// A GET.
    pub fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    /// Adds to the query.
    #[must_use]
    pub fn query(mut self, query: &str) -> Self {
        if !self.query.is_empty() && !query.is_empty() {
            self.query.push('&');
        }
        self.query.push_str(query);
        self
    }

    /// Adds a header, or replaces those of its name.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a header beside others of its name.
    #[must_use]
    pub fn another_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the content type of the body.
    #[must_use]
    pub fn content_type(self, type_: &str) -> Self {
        self.header("content-type", type_)
    }

    /// A body of text.
    #[must_use]
    pub fn body(mut self, type_: &str, text: impl Into<String>) -> Self {
        self.body = SentBody::Text(text.into());
        self.content_type(type_)
    }

    /// A body of bytes.
    #[must_use]
    pub fn bytes(mut self, type_: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = SentBody::Bytes(bytes.into());
        self.content_type(type_)
    }

    /// A JSON object as the body; it gets the target's kind and API version where it has none.
    #[must_use]
    pub fn object(self, mut object: Value) -> Self {
        if let Value::Object(fields) = &mut object {
            fields.entry("apiVersion").or_insert_with(|| "$(apiVersion)".into());
            fields.entry("kind").or_insert_with(|| "$(kind)".into());
        }
        self.body(JSON, object.to_string())
    }

    /// Sets the media types that the client accepts.
    #[must_use]
    pub fn accept(self, types: &str) -> Self {
        self.header("accept", types)
    }

    /// Sends the request as another user, by impersonation.
    #[must_use]
    pub fn as_user(self, user: &str) -> Self {
        self.header("impersonate-user", user)
    }

    /// Sends the request without a certificate.
    #[must_use]
    pub fn as_nobody(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// Returns the title in reports.
    pub fn title(&self) -> String {
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query) };
        format!("{} {}{query}", self.method, self.path)
    }
}
