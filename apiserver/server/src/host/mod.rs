//! What a server knows of its host: how to reach it, and objects of the host that it follows by their metadata.

mod client;
mod namespaces;
mod observe;

use futures::{FutureExt, StreamExt};
use kube::Api;
use kube::api::PartialObjectMeta;
use kube::runtime::reflector::{Store, store};
use kube::runtime::{WatchStreamExt, reflector, watcher};

pub use client::{Patience, client, client_with};
pub use namespaces::HostNamespaces;

/// The metadata of all objects of one of the host's kinds, followed.
pub struct Followed<K>(Store<PartialObjectMeta<K>>)
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static;

impl<K> Followed<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    /// Starts following `what` in a task of its own, with backoff, saying so while the host cannot be reached.
    pub fn start(what: &'static str, api: Api<PartialObjectMeta<K>>) -> Self {
        let (reader, writer) = store();
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let mut events = reflector(writer, events).boxed();
        tokio::spawn(async move {
            let mut refusals = Refusals::default();
            while let Some(event) = events.next().await {
                if let Some(error) = refusals.first(event.err()) {
                    tracing::warn!(%error, "cannot follow the host's {what}; trying again");
                }
            }
        });
        Self(reader)
    }

    /// Whether all objects are known.
    pub fn ready(&self) -> bool {
        self.0.wait_until_ready().now_or_never().is_some_and(|r| r.is_ok())
    }

    /// What is known now.
    pub fn known(&self) -> &Store<PartialObjectMeta<K>> {
        &self.0
    }
}

/// The failures of a watch, of which one of each row is told: an answer of the host's. Of a host that does not answer the
/// client tells, once for all watches.
#[derive(Debug, Default)]
pub struct Refusals {
    is_told: bool,
}

impl Refusals {
    /// Takes in how the watch went on. Returns the failure that is to be told.
    pub fn first(&mut self, failure: Option<watcher::Error>) -> Option<watcher::Error> {
        let refusal = failure.filter(is_answer);
        let was_told = std::mem::replace(&mut self.is_told, refusal.is_some());
        refusal.filter(|_| !was_told)
    }
}

fn is_answer(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => {
            !matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_))
        }
        _ => true,
    }
}
