//! The requests to a hub, and when they are answered.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::attach::{AttachRefusal, Attached, Resume};
use super::state::HubState;
use crate::filter::{Entity, Filter};
use crate::rate::DrainRate;

/// A request to a hub.
pub enum HubCommand {
    /// Subscribes a user.
    Attach {
        /// What the user subscribes to.
        filter: Filter,
        /// The user.
        user: Arc<str>,
        /// Where the subscription starts.
        from: Resume,
        /// It is answered once the hub has processed everything up to this revision.
        at_least: u64,
        /// The answer.
        reply: oneshot::Sender<Result<Attached, AttachRefusal>>,
    },
    /// Adds removals from before the hub's start.
    History {
        /// The kind of entities.
        entity: Entity,
        /// `removed` has all removals after this revision, up to the one from which on the hub knows them.
        since: u64,
        /// Keys with the revisions at which they were removed.
        removed: Vec<(Arc<str>, u64)>,
        /// Notified when it is done.
        reply: oneshot::Sender<()>,
    },
    /// Reads the drain rate of a maintenance.
    DrainRate {
        /// Its name.
        maintenance: String,
        /// The answer.
        reply: oneshot::Sender<DrainRate>,
    },
}

impl HubCommand {
    /// Whether the caller has stopped waiting for the answer.
    pub(super) fn is_given_up(&self) -> bool {
        match self {
            Self::Attach { reply, .. } => reply.is_closed(),
            Self::History { reply, .. } => reply.is_closed(),
            Self::DrainRate { reply, .. } => reply.is_closed(),
        }
    }
}

impl HubState {
    /// Whether a request can be answered with what is known.
    pub(super) fn can_serve(&self, request: &HubCommand) -> bool {
        match request {
            HubCommand::Attach { filter, at_least, .. } => self.reached(filter.entity).floor >= *at_least,
            HubCommand::History { .. } | HubCommand::DrainRate { .. } => true,
        }
    }

    /// Answers a request.
    pub(super) fn serve(&mut self, request: HubCommand) {
        // If the caller has stopped waiting, its subscription is dropped.
        match request {
            HubCommand::Attach { filter, user, from, reply, .. } => {
                let _ = reply.send(self.attach(filter, &user, from));
            }
            HubCommand::History { entity, since, removed, reply } => {
                self.indexes[entity.index()].add_history(since, &removed, &mut self.past_serial);
                let _ = reply.send(());
            }
            HubCommand::DrainRate { maintenance, reply } => {
                let _ = reply.send(self.facts.drain_rate(&maintenance));
            }
        }
    }
}
