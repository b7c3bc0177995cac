//! Where a subscriber starts: with a snapshot, or after what it was sent before.

use std::sync::Arc;

use tokio::sync::watch;

use super::state::{AllReached, HubState, Reached};
use crate::filter::{Entity, Filter};
use crate::log::ChangeLog;
use crate::token::Position;
use crate::view::Subscription;
use crate::views::Full;

/// Where a subscriber begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// With a snapshot.
    Start,
    /// After a position of this hub.
    Position(Position),
    /// After a revision up to which another hub sent everything.
    Revision(u64),
}

/// A subscription and where it starts.
pub struct Attached {
    /// The subscription.
    pub subscription: Subscription,
    /// The id of the hub whose positions these are.
    pub hub: u64,
    /// Changes up to here are not sent.
    pub cursor: Position,
    /// Removals up to here are not sent: the client does not have these entities.
    pub removals_after: Position,
    /// The hub's progress when the subscription was made.
    pub reached: Reached,
    follow: watch::Receiver<AllReached>,
}

impl Attached {
    /// Returns the hub's current progress.
    pub fn reached_now(&self) -> Reached {
        self.follow.borrow()[self.subscription.view().filter.entity.index()]
    }
}

/// Why there is no subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachRefusal {
    /// The removals between the revision and this one must first be added to the hub.
    NeedsHistory(u64),
    /// The hub does not know all removals since then.
    Expired,
    /// Too many different filters.
    Full(Full),
}

impl HubState {
    /// Subscribes a user.
    ///
    /// # Errors
    /// Why there is no subscription.
    pub(super) fn attach(
        &mut self,
        filter: Filter,
        user: &Arc<str>,
        from: Resume,
    ) -> Result<Attached, AttachRefusal> {
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
        let view = self.views.get(filter, user, |filter| index.view(filter)).map_err(AttachRefusal::Full)?;
        let subscription = Subscription::new(view, user.clone());
        if from != Resume::Start && subscription.view().read(ChangeLog::horizon) > removals_after {
            let view = subscription.view();
            if !view.write(|log| index.reach_back(log, &view.filter, removals_after)) {
                return Err(AttachRefusal::Expired);
            }
        }
        let follow = self.follow();
        Ok(Attached { subscription, hub: self.id, cursor, removals_after, reached, follow })
    }

    /// Returns the cursor of a subscriber to which another hub sent everything up to `revision`.
    fn cursor_of(&self, entity: Entity, revision: u64) -> Result<Position, AttachRefusal> {
        let index = &self.indexes[entity.index()];
        let known_since = index.known_since();
        match entity {
            // It is not known what was sent, or removals since then were dropped.
            _ if revision == 0 || index.has_dropped_after(revision) => return Err(AttachRefusal::Expired),
            // An object that cannot be decoded may have been sent before, and is not among the removals.
            _ if self.has_unreadable(entity) => return Err(AttachRefusal::Expired),
            _ if revision >= known_since => {}
            // History has no removals of nodes: these come from changes of maintenances.
            Entity::Node => return Err(AttachRefusal::Expired),
            Entity::Maintenance | Entity::Eviction => return Err(AttachRefusal::NeedsHistory(known_since)),
        }
        // Hubs compute different rates, so all maintenances are sent again.
        let sends_all = entity == Entity::Maintenance;
        Ok(if sends_all { Position::START } else { Position::after_revision(revision) })
    }
}
