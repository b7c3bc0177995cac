//! Who sent a request, from where, and until when it must be answered.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::request::user::User;

/// Where a request comes from, and when it must be answered.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The address at the other end of the connection.
    pub address: Option<IpAddr>,
    /// Tells the connections of an address apart.
    pub connection: u64,
    /// When the request must be answered.
    pub deadline: Instant,
}

impl Origin {
    /// A request that came in by no port, and must be answered within `time`.
    pub fn local(time: Duration) -> Self {
        Self { address: None, connection: 0, deadline: Instant::now() + time }
    }
}

/// The authenticated sender of a request, whomever they act as.
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
