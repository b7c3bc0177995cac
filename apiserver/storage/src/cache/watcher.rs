//! Watchers: cursors into the ring.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::Shared;
use super::initial::Initial;
use super::interests::Registered;
use super::objects::damage;
use super::page::in_scope;
use super::ring::Change;
use super::state::{Snapshot, State};
use crate::backend::Revision;
use crate::pinned::Pinned;
use crate::scope::transition;
use crate::storage::{Scope, StorageError, WatchEvent, WatchFrom, Watcher};
use crate::store::StoreWatcher;

/// About how many events are handed over at once; a revision is never split.
const BATCH: usize = 256;

/// A watcher that reads on in the ring from the revision up to which it was told everything.
pub(super) struct Cursor {
    shared: Arc<Shared>,
    registered: Registered,
    scope: Scope,
    epoch: u64,
    initial: Option<Initial>,
    /// Changes up to here are not told (again).
    told: Revision,
    /// As `told`, but never ahead of what the cache has seen.
    progress: Revision,
    /// Whether all was read that there was when the ring was looked at last.
    drained: bool,
    over: bool,
}

impl Cursor {
    /// Changes above `after`, which must not be below the state's floor.
    pub(super) fn after(shared: Arc<Shared>, scope: Scope, after: Revision, state: &State) -> Self {
        let progress = after.min(state.snapshot.revision);
        Self::new(shared, scope, state.snapshot.epoch, after, progress, None)
    }

    /// The snapshot's objects, then changes above it.
    pub(super) fn with_initial_events(shared: Arc<Shared>, scope: Scope, snapshot: Snapshot) -> Self {
        let (epoch, revision) = (snapshot.epoch, snapshot.revision);
        let initial = Initial::new(&shared, &scope, snapshot);
        Self::new(shared, scope, epoch, revision, revision, Some(initial))
    }

    fn new(
        shared: Arc<Shared>,
        scope: Scope,
        epoch: u64,
        told: Revision,
        progress: Revision,
        initial: Option<Initial>,
    ) -> Self {
        shared.metrics.watcher_opened();
        let registered = shared.interests.register(&scope);
        Self { shared, registered, scope, epoch, initial, told, progress, drained: false, over: false }
    }

    /// Adds the next of the initial events, then the bookmark that ends them.
    fn initial_events(&mut self, mut initial: Initial, events: &mut VecDeque<WatchEvent>) {
        let Some(snapshot) = initial.snapshot(&self.shared.state.load(), (self.epoch, self.told)) else {
            let expired = self.expire(&self.shared.state.load_full());
            return events.push_back(expired);
        };
        let (known, mut left) = (events.len(), None);
        for stored in in_scope(&snapshot, &self.scope, &initial.start) {
            if events.len() - known == BATCH {
                left = Some(stored.key.to_string());
                break;
            }
            if self.scope.selects(stored) {
                events.push_back(WatchEvent::Added(stored.clone()));
            }
        }
        match left {
            Some(start) => {
                initial.start = start;
                self.initial = Some(initial);
            }
            None => {
                initial.held.let_go();
                events.push_back(WatchEvent::Bookmark { revision: self.told, initial: true });
            }
        }
    }

    /// Adds what the ring holds beyond `told`: a batch of it, or nothing once all is told.
    fn read_ring(&mut self, events: &mut VecDeque<WatchEvent>) {
        let state = self.shared.state.load();
        if state.snapshot.epoch == self.epoch {
            self.told = self.told.max(self.slept_through(&state));
        }
        if state.snapshot.epoch != self.epoch || self.told < state.floor() {
            return events.push_back(self.expire(&state));
        }
        let known = events.len();
        // To look into the ring costs more than to see that there is nothing new.
        let new = (self.told < state.snapshot.revision).then(|| state.changes(self.told));
        for change in new.into_iter().flatten() {
            if events.len() - known >= BATCH && change.revision > self.told {
                self.drained = false;
                return;
            }
            if let (Some(why), true) = (&change.damage, self.scope.contains(&change.key)) {
                // What became of the object nobody can say: to call it deleted would be acted upon.
                self.over = true;
                return events.push_back(WatchEvent::Failed(damage(why)));
            }
            events.extend(seen_from(&self.scope, change));
            self.told = change.revision;
            self.progress = change.revision;
        }
        self.told = self.told.max(state.snapshot.revision);
        self.progress = self.progress.max(state.snapshot.revision);
        self.drained = true;
        self.registered.sleeper.read(state.snapshot.revision);
    }

    /// Up to where nothing concerned the watcher since it had read everything.
    fn slept_through(&self, state: &State) -> Revision {
        if !self.drained {
            return Revision::default();
        }
        let next = self.registered.sleeper.first().map(|first| Revision(first.0.saturating_sub(1)));
        next.unwrap_or(state.snapshot.revision).min(state.snapshot.revision)
    }

    fn expire(&mut self, state: &State) -> WatchEvent {
        self.over = true;
        self.shared.metrics.watcher_expired();
        WatchEvent::Failed(StorageError::Expired { requested: self.told.0, oldest: state.floor().0 })
    }
}

fn seen_from(scope: &Scope, change: &Change) -> Option<WatchEvent> {
    if !scope.contains(&change.key) {
        return None;
    }
    transition(scope, change.current.as_ref(), change.previous.as_ref(), |last| change.departed(last))
}

impl Watcher for Cursor {
    fn poll_next(&mut self, context: &mut Context<'_>, events: &mut VecDeque<WatchEvent>) -> Poll<bool> {
        if self.over {
            return Poll::Ready(false);
        }
        if let Some(initial) = self.initial.take() {
            self.initial_events(initial, events);
            return Poll::Ready(true);
        }
        // In this order: who is woken after the look at the alarm finds whom to wake.
        let woken = self.registered.sleeper.poll_woken(context);
        if self.drained && woken.is_pending() {
            return Poll::Pending;
        }
        let known = events.len();
        self.read_ring(events);
        if events.len() > known { Poll::Ready(true) } else { Poll::Pending }
    }

    fn progress(&self) -> Revision {
        if self.initial.is_some() {
            return Revision(0);
        }
        // In this order: what the state holds was marked before it could be loaded.
        let state = self.shared.state.load();
        let same = state.snapshot.epoch == self.epoch;
        if same { self.progress.max(self.slept_through(&state)) } else { self.progress }
    }

    fn pinned(&self) -> Option<Arc<dyn Pinned>> {
        self.initial.as_ref().map(|initial| initial.held.clone() as Arc<dyn Pinned>)
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.shared.metrics.watcher_closed();
    }
}

/// A watcher whose start has left the ring: it follows the backend until the ring can take over.
pub(super) struct CatchUp {
    shared: Arc<Shared>,
    scope: Scope,
    behind: Option<StoreWatcher>,
    cursor: Option<Cursor>,
}

impl CatchUp {
    pub(super) async fn open(
        shared: Arc<Shared>,
        scope: Scope,
        after: Revision,
    ) -> Result<Self, StorageError> {
        let behind = StoreWatcher::open(&shared.store, scope.clone(), WatchFrom::After(after)).await?;
        // Where nothing happened in this scope, only a progress report leads up to the ring. It may fail: then the
        // backend's watch simply goes on.
        let _ = shared.store.backend().request_progress().await;
        Ok(Self { shared, scope, behind: Some(behind), cursor: None })
    }

    fn take_over(&mut self, told: Revision) {
        let state = self.shared.state.load_full();
        if state.ready && told >= state.floor() {
            self.behind = None;
            self.cursor = Some(Cursor::after(self.shared.clone(), self.scope.clone(), told, &state));
        }
    }
}

impl Watcher for CatchUp {
    fn poll_next(&mut self, context: &mut Context<'_>, events: &mut VecDeque<WatchEvent>) -> Poll<bool> {
        let known = events.len();
        while let Some(behind) = &mut self.behind {
            if !ready!(behind.poll_step(context, events)) {
                return Poll::Ready(false);
            }
            let (told, over) = (behind.progress(), behind.over());
            if !over {
                self.take_over(told);
            }
            if events.len() > known {
                return Poll::Ready(true);
            }
        }
        match &mut self.cursor {
            Some(cursor) => cursor.poll_next(context, events),
            None => Poll::Ready(false),
        }
    }

    fn progress(&self) -> Revision {
        let behind = self.behind.as_ref().map(|watcher| watcher.progress());
        behind.or_else(|| self.cursor.as_ref().map(|cursor| cursor.progress())).unwrap_or_default()
    }
}
