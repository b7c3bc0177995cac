//! Limits how much a watcher reads in one poll, so that it does not keep its thread from other tasks.

use std::sync::Arc;

use crate::storage::{Scope, Stored};
use crate::work_meter::WorkMeter;

/// Maximum number of objects or changes in one batch, selected or not.
const LENGTH: usize = 256;

/// What was read in one poll.
#[derive(Default)]
pub(super) struct PollBudget {
    read: usize,
    /// Counts the bytes that a selection has to decode.
    work: WorkMeter,
    is_costly: bool,
}

impl PollBudget {
    /// Counts an object or a change with this key. `states` are those that the selection of the scope has to look at.
    pub(super) fn count<'s>(
        &mut self,
        scope: &Scope,
        key: &str,
        states: impl IntoIterator<Item = &'s Arc<Stored>>,
    ) {
        self.read += 1;
        if scope.matches.is_some() && scope.contains(key) {
            let bytes = states.into_iter().map(|stored| stored.json_len()).sum();
            self.is_costly |= self.work.count(bytes);
        }
    }

    /// Whether the poll should end here.
    pub(super) fn is_full(&self) -> bool {
        self.read >= LENGTH || self.is_costly
    }

    /// Whether a step of decoding was done; then other tasks should run before the next batch.
    pub(super) fn is_costly(&self) -> bool {
        self.is_costly
    }
}
