//! What callers ask of a hub, and where a subscriber begins.

use std::sync::Arc;

use tokio::sync::{oneshot, watch};

use super::core::{AllReached, Core, Reached};
use crate::filter::{Entity, Filter};
use crate::log::Log;
use crate::messages::maintenance::Pace;
use crate::token::Position;
use crate::view::Subscription;
use crate::views::Full;

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

/// Where a subscriber begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// With what there is.
    Start,
    /// After a position of this hub.
    Position(Position),
    /// After a revision, up to which another hub has sent everything.
    Revision(u64),
}

/// A subscription and where it begins.
pub struct Attached {
    /// The subscription.
    pub subscription: Subscription,
    /// Whose positions these are.
    pub hub: u64,
    /// Changes up to here are not sent.
    pub cursor: Position,
    /// Removals up to here are not sent: the reader does not know these entities.
    pub removals_after: Position,
    /// How far the hub had come.
    pub reached: Reached,
    follow: watch::Receiver<AllReached>,
}

impl Attached {
    /// How far the hub has come.
    pub fn reached_now(&self) -> Reached {
        self.follow.borrow()[self.subscription.view().filter.entity.index()]
    }
}

/// Why there is no subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The removals from the revision up to this one must be known first.
    NeedsHistory(u64),
    /// What was removed since is not known any more.
    Expired,
    /// Too many different filters.
    Full(Full),
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

    fn attach(&mut self, filter: Filter, user: &Arc<str>, from: Resume) -> Result<Attached, Refusal> {
        let entity = filter.entity;
        let reached = self.reached(entity);
        let (cursor, removals_after) = match from {
            Resume::Start => (Position::START, reached.position),
            Resume::Position(position) => (position, position),
            Resume::Revision(revision) => {
                (self.cursor_of(entity, revision)?, Position::after_revision(revision))
            }
        };
        let index = &self.indexes[entity.index()];
        let view = self.views.get(filter, user, |filter| index.view(filter)).map_err(Refusal::Full)?;
        let subscription = Subscription::new(view, user.clone());
        if from != Resume::Start && subscription.view().read(Log::horizon) > removals_after {
            let view = subscription.view();
            if !view.write(|log| index.reach_back(log, &view.filter, removals_after)) {
                return Err(Refusal::Expired);
            }
        }
        let follow = self.follow();
        Ok(Attached { subscription, hub: self.id, cursor, removals_after, reached, follow })
    }

    /// The position from which on everything is sent to who comes from another hub.
    fn cursor_of(&self, entity: Entity, revision: u64) -> Result<Position, Refusal> {
        let index = &self.indexes[entity.index()];
        let known_since = index.known_since();
        match entity {
            // Nothing is known to be sent.
            _ if revision == 0 || index.has_dropped_after(revision) => return Err(Refusal::Expired),
            _ if revision >= known_since => {}
            // What a node left between two states of a maintenance is in neither.
            Entity::Node => return Err(Refusal::Expired),
            Entity::Maintenance | Entity::Eviction => return Err(Refusal::NeedsHistory(known_since)),
        }
        // Each hub has rates of its own: maintenances are sent anew.
        let sends_all = entity == Entity::Maintenance;
        Ok(if sends_all { Position::START } else { Position::after_revision(revision) })
    }
}
