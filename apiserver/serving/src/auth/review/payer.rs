//! The payer of a review, whose share it counts for: the authenticated caller, not the user it acts as, or the network
//! of a stranger.

use std::sync::Arc;

use crate::request::user::{Network, User};

use crate::auth::caller::{Caller, Origin};

/// The payer of a review: it counts for the payer's share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Payer {
    /// A component of the cluster or a controller, by its flow.
    Component(Arc<str>),
    /// Any other authenticated user, by their flow.
    User(Arc<str>),
    /// A client that is not authenticated, by the network that it connects from.
    Stranger(Option<Network>),
}

impl Payer {
    /// Returns the payer for a request of `caller`.
    pub(crate) fn caller(caller: &Caller, is_component: impl Fn(&User) -> bool) -> Self {
        match caller.user.is_anonymous() {
            true => Self::stranger(&caller.origin),
            false => Self::user(&caller.user, is_component),
        }
    }

    /// Returns the payer for a request that `user` has proven to be theirs.
    pub(crate) fn user(user: &User, is_component: impl Fn(&User) -> bool) -> Self {
        match is_component(user) {
            true => Self::Component(user.flow().into()),
            false => Self::User(user.flow().into()),
        }
    }

    /// Returns the payer for a request whose user is not authenticated yet.
    pub(crate) fn stranger(origin: &Origin) -> Self {
        Self::Stranger(origin.address.map(Network::from))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use crate::request::user::ANONYMOUS;

    use super::*;

    fn payer(name: &str, address: &str) -> Payer {
        let user = Arc::new(User { name: name.to_owned(), ..User::default() });
        let origin = Origin { address: Some(address.parse().unwrap()), ..Origin::local(Duration::ZERO) };
        Payer::caller(&Caller::new(user, origin), |user| user.name == "manager")
    }

    #[test]
    fn strangers_are_told_apart_by_their_networks() {
        assert_eq!(payer(ANONYMOUS, "2001:db8::1"), payer(ANONYMOUS, "2001:db8::ffff:1"));
        assert_ne!(payer(ANONYMOUS, "10.0.0.1"), payer(ANONYMOUS, "10.0.0.2"));
    }

    #[test]
    fn a_user_is_the_same_wherever_they_connect_from() {
        assert_eq!(payer("ann", "10.0.0.1"), payer("ann", "10.0.0.2"));
    }

    #[test]
    fn components_are_apart_from_everybody() {
        assert_eq!(payer("ann", "10.0.0.1"), Payer::User("ann".into()));
        assert_eq!(payer("manager", "10.0.0.1"), Payer::Component("manager".into()));
    }
}
