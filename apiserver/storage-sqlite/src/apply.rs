//! Applies the commands of one transaction to the log table.

use drydock_storage::backend::{BackendEvent, CompareAndSwap, KeyValue, Result, Revision, WriteOutcome};
use rusqlite::Connection;

use crate::compaction::Compaction;
use crate::queue::size;
use crate::quota::{Effect, TransactionSpace};
use crate::read;
use crate::row::LogRow;

/// The state of a transaction that is not committed yet.
pub(super) struct PendingTransaction {
    /// The events to publish after the commit.
    pub events: Vec<BackendEvent>,
    /// The last revision used.
    pub revision: u64,
    /// The compaction boundary.
    pub compaction: Compaction,
    /// The space that the transaction may still use.
    space: TransactionSpace,
}

impl PendingTransaction {
    /// Starts from the committed state.
    pub fn new(revision: u64, compaction: Compaction, space: TransactionSpace) -> Self {
        Self { events: Vec::new(), revision, compaction, space }
    }

    /// Compares and swaps. Deleting a key that does not exist writes nothing and uses no revision, as in etcd. If the
    /// inner result is an error, only this write is refused and the transaction goes on.
    pub fn write(
        &mut self,
        transaction: &Connection,
        write: &CompareAndSwap,
    ) -> Result<Result<WriteOutcome>> {
        if let Some(guard) = &write.guard
            && present(transaction, &guard.key)?.map(|pair| pair.mod_revision) != Some(guard.revision)
        {
            return Ok(Ok(WriteOutcome::GuardFailed));
        }
        let present = present(transaction, &write.key)?;
        if present.as_ref().map(|pair| pair.mod_revision) != write.expected {
            return Ok(Ok(WriteOutcome::Conflict(present, Revision(self.revision))));
        }
        if present.is_none() && write.value.is_none() {
            return Ok(Ok(WriteOutcome::Committed(Revision(self.revision))));
        }
        let effect = Effect::of(write.value.as_deref(), present.as_ref().map(|pair| &*pair.value));
        if let Err(full) = self.space.take(effect, write.priority, size(&write.key, write.value.as_ref())) {
            return Ok(Err(full));
        }
        let event = self.next_event(write, present);
        insert(transaction, &event)?;
        let revision = event.revision;
        self.revision = revision.0;
        self.events.push(event);
        Ok(Ok(WriteOutcome::Committed(revision)))
    }

    /// Moves the compaction boundary. If the inner result is an error, only this command is refused and the
    /// transaction goes on.
    pub fn compact(&mut self, transaction: &Connection, at: Revision) -> Result<Result<WriteOutcome>> {
        let moved = self.compaction.begin(transaction, at, Revision(self.revision))?;
        Ok(moved.map(|()| WriteOutcome::Committed(at)))
    }

    fn next_event(&self, write: &CompareAndSwap, previous: Option<KeyValue>) -> BackendEvent {
        let revision = Revision(self.revision + 1);
        BackendEvent {
            revision,
            key: write.key.clone(),
            value: write.value.clone(),
            create_revision: previous.as_ref().map_or(revision, |pair| pair.create_revision),
            previous,
        }
    }
}

fn present(transaction: &Connection, key: &str) -> Result<Option<KeyValue>> {
    let latest = read::latest(transaction, key, Revision(i64::MAX as u64))?;
    Ok(latest.and_then(|latest| latest.live(key)))
}

fn insert(transaction: &Connection, event: &BackendEvent) -> Result<()> {
    let row = LogRow {
        revision: event.revision.0,
        key: &event.key,
        create_revision: event.create_revision.0,
        prev_revision: event.previous.as_ref().map_or(0, |pair| pair.mod_revision.0),
        value: event.value.as_deref(),
    };
    row.insert(transaction)
}
