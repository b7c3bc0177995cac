//! How callers reach a hub.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::attach::{Attached, Refusal, Resume};
use super::core::AllReached;
use super::request::Request;
use crate::filter::{Entity, Filter};
use crate::rate::Pace;

/// A hub that runs, or that ran.
#[derive(Clone)]
pub struct Handle {
    /// Says whose positions a token has.
    pub id: u64,
    /// How far each kind has come.
    pub reached: watch::Receiver<AllReached>,
    requests: mpsc::Sender<Request>,
}

impl Handle {
    pub(super) fn new(
        id: u64,
        reached: watch::Receiver<AllReached>,
        requests: mpsc::Sender<Request>,
    ) -> Self {
        Self { id, reached, requests }
    }

    /// Whether the hub has ended.
    pub fn has_ended(&self) -> bool {
        self.requests.is_closed()
    }

    /// Whether it answers at once.
    pub fn is_filled(&self) -> bool {
        *self.reached.borrow() != AllReached::default()
    }

    /// Subscribes a user, once the hub has seen everything up to a revision. None if the hub has ended.
    pub async fn attach(
        &self,
        filter: Filter,
        user: Arc<str>,
        from: Resume,
        at_least: u64,
    ) -> Option<Result<Attached, Refusal>> {
        self.ask(|reply| Request::Attach { filter, user, from, at_least, reply }).await
    }

    /// Gives it removals after `since`. None if the hub has ended.
    pub async fn add_history(&self, entity: Entity, since: u64, removed: Vec<(Arc<str>, u64)>) -> Option<()> {
        self.ask(|reply| Request::History { entity, since, removed, reply }).await
    }

    /// How fast a maintenance goes. None if the hub has ended.
    pub async fn pace(&self, maintenance: String) -> Option<Pace> {
        self.ask(|reply| Request::Pace { maintenance, reply }).await
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.ok()?;
        answer.await.ok()
    }
}
