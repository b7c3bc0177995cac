//! Removes finished requests: those whose time is over, and the oldest of a namespace that has too many.
//!
//! They have a queue and workers of their own: thousands of removals in a namespace delay no turn, and few
//! deletes are in flight at once. While a namespace has too many finished requests that are not removed yet,
//! its requests that were never taken up are not ended: otherwise a client that creates requests faster than
//! they are removed would fill the store.

use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::cache::api;
use drydock_runtime::queue::{ExponentialBackoff, WorkQueue};
use drydock_runtime::{
    Cacheable, CallError, ControllerContext, ObjectChange, ObjectKey, Requeue, after_failed_write,
    run_workers,
};
use futures::FutureExt;
use kube::api::{DeleteParams, Preconditions};
use parking_lot::Mutex;
use tracing::debug;

use crate::STALE_RETRY_AFTER;
use crate::decision::Config;
use crate::ending::{ended_at, is_due};
use crate::held::HeldRequests;
use crate::surplus::SurplusRequests;

/// How many requests are removed at once.
const PARALLEL_REMOVALS: usize = 8;

/// The queue of removals. Clones share it.
#[derive(Clone)]
pub(crate) struct Removals {
    context: ControllerContext,
    config: Config,
    queue: WorkQueue<ObjectKey>,
    /// The controller's queue, to which held requests return when they are released.
    controller_queue: WorkQueue<ObjectKey>,
    stock: Arc<Mutex<Stock>>,
}

/// The finished requests that are beyond the limit, and the requests that are not ended because of them.
struct Stock {
    surplus: SurplusRequests,
    held: HeldRequests,
}

impl Removals {
    /// An empty queue; held requests return to `controller_queue` when they are released.
    pub(crate) fn new(
        context: &ControllerContext,
        config: &Config,
        controller_queue: &WorkQueue<ObjectKey>,
    ) -> Self {
        let stock =
            Stock { surplus: SurplusRequests::new(config.max_finished), held: HeldRequests::default() };
        let queue = WorkQueue::new("evictionrequest-removals", &context.metrics, ExponentialBackoff::WRITES);
        Self {
            context: context.clone(),
            config: config.clone(),
            queue,
            controller_queue: controller_queue.clone(),
            stock: Arc::new(Mutex::new(stock)),
        }
    }

    /// Queues a request for its removal; a worker checks it once more before it removes it.
    pub(crate) fn add(&self, key: ObjectKey) {
        self.queue.add(key);
    }

    /// Takes in a change of a request: one that ends may exceed the limit of its namespace, and one that is
    /// gone makes room.
    pub(crate) fn note(&self, change: &ObjectChange<EvictionRequest>) {
        let Some(request) = change.latest() else { return };
        // One that is being deleted waits for somebody's finalizer: there is nothing left to remove.
        let counts = |request: &&Arc<EvictionRequest>| !request.is_being_deleted();
        let ended = change.new.as_ref().filter(counts).and_then(|request| ended_at(request));
        let key = request.key();
        let (surplus, released) = {
            let mut stock = self.stock.lock();
            let surplus = stock.surplus.note(&key, ended);
            if change.new.is_none() {
                stock.held.forget(&key);
            }
            // A request that is to be removed and has changed is queued again, so that its new version is
            // removed.
            let surplus = surplus.or_else(|| stock.surplus.contains(&key).then(|| key.clone()));
            let behind = stock.surplus.count(&key.namespace);
            (surplus, stock.held.release(&key.namespace, behind))
        };
        surplus.into_iter().for_each(|key| self.queue.add(key));
        released.into_iter().for_each(|key| self.controller_queue.add(key));
    }

    /// Whether a request is not to be ended now, because the removal of its namespace's finished ones is behind. It is
    /// given back to the controller's queue when the removal has caught up.
    pub(crate) fn holds_back(&self, key: &ObjectKey) -> bool {
        let mut stock = self.stock.lock();
        let behind = stock.surplus.count(&key.namespace);
        stock.held.hold(key, behind)
    }

    /// Removes queued requests until shutdown.
    pub(crate) async fn run(self) {
        let (queue, context) = (self.queue.clone(), self.context.clone());
        let work = move |key| {
            let removals = self.clone();
            async move { removals.remove(key).await }.boxed()
        };
        run_workers(&context, queue, PARALLEL_REMOVALS, work).await;
    }

    async fn remove(&self, key: ObjectKey) -> Result<Requeue, CallError> {
        let Some(request) = self.context.caches.requests.get(&key) else { return Ok(Requeue::Never) };
        if !self.is_due(&key, &request) {
            return Ok(Requeue::Never);
        }
        self.context.check_lease()?;
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: Some(request.metadata.uid.clone()),
            resource_version: Some(request.metadata.resource_version.clone()),
        });
        let api = api::<EvictionRequest>(&self.context.client, &key.namespace);
        match api.delete(&key.name, &params).await {
            Ok(_) => {
                debug!(request = %key, "removed a finished request");
                Ok(Requeue::Never)
            }
            Err(error) => after_failed_write("removing the request", error, STALE_RETRY_AFTER),
        }
    }

    fn is_due(&self, key: &ObjectKey, request: &EvictionRequest) -> bool {
        if !request.is_finished() || request.is_being_deleted() {
            return false;
        }
        let is_surplus = self.stock.lock().surplus.contains(key);
        is_surplus || is_due(request, self.context.clock.now(), &self.config)
    }
}

#[cfg(test)]
#[path = "removal_tests.rs"]
mod tests;
