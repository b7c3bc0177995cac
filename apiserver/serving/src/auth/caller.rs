//! The caller of a request: its user, its origin, its deadline, and what proved the user.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::clock;
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
        Self { address: None, connection: 0, deadline: clock::now() + time }
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

    /// The same caller, whose next request must be answered by `deadline`.
    #[must_use]
    pub fn until(&self, deadline: Instant) -> Self {
        Self::new(self.user.clone(), Origin { deadline, ..self.origin })
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
    /// The connection's certificates, which are the user's.
    Certificates,
    /// The word of a front proxy, whose certificates the connection has.
    FrontProxy,
}
