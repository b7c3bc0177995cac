//! A subscriber: a cursor into a view. It buffers nothing that it has still to send, no matter how slow its client is.
//!
//! ```text
//!   removals_after ── removals up to here are not sent
//!   cursor ────────── everything up to here was sent
//!   marker ────────── `snapshot_complete` comes after everything up to here
//!   batch ─────────── with a minimum interval: later entries wait for the next batch
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::Status;

use crate::codec::StreamMessage;
use crate::filter::Filter;
use crate::hub::attach::Attached;
use crate::hub::state::Reached;
use crate::hubs::Hubs;
use crate::log::{ChangeEntry, ChangeLog};
use crate::messages::fields::{HEARTBEAT, SNAPSHOT_COMPLETE, SNAPSHOT_STARTED};
use crate::metrics::Counted;
use crate::request::Watch;
use crate::token::{Position, Token};

/// Called when all entities of the initial snapshot of a stream were sent.
pub type SnapshotSent = Box<dyn FnOnce() + Send>;

/// One stream.
pub struct Subscriber {
    hubs: Arc<Hubs>,
    user: Arc<str>,
    digest: u64,
    attached: Attached,
    /// Whether `snapshot_started` is sent next.
    starts: bool,
    /// Once everything up to here was sent, `snapshot_complete` is sent; `None` after that.
    marker: Option<Reached>,
    /// `None` once it was called.
    snapshot_sent: Option<SnapshotSent>,
    token: Token,
    interval: Duration,
    batch: Batch,
    heartbeat: Duration,
    last_sent_at: Instant,
    _open: Counted,
    /// Fires no later than the next heartbeat is due. It is reset only when it has fired or must fire earlier.
    timer: Pin<Box<Sleep>>,
}

/// What may be sent now, if there is a minimum interval between updates.
#[derive(Clone, Copy, Debug)]
enum Batch {
    /// Everything up to here.
    Until(Position),
    /// Nothing before this time.
    Waits(Instant),
    /// Everything; the next entry starts a batch.
    Open,
}

impl Subscriber {
    /// Subscribes a user.
    ///
    /// # Errors
    /// What [`Hubs::attach`] returns.
    pub async fn open(
        hubs: Arc<Hubs>,
        user: Arc<str>,
        watch: Watch,
        snapshot_sent: Option<SnapshotSent>,
    ) -> Result<Self, Status> {
        let Watch { filter, token: from, interval } = watch;
        let attached = hubs.attach_new(filter, user.clone(), from).await?;
        let heartbeat = hubs.config.heartbeat;
        let digest = attached.subscription.view().filter.digest();
        let floor = from.map_or(0, |token| token.floor);
        let token = Token { hub: attached.hub, position: attached.cursor, floor, filter: digest };
        let (open, last_sent_at) = (hubs.metrics.opened(), Instant::now());
        Ok(Self {
            hubs,
            user,
            digest,
            starts: from.is_none(),
            marker: Some(attached.reached),
            attached,
            snapshot_sent,
            token,
            interval,
            batch: Batch::Open,
            heartbeat,
            last_sent_at,
            _open: open,
            timer: Box::pin(sleep_until(last_sent_at + heartbeat)),
        })
    }

    /// Waits for the next response. Cancel safe.
    ///
    /// # Errors
    /// The status that ends the stream, if it cannot be attached to a hub again.
    pub async fn next(&mut self) -> Result<StreamMessage, Status> {
        loop {
            if self.attached.subscription.has_ended() {
                self.attach_again().await?;
            }
            if let Some(message) = self.poll_message() {
                return Ok(self.sends(message));
            }
            if self.wait().await {
                // The heartbeat's token has the stream's current progress.
                let message = self.poll_message().unwrap_or_else(|| self.message(HEARTBEAT));
                return Ok(self.sends(message));
            }
        }
    }

    fn sends(&mut self, message: StreamMessage) -> StreamMessage {
        self.last_sent_at = Instant::now();
        self.hubs.metrics.sent();
        message
    }

    /// Waits until there may be something to send; `true` if a heartbeat is due.
    async fn wait(&mut self) -> bool {
        let due = self.last_sent_at + self.heartbeat;
        let paused = match self.batch {
            Batch::Waits(until) => Some(until),
            Batch::Until(_) | Batch::Open => None,
        };
        let rings = paused.map_or(due, |until| until.min(due));
        if self.timer.deadline() > rings || self.timer.is_elapsed() {
            self.timer.as_mut().reset(rings);
        }
        let _caught_up = paused.is_none().then(|| self.hubs.metrics.caught_up());
        tokio::select! {
            () = self.attached.subscription.changed(), if paused.is_none() => false,
            () = self.timer.as_mut() => Instant::now() >= due,
        }
    }

    /// The next response, if there is one.
    fn poll_message(&mut self) -> Option<StreamMessage> {
        if self.starts {
            self.starts = false;
            self.token = Token { position: Position::START, floor: 0, ..self.token };
            return Some(self.message(SNAPSHOT_STARTED));
        }
        if let Batch::Waits(until) = self.batch {
            if Instant::now() < until {
                return None;
            }
            self.batch = Batch::Open;
        }
        // Read before the view: everything that the hub has reached is in the view by then.
        let reached = self.attached.reached_now();
        match self.next_entry() {
            NextEntry::FellBehind => Some(self.begin_anew(reached)),
            NextEntry::Entry(entry) if self.marker.is_none_or(|marker| entry.position <= marker.position) => {
                Some(self.send(&entry))
            }
            NextEntry::Nothing | NextEntry::Later | NextEntry::Entry(_) if self.marker.is_some() => {
                self.complete()
            }
            NextEntry::Entry(entry) => Some(self.send(&entry)),
            NextEntry::Later => {
                self.batch = Batch::Waits(Instant::now() + self.interval);
                None
            }
            NextEntry::Nothing => {
                self.drained(reached);
                None
            }
        }
    }

    fn next_entry(&mut self) -> NextEntry {
        let Attached { subscription, cursor, removals_after, .. } = &self.attached;
        let (cursor, removals_after) = (*cursor, *removals_after);
        let (batch, is_batched) = (self.batch, !self.interval.is_zero());
        let (next, end) = subscription.view().read(|log| {
            let end = match batch {
                Batch::Until(end) => end,
                Batch::Open | Batch::Waits(_) => log.end(),
            };
            (next(log, cursor, removals_after, is_batched.then_some(end)), end)
        });
        if is_batched && matches!(next, NextEntry::Entry(_)) {
            self.batch = Batch::Until(end);
        }
        next
    }

    fn send(&mut self, entry: &ChangeEntry) -> StreamMessage {
        self.attached.cursor = entry.position;
        self.moved(Reached { position: entry.position, floor: entry.floor });
        self.message(entry.event.clone())
    }

    /// Called when everything up to the marker was sent: completes the snapshot.
    fn complete(&mut self) -> Option<StreamMessage> {
        let marker = self.marker.take()?;
        if let Some(snapshot_sent) = self.snapshot_sent.take() {
            snapshot_sent();
        }
        self.attached.cursor = self.attached.cursor.max(marker.position);
        self.moved(Reached { position: self.attached.cursor, floor: marker.floor });
        Some(self.message(SNAPSHOT_COMPLETE))
    }

    /// Called when everything that the hub has reached was sent.
    fn drained(&mut self, reached: Reached) {
        self.attached.cursor = self.attached.cursor.max(reached.position);
        self.moved(Reached { position: self.attached.cursor, floor: reached.floor });
        if let Batch::Until(_) = self.batch {
            self.batch = Batch::Waits(Instant::now() + self.interval);
        }
    }

    fn begin_anew(&mut self, reached: Reached) -> StreamMessage {
        let end = self.attached.subscription.view().read(ChangeLog::end).max(reached.position);
        self.attached.cursor = Position::START;
        self.attached.removals_after = end;
        self.marker = Some(Reached { position: end, floor: reached.floor });
        self.batch = Batch::Open;
        self.token = Token { position: Position::START, floor: 0, ..self.token };
        self.message(SNAPSHOT_STARTED)
    }

    fn moved(&mut self, to: Reached) {
        self.token = Token { position: to.position, floor: to.floor.max(self.token.floor), ..self.token };
    }

    fn message(&self, event: Bytes) -> StreamMessage {
        StreamMessage { token: self.token, event }
    }

    /// Continues with another view (of the next hub, if this one has ended), like a client that resumes with the last
    /// token.
    async fn attach_again(&mut self) -> Result<(), Status> {
        let filter: Filter = self.attached.subscription.view().filter.clone();
        let token = Some(self.token).filter(|_| !self.starts);
        let again = self.hubs.attach(filter.clone(), self.user.clone(), token).await;
        let (attached, starts) = match again {
            Err(status) if status.code() == tonic::Code::OutOfRange => {
                (self.hubs.attach(filter, self.user.clone(), None).await?, true)
            }
            again => (again?, token.is_none()),
        };
        self.starts = starts;
        self.marker = Some(attached.reached);
        self.token = Token {
            hub: attached.hub,
            position: attached.cursor,
            floor: self.token.floor,
            filter: self.digest,
        };
        self.attached = attached;
        self.batch = Batch::Open;
        Ok(())
    }
}

/// What follows a cursor in a view.
enum NextEntry {
    /// The next entry.
    Entry(Arc<ChangeEntry>),
    /// The next entry belongs to the next batch.
    Later,
    /// The cursor is at the end.
    Nothing,
    /// Removals were dropped that the client was not sent.
    FellBehind,
}

/// Returns what follows a cursor. Removals up to `removals_after` are skipped. An entry after the end of the `batch`,
/// if there is one, is [`NextEntry::Later`].
fn next(log: &ChangeLog, cursor: Position, removals_after: Position, batch: Option<Position>) -> NextEntry {
    if log.horizon() > cursor.max(removals_after) {
        return NextEntry::FellBehind;
    }
    let is_wanted = |entry: &&Arc<ChangeEntry>| !entry.is_removal || entry.position > removals_after;
    match log.after(cursor).find(is_wanted) {
        Some(entry) if batch.is_some_and(|end| entry.position > end) => NextEntry::Later,
        Some(entry) => NextEntry::Entry(entry.clone()),
        None => NextEntry::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use drydock_storage::cache::{Config as CacheConfig, WatchCache};
    use drydock_storage::storage::Storage;
    use drydock_storage::store::Store;
    use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};

    use super::*;
    use crate::config::Config;
    use crate::facts::{State, Update};
    use crate::filter::{Entity, EntityAttributes};
    use crate::hub::Stores;
    use crate::index::Index;

    async fn hubs(directory: &std::path::Path) -> Arc<Hubs> {
        let backend =
            Arc::new(SqliteBackend::open(directory.join("store.db"), SqliteOptions::default()).unwrap());
        let cache = |resource| -> Arc<dyn Storage> {
            Arc::new(WatchCache::start(Store::new(backend.clone(), "g", resource), CacheConfig::default()))
        };
        let (maintenances, evictions) = (cache("nodemaintenances"), cache("evictionrequests"));
        Arc::new(Hubs::new(Stores { maintenances, evictions }, Config::default()))
    }

    #[tokio::test]
    async fn nothing_is_held_of_changes_that_newer_ones_replaced_while_nobody_read() {
        let directory = tempfile::tempdir().unwrap();
        let watch = Watch { filter: Filter::all(Entity::Eviction), token: None, interval: Duration::ZERO };
        let mut subscriber =
            Subscriber::open(hubs(directory.path()).await, "tester".into(), watch, None).await.unwrap();
        while subscriber.next().await.unwrap().event != SNAPSHOT_COMPLETE {}
        let mut index = Index::new(Entity::Eviction, Config::default().tombstones, 0);
        let mut changes: Vec<Weak<ChangeEntry>> = Vec::new();
        let position = subscriber.attached.reached.position;
        for serial in position.serial + 1..=position.serial + 1000 {
            let state = State {
                attributes: EntityAttributes::default(),
                event: serial.to_be_bytes().to_vec().into(),
            };
            let update = Update { entity: Entity::Eviction, key: "shop/uid".into(), state: Some(state) };
            let change = index.apply(update, Position { serial, ..position }, 0).unwrap();
            changes.push(Arc::downgrade(&change.entry));
            // As the hub does.
            let view = subscriber.attached.subscription.view();
            assert!(view.apply(&change));
            view.wake();
        }
        let held = changes.iter().filter(|change| change.strong_count() > 0).count();
        assert_eq!(held, 1, "the newest one");
        let newest = (position.serial + 1000).to_be_bytes();
        assert_eq!(subscriber.next().await.unwrap().event[..], newest);
    }
}
