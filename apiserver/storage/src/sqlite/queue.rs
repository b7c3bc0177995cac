//! What waits for the thread that writes, and how much of it goes into one transaction.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::backend::{Result, Revision, Write, WriteOutcome};

/// Most commands in one transaction.
const BATCH: usize = 512;
/// Most bytes in one transaction (and one write more).
const BATCH_BYTES: usize = 8 << 20;

/// Something to do, and who waits for it.
pub(super) struct Command {
    /// What to do.
    pub work: Work,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Result<WriteOutcome>>,
}

/// What the writer is asked to do.
pub(super) enum Work {
    /// One compare-and-swap.
    Write(Write),
    /// Forget the revisions below; answered with the boundary as if committed there.
    Compact(Revision),
}

impl Command {
    /// What it writes.
    pub fn bytes(&self) -> usize {
        match &self.work {
            Work::Write(write) => size(&write.key, write.value.as_ref()),
            Work::Compact(_) => 0,
        }
    }

    /// Answers who waits.
    pub fn answer(self, result: Result<WriteOutcome>) {
        // Nobody need be waiting any more.
        let _ = self.reply.send(result);
    }
}

/// Bytes of a write.
pub(super) fn size(key: &str, value: Option<&Bytes>) -> usize {
    key.len() + value.map_or(0, Bytes::len)
}

/// Everything that waits, within bounds; nothing at all if nobody comes for so long; `None` at the end.
pub(super) fn next_batch(queue: &Receiver<Command>, patience: Option<Duration>) -> Option<Vec<Command>> {
    let first = match patience {
        None => queue.recv().ok()?,
        Some(patience) => match queue.recv_timeout(patience) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => return Some(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => return None,
        },
    };
    // On a busy processor the command has woken this thread in place of those who were about to ask too: they have their
    // turn first, so that one transaction, and one fsync, serves them all. An idle one comes back at once.
    std::thread::yield_now();
    let mut bytes = first.bytes();
    let mut batch = vec![first];
    while batch.len() < BATCH && bytes < BATCH_BYTES {
        let Ok(next) = queue.try_recv() else { break };
        bytes += next.bytes();
        batch.push(next);
    }
    // Whoever has gone away was promised nothing: do not work for them when there is too much to do.
    batch.retain(|command| !command.reply.is_closed());
    Some(batch)
}
