//! How much a watcher looks at in one poll. More of it would keep the thread from others.

use std::sync::Arc;

use crate::storage::{Scope, Stored};
use crate::work_meter::WorkMeter;

/// Objects or changes of a batch, whether they are selected or not.
const LENGTH: usize = 256;

/// What has been looked at in one poll.
#[derive(Default)]
pub(super) struct Batch {
    looked_at: usize,
    /// Counts what a selection has to decode.
    work: WorkMeter,
    is_costly: bool,
}

impl Batch {
    /// Counts an object or a change under this key. A selection of the scope is shown these states of it.
    pub(super) fn look<'s>(
        &mut self,
        scope: &Scope,
        key: &str,
        states: impl IntoIterator<Item = &'s Arc<Stored>>,
    ) {
        self.looked_at += 1;
        if scope.matches.is_some() && scope.contains(key) {
            let bytes = states.into_iter().map(|stored| stored.json_len()).sum();
            self.is_costly |= self.work.count(bytes);
        }
    }

    /// Whether the rest is for another poll.
    pub(super) fn is_full(&self) -> bool {
        self.looked_at >= LENGTH || self.is_costly
    }

    /// Whether a step of decoding was done, so that other tasks should run before the next batch.
    pub(super) fn is_costly(&self) -> bool {
        self.is_costly
    }
}
