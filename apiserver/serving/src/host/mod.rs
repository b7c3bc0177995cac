//! The host: the client that reaches it, and reflectors of its objects.

mod client;
mod observe;

use drydock_logging::WatchFailures;
use futures::{FutureExt, StreamExt};
use kube::Api;
use kube::api::PartialObjectMeta;
use kube::runtime::reflector::{Store, store};
use kube::runtime::{WatchStreamExt, reflector, watcher};

pub use client::{KeepAlive, client, client_with};

/// Reflects the metadata of all objects of one of the host's kinds.
pub struct Reflector<K>(Store<PartialObjectMeta<K>>)
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static;

impl<K> Reflector<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    /// Starts a task that reflects `what`. While the host cannot be reached it tries again with backoff, and logs that.
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

    /// The objects that are known now.
    pub fn known(&self) -> &Store<PartialObjectMeta<K>> {
        &self.0
    }
}
