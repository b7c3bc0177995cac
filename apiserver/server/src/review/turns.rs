//! The bounds on reviews: those of authenticated users and those of strangers are apart.

use std::sync::Arc;
use std::time::{Duration, Instant};

use drydock_machinery::ApiError;

use super::caller::{Origin, Payer};
pub use super::lanes::Bounds;
use super::lanes::Wish;
pub use super::pace::Pace;
use super::queue::{Queue, Turn};

/// No pace.
const ANY: Pace = Pace { starts: usize::MAX, within: Duration::ZERO };

/// One user has at most a quarter of the places, so that some are free for others while the host is slow to decide on
/// that user. The host takes about a hundred requests at a time on the connection that reviews share with other
/// requests (kube-apiserver, --http2-max-streams-per-connection).
const USERS: Bounds = Bounds {
    in_flight: 64,
    in_flight_per_lane: 16,
    pace: ANY,
    pace_per_lane: Pace { starts: 200, within: Duration::from_millis(100) },
    waiting: 4096,
    waiting_per_lane: 512,
};

/// No second has more than 198 starts: eleven spans at most are in one.
const STRANGERS_PACE: Pace = Pace { starts: 18, within: Duration::from_millis(100) };
const STRANGERS: Bounds = Bounds {
    in_flight: 32,
    in_flight_per_lane: 8,
    pace: STRANGERS_PACE,
    pace_per_lane: STRANGERS_PACE,
    waiting: 1024,
    waiting_per_lane: 32,
};

/// Decides who may cause a review, and when. A program has one for the reviews of tokens and of access together.
pub struct Turns {
    users: Arc<Queue>,
    strangers: Arc<Queue>,
}

impl Default for Turns {
    fn default() -> Self {
        Self::new(USERS, STRANGERS)
    }
}

impl Turns {
    /// With these bounds on the reviews of users and of strangers.
    pub fn new(users: Bounds, strangers: Bounds) -> Self {
        Self { users: Arc::new(Queue::new(users)), strangers: Arc::new(Queue::new(strangers)) }
    }

    /// A turn for `payer` in a request from `origin`. It waits for at most a quarter of the time until the request's
    /// deadline, and no longer than 10 s; 429 if it would have to wait longer.
    pub(crate) async fn turn(&self, payer: Payer, origin: &Origin) -> Result<Turn, ApiError> {
        let deadline: Instant = origin.deadline;
        match &payer {
            Payer::Flow(_) => self.users.turn(Wish { payer, connection: 0 }, deadline).await,
            Payer::Stranger(_) => {
                self.strangers.turn(Wish { payer, connection: origin.connection }, deadline).await
            }
        }
    }
}
