//! By what the sender of a request was authenticated, for requests that outlast an answer of the host.

use std::time::SystemTime;

use http::HeaderMap;

use super::token;

/// What proves who sends a request. It is kept in memory for as long as the request is open, and shown nowhere.
pub(crate) enum Credential {
    /// Nothing: the sender is anonymous.
    None,
    /// A bearer token.
    Token(String),
    /// The certificates of the connection.
    Certificate {
        /// When the first of them expires.
        end: Option<SystemTime>,
    },
}

impl Credential {
    /// The one that these headers show.
    pub(crate) fn shown(headers: &HeaderMap) -> Self {
        token::bearer(headers).map_or(Self::None, |token| Self::Token(token.to_owned()))
    }
}
