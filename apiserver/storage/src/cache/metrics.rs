//! Metrics of a cache.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::state::State;
use crate::backend::{BackendError, Revision};
use crate::pinned::ReceivedBytes;
use crate::storage::StorageError;

/// Counters and gauges of one cache, readable at any time.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Objects in the newest snapshot.
    pub objects: AtomicU64,
    /// Objects whose values cannot be decoded.
    pub damaged: AtomicU64,
    /// The newest snapshot's revision.
    pub revision: AtomicU64,
    /// Changes in the ring.
    pub ring_events: AtomicU64,
    /// Bytes that the ring's changes account for.
    pub ring_bytes: AtomicU64,
    /// Bytes of all objects and changes that the cache has ever received, including the cost of keeping the changes.
    pub bytes_received: AtomicU64,
    /// Open watchers.
    pub watchers: AtomicU64,
    /// Revisions by which the cache was behind the backend at the last check.
    pub lag: AtomicU64,
    /// Watchers that ended because their history was gone.
    pub expired_watchers: AtomicU64,
    /// Times the cache was filled.
    pub fills: AtomicU64,
    /// Checks of the backend's current revision.
    pub revision_checks: AtomicU64,
    /// Consistent reads that the store answered because the cache had fallen behind.
    pub answered_by_store: AtomicU64,
    /// Writes that were refused because too many were waiting.
    pub refused_busy: AtomicU64,
    /// Writes that were refused because no space is left.
    pub refused_full: AtomicU64,
    /// Writes refused because the store accepts no more writes.
    pub refused_closed: AtomicU64,
    /// Events whose object was taken from the writer and did not have to be decoded.
    pub handed_over: AtomicU64,
}

impl Metrics {
    pub(super) fn published(&self, state: &State) {
        self.objects.store(state.snapshot.objects.len() as u64, Relaxed);
        self.damaged.store(state.snapshot.objects.damaged() as u64, Relaxed);
        self.revision.store(state.snapshot.revision.0, Relaxed);
        self.ring_events.store(state.ring.len() as u64, Relaxed);
        self.ring_bytes.store(state.ring.bytes() as u64, Relaxed);
        self.bytes_received.store(state.snapshot.bytes_received, Relaxed);
    }

    pub(super) fn checked(&self, authority: &Result<Revision, BackendError>, cached: Revision) {
        self.revision_checks.fetch_add(1, Relaxed);
        if let Ok(revision) = authority {
            self.lag.store(revision.0.saturating_sub(cached.0), Relaxed);
        }
    }

    pub(super) fn answered_by_store(&self) {
        self.answered_by_store.fetch_add(1, Relaxed);
    }

    /// Counts a write that the backend refused.
    pub(super) fn written<T>(&self, result: &Result<T, StorageError>) {
        match result {
            Err(StorageError::Backend(BackendError::Overloaded)) => &self.refused_busy,
            Err(StorageError::Backend(BackendError::NoSpace(_))) => &self.refused_full,
            Err(StorageError::Backend(BackendError::Closed(_))) => &self.refused_closed,
            _ => return,
        }
        .fetch_add(1, Relaxed);
    }

    pub(super) fn filled(&self) {
        self.fills.fetch_add(1, Relaxed);
    }

    pub(super) fn took_over(&self) {
        self.handed_over.fetch_add(1, Relaxed);
    }

    pub(super) fn watcher_opened(&self) {
        self.watchers.fetch_add(1, Relaxed);
    }

    pub(super) fn watcher_closed(&self) {
        self.watchers.fetch_sub(1, Relaxed);
    }

    pub(super) fn watcher_expired(&self) {
        self.expired_watchers.fetch_add(1, Relaxed);
    }
}

impl ReceivedBytes for Metrics {
    fn beyond_ring(&self, received: u64) -> u64 {
        let since = self.bytes_received.load(Relaxed).saturating_sub(received);
        since.saturating_sub(self.ring_bytes.load(Relaxed))
    }
}
