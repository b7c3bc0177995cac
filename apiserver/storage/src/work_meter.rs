//! Splits the work on many objects in one task into steps, between which other tasks run.

/// Bytes of objects that are read, decoded or encoded in one step: one or two milliseconds of work.
pub const STEP: usize = 128 * 1024;

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
