//! How callers reach a hub.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::attach::{AttachRefusal, Attached, Resume};
use super::command::HubCommand;
use super::state::AllReached;
use crate::filter::{Entity, Filter};
use crate::rate::DrainRate;

/// A handle to a hub, which may have ended.
#[derive(Clone)]
pub struct HubHandle {
    /// The hub's id, which its tokens contain.
    pub id: u64,
    /// The progress of each kind.
    pub reached: watch::Receiver<AllReached>,
    requests: mpsc::Sender<HubCommand>,
}

impl HubHandle {
    pub(super) fn new(
        id: u64,
        reached: watch::Receiver<AllReached>,
        requests: mpsc::Sender<HubCommand>,
    ) -> Self {
        Self { id, reached, requests }
    }

    /// Whether the hub has ended.
    pub fn has_ended(&self) -> bool {
        self.requests.is_closed()
    }

    /// Whether the hub is filled. Until then it does not answer.
    pub fn is_filled(&self) -> bool {
        is_filled(&self.reached.borrow())
    }

    /// Waits until the hub is filled. Returns `None` if it has ended before.
    pub async fn wait_until_filled(&self) -> Option<()> {
        self.reached.clone().wait_for(is_filled).await.is_ok().then_some(())
    }

    /// Subscribes a user, once the hub has processed everything up to `at_least`. Returns `None` if the hub has ended.
    pub async fn attach(
        &self,
        filter: Filter,
        user: Arc<str>,
        from: Resume,
        at_least: u64,
    ) -> Option<Result<Attached, AttachRefusal>> {
        self.ask(|reply| HubCommand::Attach { filter, user, from, at_least, reply }).await
    }

    /// Adds removals after `since` to the hub. Returns `None` if the hub has ended.
    pub async fn add_history(&self, entity: Entity, since: u64, removed: Vec<(Arc<str>, u64)>) -> Option<()> {
        self.ask(|reply| HubCommand::History { entity, since, removed, reply }).await
    }

    /// Returns the drain rate of a maintenance; `None` if the hub has ended.
    pub async fn drain_rate(&self, maintenance: String) -> Option<DrainRate> {
        self.ask(|reply| HubCommand::DrainRate { maintenance, reply }).await
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> HubCommand) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.ok()?;
        answer.await.ok()
    }
}

fn is_filled(reached: &AllReached) -> bool {
    *reached != AllReached::default()
}
