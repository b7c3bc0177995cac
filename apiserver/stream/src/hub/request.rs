//! What callers ask of a hub, and when that is answered.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::attach::{Attached, Refusal, Resume};
use super::core::Core;
use crate::filter::{Entity, Filter};
use crate::rate::Pace;

/// What a hub is asked.
pub enum Request {
    /// To subscribe a user.
    Attach {
        /// To what.
        filter: Filter,
        /// Who.
        user: Arc<str>,
        /// From where on.
        from: Resume,
        /// The snapshot has everything up to this revision.
        at_least: u64,
        /// The answer.
        reply: oneshot::Sender<Result<Attached, Refusal>>,
    },
    /// To take in removals from before its start.
    History {
        /// Of which kind.
        entity: Entity,
        /// All of them after this revision, up to where the hub knows them.
        since: u64,
        /// Keys with the revisions at which they were removed.
        removed: Vec<(Arc<str>, u64)>,
        /// Says that it is done.
        reply: oneshot::Sender<()>,
    },
    /// How fast a maintenance goes.
    Pace {
        /// Its name.
        maintenance: String,
        /// The answer.
        reply: oneshot::Sender<Pace>,
    },
}

impl Request {
    /// Whether nobody waits for the answer any more.
    pub(super) fn is_given_up(&self) -> bool {
        match self {
            Self::Attach { reply, .. } => reply.is_closed(),
            Self::History { reply, .. } => reply.is_closed(),
            Self::Pace { reply, .. } => reply.is_closed(),
        }
    }
}

impl Core {
    /// Whether a request can be answered with what is known.
    pub(super) fn can_serve(&self, request: &Request) -> bool {
        match request {
            Request::Attach { filter, at_least, .. } => self.reached(filter.entity).floor >= *at_least,
            Request::History { .. } | Request::Pace { .. } => true,
        }
    }

    /// Answers a request.
    pub(super) fn serve(&mut self, request: Request) {
        // Whoever does not wait for the answer any more has no subscription.
        match request {
            Request::Attach { filter, user, from, reply, .. } => {
                let _ = reply.send(self.attach(filter, &user, from));
            }
            Request::History { entity, since, removed, reply } => {
                self.indexes[entity.index()].add_history(since, &removed, &mut self.past_serial);
                let _ = reply.send(());
            }
            Request::Pace { maintenance, reply } => {
                let _ = reply.send(self.facts.pace(&maintenance));
            }
        }
    }
}
