//! Reflectors of the host's configurations: the last known ones stay in force while the host cannot be reached.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use drydock_logging::WatchFailures;
use drydock_serving::tasks::ProgramTasks;
use futures::{FutureExt, StreamExt};
use kube::runtime::reflector::{Store, store::Writer};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

/// A reflector of all objects of one kind.
pub struct HostReflector<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// The objects as last seen.
    pub known: Store<K>,
    task: AbortHandle,
}

impl<K> HostReflector<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Default + Send + Sync + 'static,
{
    /// Starts a reflector in a task of its own, with backoff; `changed` is notified of every change.
    pub fn start(what: &'static str, api: Api<K>, changed: Arc<Notify>, tasks: &ProgramTasks) -> Self {
        let writer = Writer::default();
        let known = writer.as_reader();
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let mut events = reflector(writer, events).boxed();
        let task = tasks.spawn_endless(format!("reflector of {what}"), async move {
            let mut failures = WatchFailures::default();
            while let Some(event) = events.next().await {
                if event.is_ok() {
                    changed.notify_one();
                }
                if let Some(error) = failures.take_in(&event) {
                    tracing::warn!(error, "cannot follow the host's {what} for admission; trying again");
                }
            }
        });
        Self { known, task }
    }

    /// Whether all objects have been listed.
    pub fn is_ready(&self) -> bool {
        self.known.wait_until_ready().now_or_never().is_some_and(|ready| ready.is_ok())
    }
}

impl<K> Drop for HostReflector<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Longest time that a request waits for the first list from the host.
const WAIT: Duration = Duration::from_secs(10);

/// Whether the host's configurations have been read: no write is admitted before (k8s.io/apiserver pkg/admission,
/// Handler.WaitForReady).
#[derive(Clone)]
pub struct ReflectorReadiness(watch::Receiver<bool>);

impl ReflectorReadiness {
    /// Creates the readiness from the receiver of a reflector.
    pub fn new(is_ready: watch::Receiver<bool>) -> Self {
        Self(is_ready)
    }

    /// Whether the configurations have been read.
    pub fn is_ready(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until they have been read, at most as long as a request may wait.
    pub async fn wait(&self) {
        let mut ready = self.0.clone();
        let waited = tokio::time::timeout(WAIT, ready.wait_for(|ready| *ready)).await;
        if waited.is_err() {
            tracing::warn!("a write is refused: the host's admission configurations have not been read yet");
        }
    }
}
