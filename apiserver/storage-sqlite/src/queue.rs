//! The queue of the thread that writes, and how much of it goes into one transaction.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use bytes::Bytes;
use drydock_storage::backend::{CompareAndSwap, Result, Revision, WriteOutcome};
use tokio::sync::oneshot;

/// Maximum number of commands in one transaction.
const BATCH: usize = 512;
/// Maximum number of bytes in one transaction; the last write may exceed it.
const BATCH_BYTES: usize = 8 << 20;

/// A command, and where its answer goes.
pub(super) struct QueuedCommand {
    /// The command.
    pub command: WriterCommand,
    /// Receives the answer.
    pub reply: oneshot::Sender<Result<WriteOutcome>>,
}

/// The commands of the writer.
pub(super) enum WriterCommand {
    /// One compare-and-swap.
    Write(CompareAndSwap),
    /// Compacts to a revision. The answer is that revision, as if it had been committed.
    Compact(Revision),
}

impl QueuedCommand {
    /// Bytes of the key and value that it writes.
    pub fn bytes(&self) -> usize {
        match &self.command {
            WriterCommand::Write(write) => size(&write.key, write.value.as_ref()),
            WriterCommand::Compact(_) => 0,
        }
    }

    /// Sends the answer.
    pub fn answer(self, result: Result<WriteOutcome>) {
        // The caller may have gone away.
        let _ = self.reply.send(result);
    }
}

/// Bytes of a key and its value.
pub(super) fn size(key: &str, value: Option<&Bytes>) -> usize {
    key.len() + value.map_or(0, Bytes::len)
}

/// Returns the queued commands, within the bounds; an empty batch if none arrives within `patience`; `None` when the
/// queue is closed.
pub(super) fn next_batch(
    queue: &Receiver<QueuedCommand>,
    patience: Option<Duration>,
) -> Option<Vec<QueuedCommand>> {
    let first = match patience {
        None => queue.recv().ok()?,
        Some(patience) => match queue.recv_timeout(patience) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => return Some(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => return None,
        },
    };
    // On a busy processor this command woke the thread before other callers could queue theirs: let them run first,
    // so that one transaction, and one fsync, serves them all. On an idle processor the call returns at once.
    std::thread::yield_now();
    let mut bytes = first.bytes();
    let mut batch = vec![first];
    while batch.len() < BATCH && bytes < BATCH_BYTES {
        let Ok(next) = queue.try_recv() else { break };
        bytes += next.bytes();
        batch.push(next);
    }
    // Drop commands whose callers have gone: they were promised nothing, and the writer has enough to do.
    batch.retain(|command| !command.reply.is_closed());
    Some(batch)
}
