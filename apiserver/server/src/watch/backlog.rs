//! What a watch holds that it has not framed yet.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use drydock_storage::storage::{Pinned, WatchEvent};

/// The events that wait, and the past state that the initial events are of.
#[derive(Default)]
pub struct Backlog {
    waiting: AtomicUsize,
    pinned: Option<Arc<dyn Pinned>>,
}

impl Backlog {
    /// The backlog of a watch that has this past state.
    pub fn new(pinned: Option<Arc<dyn Pinned>>) -> Self {
        Self { waiting: AtomicUsize::new(0), pinned }
    }

    /// Counts these events as waiting.
    pub fn set<'e>(&self, waiting: impl Iterator<Item = &'e WatchEvent>) {
        self.waiting.store(waiting.map(size).sum(), Relaxed);
    }

    /// Stops counting an event that no longer waits. Returns its bytes.
    pub fn less(&self, event: &WatchEvent) -> usize {
        let bytes = size(event);
        // Only the watch itself writes.
        self.waiting.store(self.waiting.load(Relaxed).saturating_sub(bytes), Relaxed);
        bytes
    }

    /// Stops counting all events.
    pub fn clear(&self) {
        self.waiting.store(0, Relaxed);
    }
}

impl Pinned for Backlog {
    fn bytes(&self) -> usize {
        self.waiting.load(Relaxed) + self.pinned.as_ref().map_or(0, |pinned| pinned.bytes())
    }

    fn release(&self) {
        if let Some(pinned) = &self.pinned {
            pinned.release();
        }
    }
}

fn size(event: &WatchEvent) -> usize {
    match event {
        WatchEvent::Added(stored) | WatchEvent::Modified(stored) | WatchEvent::Deleted(stored) => {
            stored.json_len()
        }
        WatchEvent::Bookmark { .. } | WatchEvent::Failed(_) => 0,
    }
}
