//! Keeps a store current from a list and a watch.

use std::collections::HashSet;
use std::time::Duration;

use drydock_logging::{WatchFailures, with_causes};
use futures::StreamExt;
use kube::Client;
use kube::runtime::watcher::{self, Event, watcher};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info, info_span, warn};

use super::bounded_pages::{bounded, metadata_alone};
use super::cacheable::{Cacheable, ObjectKey};
use super::kube_object::{KubeObject, api_all};
use super::shared_parts::SharedParts;
use super::store::Store;

/// Longest delay before an unreachable server is asked again.
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// First delay before an unreachable server is asked again; each later one is twice as long.
const MIN_BACKOFF: Duration = Duration::from_millis(200);

/// Feeds `store` until `stop`. Errors are logged, and the watch is tried again with backoff until it works,
/// at the start as well as later.
pub async fn reflect<T: Cacheable>(client: Client, store: Store<T>, stop: CancellationToken) {
    let into = store.clone();
    reflect_into(client, &store, move |object| into.apply(object), stop).await;
}

/// Like [`reflect`], with a function that takes each new or changed object into the store.
pub(super) async fn reflect_into<T: Cacheable>(
    client: Client,
    store: &Store<T>,
    apply: impl Fn(T) + Send + Sync,
    stop: CancellationToken,
) {
    feed(client, store, apply, stop).instrument(info_span!("reflector", resource = T::PLURAL)).await;
}

async fn feed<T: Cacheable>(
    client: Client,
    store: &Store<T>,
    apply: impl Fn(T) + Send + Sync,
    stop: CancellationToken,
) {
    let client = bounded(if T::IS_METADATA { metadata_alone(client) } else { client });
    let mut stream = std::pin::pin!(watcher(api_all::<T>(&client), watcher::Config::default()));
    let (mut listed, mut parts) = (HashSet::new(), SharedParts::default());
    let (mut failures, mut watch_failures) = (0, WatchFailures::default());
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = stream.next() => event,
        };
        if let Some(error) = event.as_ref().and_then(|event| watch_failures.take_in(event)) {
            warn!(resource = T::PLURAL, group = T::GROUP, error, "cannot watch; trying again until it works");
        }
        match event {
            // `Init` only announces a list; it says nothing about whether the server answers.
            Some(Ok(Event::Init)) => listed.clear(),
            Some(Ok(event)) => {
                report_recovery::<T>(std::mem::take(&mut failures));
                take_in(store, &apply, &mut listed, &mut parts, event);
            }
            Some(Err(error)) => {
                let error = with_causes(&error);
                debug!(resource = T::PLURAL, group = T::GROUP, error, failures, "cannot watch");
                failures += 1;
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(backoff(failures)) => {}
                }
            }
            None => return,
        }
    }
}

fn take_in<T: Cacheable>(
    store: &Store<T>,
    apply: &impl Fn(T),
    listed: &mut HashSet<ObjectKey>,
    parts: &mut SharedParts,
    event: Event<KubeObject<T>>,
) {
    match event {
        Event::Init => {}
        Event::InitApply(wire) => {
            listed.insert(wire.object.key());
            apply(compacted(wire, parts));
        }
        Event::InitDone => {
            let is_first = !store.is_synced();
            store.finish_list(&std::mem::take(listed));
            if is_first {
                info!(resource = T::PLURAL, group = T::GROUP, objects = store.len(), "cache is complete");
            }
        }
        Event::Apply(wire) => apply(compacted(wire, parts)),
        Event::Delete(wire) => store.delete(&wire.object.key()),
    }
}

fn compacted<T: Cacheable>(wire: KubeObject<T>, parts: &mut SharedParts) -> T {
    let mut object = wire.object;
    object.compact(parts);
    object
}

fn backoff(failures: u32) -> Duration {
    MIN_BACKOFF.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1).min(16))).min(MAX_BACKOFF)
}

fn report_recovery<T: Cacheable>(failures: u32) {
    if failures > 0 {
        info!(resource = T::PLURAL, group = T::GROUP, failures, "watching again");
    }
}
