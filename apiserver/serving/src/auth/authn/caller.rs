//! The caller of a request: its user, its origin, its deadline, and what proved the user.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::HeaderMap;

use super::peer::{Certificates, Peer};
use super::token;
use crate::request::user::User;

/// Where a request comes from, and when it must be answered.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The address at the other end of the connection.
    pub address: Option<IpAddr>,
    /// The number of the connection.
    pub connection: u64,
    /// When the request must be answered.
    pub deadline: Instant,
}

impl Origin {
    /// The origin of a request that did not arrive over a port, and must be answered within `time`.
    pub fn local(time: Duration) -> Self {
        Self { address: None, connection: 0, deadline: Instant::now() + time }
    }
}

/// The authenticated sender of a request, who may act as another user.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The authenticated user.
    pub user: Arc<User>,
    /// Where the request comes from.
    pub origin: Origin,
}

impl Caller {
    /// `user` was authenticated for a request from `origin`.
    pub fn new(user: Arc<User>, origin: Origin) -> Self {
        Self { user, origin }
    }

    /// When the request must be answered.
    pub fn deadline(&self) -> Instant {
        self.origin.deadline
    }
}

/// What proved who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvedBy {
    /// Nothing: the sender is anonymous.
    Nothing,
    /// A bearer token.
    Token,
    /// The connection's certificates, a user's or a front proxy's.
    Certificates,
}

/// What has to stay valid for as long as a request is open. It stays in memory for so long, and is shown nowhere.
pub enum Credential {
    /// Nothing: the sender is anonymous.
    None,
    /// A bearer token.
    Token(String),
    /// The certificates of the connection.
    Certificates {
        /// The certificates.
        certificates: Arc<Certificates>,
        /// When the first of them expires.
        end: Option<SystemTime>,
    },
}

impl Credential {
    /// Returns the token in these headers. To be called before authentication, which removes it.
    pub fn shown(headers: &HeaderMap) -> Option<String> {
        token::bearer(headers).map(str::to_owned)
    }

    /// Returns the credential that proved who sends a request on the connection of `peer`.
    pub fn of(proved_by: ProvedBy, token: Option<String>, peer: &Peer) -> Self {
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
