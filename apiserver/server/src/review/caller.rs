//! Who causes a review: the authenticated caller, whomever they act as, or the address of a stranger.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::authn::{ANONYMOUS, UNAUTHENTICATED};
use crate::user::User;

/// The bits of an IPv6 address that tell one network from another: whoever has one address has all of its /64.
const NETWORK: u128 = !0 << 64;

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
    /// A request that came in by no port.
    pub fn local(time: Duration) -> Self {
        Self { address: None, connection: 0, deadline: Instant::now() + time }
    }
}

/// Who sent a request. Reviews count for them also when they are about a user as whom they act.
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

    pub(crate) fn payer(&self) -> Payer {
        let is_stranger = self.user.name == ANONYMOUS || self.user.is_in(UNAUTHENTICATED);
        if is_stranger { Payer::stranger(&self.origin) } else { Payer::user(&self.user) }
    }
}

/// Whose share a review counts for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Payer {
    /// An authenticated user, by their flow.
    Flow(Arc<str>),
    /// Whoever is not authenticated, by the network that they connect from.
    Stranger(Option<IpAddr>),
}

impl Payer {
    pub(crate) fn user(user: &User) -> Self {
        Self::Flow(user.flow().into())
    }

    pub(crate) fn stranger(origin: &Origin) -> Self {
        Self::Stranger(origin.address.map(|address| match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
            address => address,
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn payer(name: &str, address: &str) -> Payer {
        let user = Arc::new(User { name: name.to_owned(), ..User::default() });
        let origin = Origin { address: Some(address.parse().unwrap()), ..Origin::local(Duration::ZERO) };
        Caller::new(user, origin).payer()
    }

    #[test]
    fn strangers_are_told_apart_by_the_network_that_they_own() {
        assert_eq!(payer(ANONYMOUS, "10.0.0.1"), payer(ANONYMOUS, "::ffff:10.0.0.1"));
        assert_ne!(payer(ANONYMOUS, "10.0.0.1"), payer(ANONYMOUS, "10.0.0.2"));
        assert_eq!(payer(ANONYMOUS, "2001:db8::1"), payer(ANONYMOUS, "2001:db8::ffff:1"));
        assert_ne!(payer(ANONYMOUS, "2001:db8::1"), payer(ANONYMOUS, "2001:db8:0:1::1"));
    }

    #[test]
    fn a_user_is_the_same_wherever_they_connect_from() {
        assert_eq!(payer("ann", "10.0.0.1"), payer("ann", "10.0.0.2"));
    }
}
