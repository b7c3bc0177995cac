//! Watchers of the cache: cursors into the ring.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Shared;
use super::initial::InitialObjects;
use super::objects::damage;
use super::past_changes::Lookup;
use super::ring::CachedChange;
use super::state::{Snapshot, State};
use super::watcher_index::Registration;
use crate::backend::Revision;
use crate::pinned::Pinned;
use crate::scope::transition;
use crate::storage::{Scope, StorageError, WatchEvent, Watcher};
use crate::work_meter::PollBudget;

/// For at most this many revisions, reading the changes is cheaper than reading the marks of the group, which takes a
/// lock that its members share.
const FEW_REVISIONS: u64 = 16;

/// A watcher that continues in the ring after the revision up to which it has sent everything.
pub(super) struct Cursor {
    shared: Arc<Shared>,
    registration: Registration,
    scope: Scope,
    filling: u64,
    initial: Option<InitialObjects>,
    /// Changes up to this revision are not sent (again).
    sent_upto: Revision,
    /// As `sent_upto`, but never ahead of what the cache has received.
    progress: Revision,
    /// Whether the last poll read everything that there was.
    caught_up: bool,
    /// Whether other tasks run before the next batch.
    yields: bool,
    over: bool,
}

/// Whether there is more to read now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    More,
    None,
}

impl Cursor {
    /// A watcher of the changes above `after`.
    pub(super) fn after(shared: Arc<Shared>, scope: Scope, after: Revision, state: &State) -> Self {
        let progress = after.min(state.snapshot.revision);
        Self::new(shared, scope, state.snapshot.filling, after, progress, None)
    }

    /// A watcher that sends the snapshot's objects, then the changes above it.
    pub(super) fn with_initial_events(shared: Arc<Shared>, scope: Scope, snapshot: Snapshot) -> Self {
        let (filling, revision) = (snapshot.filling, snapshot.revision);
        let initial = InitialObjects::new(&shared, &scope, snapshot);
        Self::new(shared, scope, filling, revision, revision, Some(initial))
    }

    fn new(
        shared: Arc<Shared>,
        scope: Scope,
        filling: u64,
        sent_upto: Revision,
        progress: Revision,
        initial: Option<InitialObjects>,
    ) -> Self {
        shared.metrics.watcher_opened();
        let registration = shared.watcher_index.register(&scope);
        Self {
            shared,
            registration,
            scope,
            filling,
            initial,
            sent_upto,
            progress,
            caught_up: false,
            yields: false,
            over: false,
        }
    }

    /// Appends the next initial events, and after the last one the bookmark that ends them.
    fn read_initial(&mut self, mut initial: InitialObjects, events: &mut VecDeque<WatchEvent>) -> Rest {
        let Some(snapshot) = initial.snapshot(&self.shared.state.load(), (self.filling, self.sent_upto))
        else {
            self.expire(&self.shared.state.load_full(), events);
            return Rest::None;
        };
        match initial.read(&snapshot, &self.scope, events) {
            Some(budget) => {
                self.initial = Some(initial);
                self.yields = budget.is_costly();
                Rest::More
            }
            None => {
                initial.held.release();
                events.push_back(WatchEvent::Bookmark { revision: self.sent_upto, initial: true });
                Rest::None
            }
        }
    }

    /// Appends the changes after `sent_upto`, from the ring or from before it.
    fn read_changes(&mut self, events: &mut VecDeque<WatchEvent>) -> Rest {
        let state = self.shared.state.load();
        if state.snapshot.filling != self.filling {
            self.expire(&state, events);
            return Rest::None;
        }
        let newest = state.snapshot.revision;
        if self.sent_upto < state.floor() || newest.0.saturating_sub(self.sent_upto.0) > FEW_REVISIONS {
            self.sent_upto = self.sent_upto.max(self.unconcerned_upto(&state));
        }
        if self.sent_upto < state.floor() {
            return self.read_past(&state, events);
        }
        // Checking the revision is cheaper than looking into the ring.
        if self.sent_upto < newest && self.read(state.changes(self.sent_upto), events) == Rest::More {
            self.caught_up = false;
            return Rest::More;
        }
        self.reached(newest);
        self.caught_up = true;
        Rest::None
    }

    /// Appends the known changes below the ring.
    fn read_past(&mut self, state: &State, events: &mut VecDeque<WatchEvent>) -> Rest {
        let shared = self.shared.clone();
        match shared.past_changes.after(&shared, state, self.sent_upto) {
            Lookup::Waits => return Rest::None,
            Lookup::Gone => {
                self.expire(state, events);
                return Rest::None;
            }
            Lookup::Found(past) => {
                if self.read(past.changes(self.sent_upto), events) == Rest::None {
                    self.reached(state.floor());
                }
            }
        }
        Rest::More
    }

    /// Appends a batch of changes, all of them above `sent_upto`.
    fn read<'c>(
        &mut self,
        changes: impl Iterator<Item = &'c Arc<CachedChange>>,
        events: &mut VecDeque<WatchEvent>,
    ) -> Rest {
        let mut budget = PollBudget::default();
        for change in changes {
            if budget.is_full() && change.revision > self.sent_upto {
                self.yields = budget.is_costly();
                return Rest::More;
            }
            if let (Some(why), true) = (&change.damage, self.scope.contains(&change.key)) {
                // It is unknown what became of the object, and a client would act on a deletion.
                self.over = true;
                events.push_back(WatchEvent::Failed(damage(why)));
                return Rest::None;
            }
            budget.count(&self.scope, &change.key, change.current.iter().chain(&change.previous));
            events.extend(seen_from(&self.scope, change));
            self.sent_upto = change.revision;
            self.progress = change.revision;
        }
        Rest::None
    }

    fn reached(&mut self, revision: Revision) {
        self.sent_upto = self.sent_upto.max(revision);
        self.progress = self.progress.max(revision);
    }

    /// Returns the revision up to which no change concerned the watcher since it had read everything.
    fn unconcerned_upto(&self, state: &State) -> Revision {
        if !self.caught_up {
            return Revision::default();
        }
        let first = self.registration.first_after(self.sent_upto);
        let next = first.map(|first| Revision(first.0.saturating_sub(1)));
        next.unwrap_or(state.snapshot.revision).min(state.snapshot.revision)
    }

    fn expire(&mut self, state: &State, events: &mut VecDeque<WatchEvent>) {
        self.over = true;
        self.shared.metrics.watcher_expired();
        let (requested, oldest) = (self.sent_upto.0, state.floor().0);
        events.push_back(WatchEvent::Failed(StorageError::Expired { requested, oldest }));
    }
}

fn seen_from(scope: &Scope, change: &CachedChange) -> Option<WatchEvent> {
    if !scope.contains(&change.key) {
        return None;
    }
    transition(scope, change.current.as_ref(), change.previous.as_ref(), |last| {
        change.last_in_selection(last)
    })
}

impl Watcher for Cursor {
    fn poll_next(&mut self, context: &mut Context<'_>, events: &mut VecDeque<WatchEvent>) -> Poll<bool> {
        if self.over {
            return Poll::Ready(false);
        }
        if std::mem::take(&mut self.yields) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let known = events.len();
        let rest = match self.initial.take() {
            Some(initial) => self.read_initial(initial, events),
            None => {
                // The order matters: a change that arrives after the flag is polled finds the registered task.
                let woken = self.registration.wake_flag().poll_woken(context);
                if self.caught_up && woken.is_pending() {
                    return Poll::Pending;
                }
                self.read_changes(events)
            }
        };
        if events.len() > known {
            return Poll::Ready(true);
        }
        if rest == Rest::More {
            // Nothing in this batch was selected: other tasks run before the next one.
            self.yields = false;
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn progress(&self) -> Revision {
        if self.initial.is_some() {
            return Revision(0);
        }
        // The order matters: groups are marked before the state with the change is published, and so before it is
        // loaded here.
        let state = self.shared.state.load();
        let same = state.snapshot.filling == self.filling;
        if same { self.progress.max(self.unconcerned_upto(&state)) } else { self.progress }
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
