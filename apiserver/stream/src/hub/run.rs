//! The hub's task.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use drydock_storage::storage::{StorageError, Stored, WatchEvent};
use drydock_storage::work_meter::WorkMeter;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use uuid::Uuid;

use super::command::HubCommand;
use super::fill::{Following, Stores, fill};
use super::handle::HubHandle;
use super::state::{AllReached, HubState, Source};
use crate::config::Config;
use crate::metrics::{Held, Metrics};

/// Maximum number of requests in the channel, and of requests that wait for a newer state.
const QUEUE: usize = 256;
/// How often progress without events is published, and idle views are dropped.
const TICK: Duration = Duration::from_secs(1);
/// How often progress is checked while requests wait for it.
const PROGRESS_POLL: Duration = Duration::from_millis(2);
/// How long requests are answered before changes are applied again; a single answer may take longer.
const SERVE_TIME: Duration = Duration::from_millis(5);
/// First and longest wait between attempts to read storage.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Bytes that a [`WorkMeter`] counts for each unit of the cost that [`Views::apply`](crate::views::Views::apply)
/// returns.
const COST: usize = 32;
/// Number of attempts to read storage after the first.
const TRIES: usize = 20;

/// Starts a hub. Must be called within a Tokio runtime.
pub fn start(stores: Stores, config: Config, metrics: Metrics) -> HubHandle {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    let id = high ^ low;
    let (requests, received) = mpsc::channel(QUEUE);
    let (reached, follow) = watch::channel(AllReached::default());
    tokio::spawn(run(stores, config, metrics, id, reached, received));
    HubHandle::new(id, follow, requests)
}

async fn run(
    stores: Stores,
    config: Config,
    metrics: Metrics,
    id: u64,
    reached: watch::Sender<AllReached>,
    requests: mpsc::Receiver<HubCommand>,
) {
    let (mut tries, mut wait) = (0, BACKOFF.0);
    let filled = loop {
        match fill(&stores, &config, reached.clone(), id).await {
            Ok(filled) => break filled,
            Err(error) if tries == TRIES => {
                tracing::warn!(%error, "the status stream cannot read storage");
                return;
            }
            Err(_) => sleep(wait).await,
        }
        (tries, wait) = (tries + 1, (2 * wait).min(BACKOFF.1));
    };
    let (state, maintenances, evictions) = filled;
    let mut hub = Hub {
        state,
        config,
        metrics,
        requests,
        used: Instant::now(),
        rates_updated: Instant::now(),
        waiting: Vec::new(),
    };
    if let Err(error) = hub.follow(maintenances, evictions).await {
        tracing::info!(%error, "a watch of the status stream ended: its subscribers begin anew");
    }
}

struct Hub {
    state: HubState,
    config: Config,
    metrics: Metrics,
    requests: mpsc::Receiver<HubCommand>,
    /// When a view was last seen with subscribers.
    used: Instant,
    rates_updated: Instant,
    /// Requests that need a newer state.
    waiting: Vec<HubCommand>,
}

impl Hub {
    /// Follows both watches until there were no subscribers for the idle timeout.
    ///
    /// # Errors
    /// The error that a watch ended with.
    async fn follow(&mut self, maintenances: Following, evictions: Following) -> Result<(), StorageError> {
        let (mut first, mut second) = (maintenances.watcher, evictions.watcher);
        self.take(Source::Maintenances, maintenances.rest, first.progress().0).await?;
        self.take(Source::Evictions, evictions.rest, second.progress().0).await?;
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let may_wait = self.waiting.len() < QUEUE;
            tokio::select! {
                events = first.next() => {
                    let progress = first.progress().0;
                    self.take(Source::Maintenances, events.unwrap_or_else(over), progress).await?;
                }
                events = second.next() => {
                    let progress = second.progress().0;
                    self.take(Source::Evictions, events.unwrap_or_else(over), progress).await?;
                }
                request = self.requests.recv(), if may_wait => match request {
                    Some(request) => self.waiting.push(request),
                    None => return Ok(()),
                },
                () = sleep(PROGRESS_POLL), if !self.waiting.is_empty() => {}
                _ = tick.tick() => {
                    self.tick();
                    if self.used.elapsed() >= self.config.idle_timeout {
                        return Ok(());
                    }
                }
            }
            self.state.processed(Source::Maintenances, first.progress().0);
            self.state.processed(Source::Evictions, second.progress().0);
            self.state.publish();
            self.serve();
        }
    }

    /// Answers the requests that can be answered, in order, for [`SERVE_TIME`]. The others wait until changes were
    /// applied.
    fn serve(&mut self) {
        let began = Instant::now();
        for request in std::mem::take(&mut self.waiting) {
            if request.is_given_up() {
                continue;
            }
            if began.elapsed() < SERVE_TIME && self.state.can_serve(&request) {
                self.state.serve(request);
            } else {
                self.waiting.push(request);
            }
        }
    }

    async fn take(
        &mut self,
        source: Source,
        events: Vec<WatchEvent>,
        progress: u64,
    ) -> Result<(), StorageError> {
        let mut work = WorkMeter::default();
        for (stored, is_there) in newest(events)? {
            let cost = self.state.take(source, &stored, is_there, (self.config.clock)());
            work.worked(stored.json_len() + cost * COST).await;
        }
        self.state.processed(source, progress);
        self.state.publish();
        Ok(())
    }

    fn tick(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.rates_updated) >= self.config.rate_interval {
            self.rates_updated = now;
            self.state.update_drain_rates((self.config.clock)());
        }
        self.state.views.sweep();
        self.metrics.holds(self.state.held());
        if self.state.views.is_read() {
            self.used = now;
        }
    }
}

impl Drop for Hub {
    /// Ends all views, also after a panic, so that subscribers attach to the next hub.
    fn drop(&mut self) {
        self.requests.close();
        self.state.views.end();
        self.metrics.holds(Held::default());
    }
}

/// Returns the newest state of each object in a batch, in the order of their changes, and whether the object exists.
/// Logs keep no older states either, and a hub that is late catches up by skipping them.
///
/// # Errors
/// The error that the watch failed with.
fn newest(events: Vec<WatchEvent>) -> Result<Vec<(Arc<Stored>, bool)>, StorageError> {
    let mut changes = Vec::with_capacity(events.len());
    for event in events {
        match event {
            WatchEvent::Added(stored) | WatchEvent::Modified(stored) => changes.push((stored, true)),
            WatchEvent::Deleted(stored) => changes.push((stored, false)),
            WatchEvent::Bookmark { .. } => {}
            WatchEvent::Failed(error) => return Err(error),
        }
    }
    let mut seen = HashSet::with_capacity(changes.len());
    let mut newest: Vec<_> =
        changes.into_iter().rev().filter(|(stored, _)| seen.insert(stored.key.clone())).collect();
    newest.reverse();
    Ok(newest)
}

/// The events of a watcher that has ended: it has failed.
fn over() -> Vec<WatchEvent> {
    vec![WatchEvent::Failed(StorageError::NotReady)]
}

#[cfg(test)]
mod tests {
    use drydock_machinery::Object;
    use drydock_storage::backend::Revision;

    use super::*;

    #[test]
    fn of_a_batch_the_newest_state_of_each_object_is_taken_in() {
        let stored = |key: &str, revision| {
            Arc::new(Stored::new(key.to_owned(), Object::default(), Revision(revision)))
        };
        let events = vec![
            WatchEvent::Added(stored("a", 1)),
            WatchEvent::Modified(stored("b", 2)),
            WatchEvent::Deleted(stored("a", 3)),
            WatchEvent::Modified(stored("c", 4)),
            WatchEvent::Modified(stored("b", 5)),
        ];
        let newest = newest(events).map(|changes| {
            let of =
                |(stored, is_there): (Arc<Stored>, bool)| (stored.key.clone(), stored.revision.0, is_there);
            changes.into_iter().map(of).collect::<Vec<_>>()
        });
        let expected =
            [("a", 3, false), ("c", 4, true), ("b", 5, true)].map(|(key, at, is)| (key.into(), at, is));
        assert!(newest.is_ok_and(|newest| newest == expected));
        let failed = vec![WatchEvent::Added(stored("a", 1)), WatchEvent::Failed(StorageError::NotReady)];
        assert!(super::newest(failed).is_err());
    }
}
