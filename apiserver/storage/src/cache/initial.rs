//! The initial events of a watcher, and the state that they are read from.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Shared;
use super::page::in_scope;
use super::state::{Snapshot, State};
use crate::backend::Revision;
use crate::pinned::{Pinned, StateAge};
use crate::storage::{Scope, WatchEvent};
use crate::work_meter::PollBudget;

/// The objects that are still to be sent.
pub(super) struct InitialObjects {
    /// The state of the objects. It can be released, and is made again from the ring.
    pub(super) held: Arc<PinnedState>,
    /// The key of the next object.
    start: String,
}

impl InitialObjects {
    /// Starts at the first object of the scope.
    pub(super) fn new(shared: &Shared, scope: &Scope, snapshot: Snapshot) -> Self {
        let age = StateAge::new(shared.metrics.clone(), snapshot.bytes_received);
        let held = Arc::new(PinnedState { snapshot: Mutex::new(Some(snapshot)), age });
        Self { held, start: scope.prefix.clone() }
    }

    /// Returns the state: as it is held, or made again if the cache was not refilled and the ring still reaches back
    /// to `at`.
    pub(super) fn snapshot(&self, state: &State, (filling, at): (u64, Revision)) -> Option<Snapshot> {
        let held = self.held.snapshot.lock().clone();
        held.or_else(|| {
            let again = state.exactly(at).filter(|_| state.snapshot.filling == filling)?;
            *self.held.snapshot.lock() = Some(again.clone());
            Some(again)
        })
    }

    /// Appends the next objects that the scope selects. Returns what was read if more are left; `None` after the last.
    pub(super) fn read(
        &mut self,
        snapshot: &Snapshot,
        scope: &Scope,
        events: &mut VecDeque<WatchEvent>,
    ) -> Option<PollBudget> {
        let mut budget = PollBudget::default();
        for stored in in_scope(snapshot, scope, &self.start) {
            if budget.is_full() {
                self.start = stored.key.to_string();
                return Some(budget);
            }
            budget.count(scope, &stored.key, [stored]);
            if scope.selects(stored) {
                events.push_back(WatchEvent::Added(stored.clone()));
            }
        }
        None
    }
}

/// A state that initial events are read from.
pub(super) struct PinnedState {
    snapshot: Mutex<Option<Snapshot>>,
    age: StateAge,
}

impl Pinned for PinnedState {
    fn bytes(&self) -> usize {
        if self.snapshot.lock().is_some() { self.age.bytes() } else { 0 }
    }

    fn release(&self) {
        // Drop it after the lock is released.
        let _snapshot = self.snapshot.lock().take();
    }
}
