//! How callers reach a hub.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::attach::{Attached, Refusal, Resume};
use super::core::AllReached;
use super::request::Request;
use crate::filter::{Entity, Filter};
use crate::rate::Pace;

/// A handle to a hub, which may have ended.
#[derive(Clone)]
pub struct Handle {
    /// The hub's id, which its tokens contain.
    pub id: u64,
    /// The progress of each kind.
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

    /// Whether the hub is filled. Until then it does not answer.
    pub fn is_filled(&self) -> bool {
        *self.reached.borrow() != AllReached::default()
    }

    /// Subscribes a user, once the hub has processed everything up to `at_least`. Returns `None` if the hub has ended.
    pub async fn attach(
        &self,
        filter: Filter,
        user: Arc<str>,
        from: Resume,
        at_least: u64,
    ) -> Option<Result<Attached, Refusal>> {
        self.ask(|reply| Request::Attach { filter, user, from, at_least, reply }).await
    }

    /// Adds removals after `since` to the hub. Returns `None` if the hub has ended.
    pub async fn add_history(&self, entity: Entity, since: u64, removed: Vec<(Arc<str>, u64)>) -> Option<()> {
        self.ask(|reply| Request::History { entity, since, removed, reply }).await
    }

    /// Returns the pace of a maintenance; `None` if the hub has ended.
    pub async fn pace(&self, maintenance: String) -> Option<Pace> {
        self.ask(|reply| Request::Pace { maintenance, reply }).await
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.ok()?;
        answer.await.ok()
    }
}
