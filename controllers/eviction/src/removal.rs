//! Removes finished requests: those whose time is over, and the oldest that a namespace has too many of.
//!
//! They have a queue and workers of their own, so that a namespace with thousands of them holds up nobody's turn, and the
//! API server is asked for few at a time.

use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::cache::api;
use drydock_runtime::queue::{Backoff, Queue};
use drydock_runtime::{Cacheable, Change, Context, ObjectKey, Outcome, clock, run_workers};
use futures::FutureExt;
use kube::api::{DeleteParams, Preconditions};
use parking_lot::Mutex;
use tracing::info;

use crate::cleanup::ended_at;
use crate::controller::{Error, is_stale};
use crate::machine::{Config, Target, step};
use crate::surplus::Surplus;

/// Requests that are removed at once.
const PARALLEL: usize = 8;

/// What removes. Clones share the queue.
#[derive(Clone)]
pub(crate) struct Removals {
    context: Context,
    config: Config,
    queue: Queue<ObjectKey>,
    surplus: Arc<Mutex<Surplus>>,
}

impl Removals {
    /// An empty queue.
    pub(crate) fn new(context: &Context, config: &Config) -> Self {
        let surplus = Arc::new(Mutex::new(Surplus::new(config.max_finished)));
        let queue = Queue::new("evictionrequest-removals", &context.metrics, Backoff::WRITES);
        Self { context: context.clone(), config: config.clone(), queue, surplus }
    }

    /// A request is to be removed; it is looked at once more before it is.
    pub(crate) fn add(&self, key: ObjectKey) {
        self.queue.add(key);
    }

    /// Takes in a change of a request: one that ends may be one too many.
    pub(crate) fn note(&self, change: &Change<EvictionRequest>) {
        let Some(request) = change.latest() else { return };
        // One that is being deleted waits for somebody's finalizer: there is nothing left to remove.
        let counts = |request: &&Arc<EvictionRequest>| request.metadata.deletion_timestamp.is_none();
        let ended = change.new.as_ref().filter(counts).and_then(|request| ended_at(request));
        let surplus = self.surplus.lock().note(&request.key(), ended);
        if let Some(key) = surplus {
            self.queue.add(key);
        }
    }

    /// Removes until shutdown.
    pub(crate) async fn run(self) {
        let (queue, stop) = (self.queue.clone(), self.context.shutdown.clone());
        let work = move |key| {
            let removals = self.clone();
            async move { removals.remove(key).await }.boxed()
        };
        run_workers(queue, PARALLEL, stop, work).await;
    }

    async fn remove(&self, key: ObjectKey) -> Result<Outcome, Error> {
        let Some(request) = self.context.caches.requests.get(&key) else { return Ok(Outcome::Done) };
        if !self.is_due(&key, &request) {
            return Ok(Outcome::Done);
        }
        if !self.context.may_write() {
            return Err(Error::NoLease);
        }
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: Some(request.metadata.uid.clone()),
            resource_version: Some(request.metadata.resource_version.clone()),
        });
        let api = api::<EvictionRequest>(&self.context.client, &key.namespace);
        match api.delete(&key.name, &params).await {
            Ok(_) => {
                info!(request = %key, "removed a finished request");
                Ok(Outcome::Done)
            }
            Err(error) if is_stale(&error) => Ok(Outcome::Retry),
            Err(error) => Err(Error::Delete(error)),
        }
    }

    fn is_due(&self, key: &ObjectKey, request: &EvictionRequest) -> bool {
        request.is_finished()
            && request.metadata.deletion_timestamp.is_none()
            && (self.surplus.lock().contains(key)
                || step(request, Target::NotCached, clock::now(), &self.config).delete)
    }
}

#[cfg(test)]
#[path = "removal_tests.rs"]
mod tests;
