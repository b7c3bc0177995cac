//! The requests to a hub, and when they are answered.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::attach::{Attached, Refusal, Resume};
use super::core::Core;
use crate::filter::{Entity, Filter};
use crate::rate::Pace;

/// A request to a hub.
pub enum Request {
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
        reply: oneshot::Sender<Result<Attached, Refusal>>,
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
    /// Reads the pace of a maintenance.
    Pace {
        /// Its name.
        maintenance: String,
        /// The answer.
        reply: oneshot::Sender<Pace>,
    },
}

impl Request {
    /// Whether the caller has stopped waiting for the answer.
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
        // If the caller has stopped waiting, its subscription is dropped.
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
