//! Where a subscriber begins: with what there is, or after what it has been sent.

use std::sync::Arc;

use tokio::sync::watch;

use super::core::{AllReached, Core, Reached};
use crate::filter::{Entity, Filter};
use crate::log::Log;
use crate::token::Position;
use crate::view::Subscription;
use crate::views::Full;

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

impl Core {
    /// Subscribes a user.
    ///
    /// # Errors
    /// Why there is no subscription.
    pub(super) fn attach(
        &mut self,
        filter: Filter,
        user: &Arc<str>,
        from: Resume,
    ) -> Result<Attached, Refusal> {
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
            // What cannot be read now may have been told of, and is not among the removals.
            _ if self.has_unreadable(entity) => return Err(Refusal::Expired),
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
