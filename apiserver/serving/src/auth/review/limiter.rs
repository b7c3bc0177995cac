//! The bounds on reviews. There are separate bounds for the host's components and controllers, for all other users,
//! and for strangers, so that none of these classes waits for another.

use std::sync::Arc;
use std::time::Duration;

use drydock_machinery::ApiError;

use super::fair_queues::PermitRequest;
pub use super::fair_queues::ReviewBounds;
use super::payer::Payer;
use super::queue::{Joined, Queue, ReviewPermit};
pub use super::rate::Rate;
use crate::auth::caller::{Caller, Origin};
use crate::request::user::{SYSTEM_MASTERS, User};

/// No bound on the rate.
const ANY: Rate = Rate { burst: 1, every: Duration::ZERO };

/// Bounds for components of the cluster and controllers. The reviews in flight of all three classes together are fewer
/// than the host takes at a time on the connection that they share with other requests (kube-apiserver,
/// --http2-max-streams-per-connection: 100).
const COMPONENTS: ReviewBounds = ReviewBounds {
    in_flight: 32,
    in_flight_per_payer: 16,
    rate: ANY,
    rate_per_payer: ANY,
    waiting: 4096,
    waiting_per_payer: 512,
    joined: 4096,
    joined_per_payer: 1024,
};

/// Bounds for all other users. The host serves our reviews before the requests of its own users, so no user may cause
/// more reviews than this: 100 a second, and 200 at once.
const USERS: ReviewBounds = ReviewBounds {
    in_flight: 40,
    rate_per_payer: Rate { burst: 200, every: Duration::from_millis(10) },
    ..COMPONENTS
};

/// No second has more than 198 starts.
const STRANGERS_RATE: Rate = Rate { burst: 18, every: Duration::from_nanos(1_000_000_000 / 180) };
/// Bounds for strangers. All connections of an address that have authenticated no user may wait:
/// --max-connections-per-address bounds their number.
const STRANGERS: ReviewBounds = ReviewBounds {
    in_flight: 24,
    in_flight_per_payer: 8,
    rate: STRANGERS_RATE,
    rate_per_payer: STRANGERS_RATE,
    waiting: 1024,
    waiting_per_payer: 256,
    joined: 2048,
    joined_per_payer: 1024,
};

/// Grants permits to make reviews. A program has one for the reviews of tokens and of access together.
pub struct ReviewLimiter {
    is_component: Box<dyn Fn(&User) -> bool + Send + Sync>,
    components: Arc<Queue>,
    users: Arc<Queue>,
    strangers: Arc<Queue>,
}

impl Default for ReviewLimiter {
    /// The host's components and system:masters have no bound on their rate.
    fn default() -> Self {
        Self::new(|user| user.is_in(SYSTEM_MASTERS) || user.is_host_component())
    }
}

impl ReviewLimiter {
    /// A limiter with the usual bounds. `is_component` tells which users are components of the cluster or controllers:
    /// their rate has no bound.
    pub fn new(is_component: impl Fn(&User) -> bool + Send + Sync + 'static) -> Self {
        let is_component = Box::new(is_component);
        let [components, users, strangers] =
            [COMPONENTS, USERS, STRANGERS].map(|bounds| Arc::new(Queue::new(bounds)));
        Self { is_component, components, users, strangers }
    }

    /// Replaces the bounds on the reviews of users and of strangers.
    #[must_use]
    pub fn bounded(self, users: ReviewBounds, strangers: ReviewBounds) -> Self {
        let [users, strangers] = [users, strangers].map(|bounds| Arc::new(Queue::new(bounds)));
        Self { users, strangers, ..self }
    }

    /// The payer of the reviews of a request of `caller`.
    pub(crate) fn payer(&self, caller: &Caller) -> Payer {
        Payer::caller(caller, &self.is_component)
    }

    /// The payer of the reviews of `user`.
    pub(crate) fn user(&self, user: &User) -> Payer {
        Payer::user(user, &self.is_component)
    }

    /// A permit for `payer` in a request from `origin`. It waits for at most a quarter of the time until the request's
    /// deadline, and no longer than 10 s; 429 if it would have to wait longer.
    pub(super) async fn permit(&self, payer: Payer, origin: &Origin) -> Result<ReviewPermit, ApiError> {
        let connection = match &payer {
            Payer::Component(_) | Payer::User(_) => 0,
            Payer::Stranger(_) => origin.connection,
        };
        self.queue(&payer).permit(PermitRequest { payer, connection }, origin.deadline).await
    }

    /// Counts a request of `payer` that waits for a review which another one started; 429 if there is no room.
    pub(super) fn join(&self, payer: &Payer) -> Result<Joined, ApiError> {
        self.queue(payer).join(payer)
    }

    fn queue(&self, payer: &Payer) -> &Arc<Queue> {
        match payer {
            Payer::Component(_) => &self.components,
            Payer::User(_) => &self.users,
            Payer::Stranger(_) => &self.strangers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve;

    #[test]
    fn components_of_the_host_are_apart_from_everybody() {
        let payer =
            |name: &str| ReviewLimiter::default().user(&User { name: name.into(), ..User::default() });
        let manager = "system:kube-controller-manager";
        assert_eq!(payer(manager), Payer::Component(manager.into()));
        assert_eq!(payer("ann"), Payer::User("ann".into()));
    }

    #[test]
    fn every_connection_of_an_address_may_wait() {
        let connections = serve::Bounds::default().connections_per_address;
        assert!(STRANGERS.waiting_per_payer >= connections, "{connections}");
    }
}
