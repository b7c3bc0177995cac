//! What a server knows of its host: how to reach it, and objects of the host that it follows by their metadata.

mod client;
mod observe;

use futures::{FutureExt, StreamExt};
use kube::Api;
use kube::api::PartialObjectMeta;
use kube::runtime::reflector::{Store, store};
use kube::runtime::{WatchStreamExt, reflector, watcher};

pub use client::{Patience, client, client_with};
pub use drydock_logging::{WatchFailures, with_causes};

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
            let mut failures = WatchFailures::default();
            while let Some(event) = events.next().await {
                if let Some(error) = failures.take_in(&event) {
                    tracing::warn!(error, "cannot follow the host's {what}; trying again");
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
