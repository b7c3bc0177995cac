//! By what the sender of a request was authenticated, for requests that outlast an answer of the host.

use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderMap;

use super::peer::{Certificates, Peer};
use super::token;

/// What proved who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProvedBy {
    /// Nothing: the sender is anonymous.
    Nothing,
    /// A bearer token.
    Token,
    /// The connection's certificates, a user's or a front proxy's.
    Certificates,
}

/// What has to stay valid for as long as a request is open. It is kept in memory for so long, and shown nowhere.
pub(crate) enum Credential {
    /// Nothing: the sender is anonymous.
    None,
    /// A bearer token.
    Token(String),
    /// The certificates of the connection.
    Certificates {
        /// They themselves.
        certificates: Arc<Certificates>,
        /// When the first of them expires.
        end: Option<SystemTime>,
    },
}

impl Credential {
    /// The token that these headers show, before they are taken off.
    pub(crate) fn shown(headers: &HeaderMap) -> Option<String> {
        token::bearer(headers).map(str::to_owned)
    }

    /// The one that proved who sends a request on the connection of `peer`.
    pub(crate) fn of(proved_by: ProvedBy, token: Option<String>, peer: &Peer) -> Self {
        match (proved_by, token) {
            (ProvedBy::Token, Some(token)) => Self::Token(token),
            (ProvedBy::Certificates, _) => Self::Certificates {
                certificates: peer.certificates().clone(),
                end: peer.certificates_end(SystemTime::now()),
            },
            (ProvedBy::Token | ProvedBy::Nothing, _) => Self::None,
        }
    }
}
