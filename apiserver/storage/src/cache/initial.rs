//! The objects that a watcher is told first, and the state that they are of.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Shared;
use super::state::{Snapshot, State};
use crate::backend::Revision;
use crate::pinned::{Age, Pinned};
use crate::storage::Scope;

/// Present objects still to be told.
pub(super) struct Initial {
    /// Their state, which can be let go of and made again from the ring.
    pub(super) held: Arc<Held>,
    /// The key of the next one.
    pub(super) start: String,
}

impl Initial {
    /// All objects of a scope.
    pub(super) fn new(shared: &Shared, scope: &Scope, snapshot: Snapshot) -> Self {
        let age = Age::new(shared.metrics.clone(), snapshot.taken_in);
        let held = Arc::new(Held { snapshot: Mutex::new(Some(snapshot)), age });
        Self { held, start: scope.prefix.clone() }
    }

    /// Their state: as it is held, or as the ring of the same filling still has that revision.
    pub(super) fn snapshot(&self, state: &State, (epoch, at): (u64, Revision)) -> Option<Snapshot> {
        let held = self.held.snapshot.lock().clone();
        held.or_else(|| {
            let again = state.exactly(at).filter(|_| state.snapshot.epoch == epoch)?;
            *self.held.snapshot.lock() = Some(again.clone());
            Some(again)
        })
    }
}

/// The state that initial events are of.
pub(super) struct Held {
    snapshot: Mutex<Option<Snapshot>>,
    age: Age,
}

impl Pinned for Held {
    fn bytes(&self) -> usize {
        if self.snapshot.lock().is_some() { self.age.bytes() } else { 0 }
    }

    fn let_go(&self) {
        // Dropped without the lock.
        let _snapshot = self.snapshot.lock().take();
    }
}
