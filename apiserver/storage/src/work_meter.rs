//! Splits the work on many objects in one task into steps, between which other tasks run.

use std::sync::Arc;

use crate::storage::{Scope, Stored};

/// Bytes of objects that are read, decoded or encoded in one step: one or two milliseconds of work.
pub const STEP: usize = 128 * 1024;

/// Maximum number of objects or changes in one batch, selected or not.
const LENGTH: usize = 256;

/// Counts the work of a task, and yields after each [`STEP`].
#[derive(Debug, Default)]
pub struct WorkMeter {
    since: usize,
}

impl WorkMeter {
    /// Counts work on so many bytes. Returns `true` when a step is complete: then other tasks should run.
    pub fn count(&mut self, bytes: usize) -> bool {
        self.since = self.since.saturating_add(bytes);
        let is_full = self.since >= STEP;
        if is_full {
            self.since = 0;
        }
        is_full
    }

    /// Counts work on so many bytes, and yields when a step is complete.
    pub async fn worked(&mut self, bytes: usize) {
        if self.count(bytes) {
            tokio::task::yield_now().await;
        }
    }
}

/// Limits how much a watcher reads in one poll, so that it does not keep its thread from other tasks.
#[derive(Default)]
pub(crate) struct PollBudget {
    read: usize,
    /// Counts the bytes that a selection has to decode.
    work: WorkMeter,
    is_costly: bool,
}

impl PollBudget {
    /// Counts an object or a change with this key. `states` are those that the selection of the scope has to look at.
    pub(crate) fn count<'s>(
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
    pub(crate) fn is_full(&self) -> bool {
        self.read >= LENGTH || self.is_costly
    }

    /// Whether a step of decoding was done; then other tasks should run before the next batch.
    pub(crate) fn is_costly(&self) -> bool {
        self.is_costly
    }
}
