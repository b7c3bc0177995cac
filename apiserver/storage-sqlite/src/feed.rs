//! Publishes what the writer has committed to the watches: the newest events and the newest revision.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use drydock_storage::backend::{BackendEvent, Revision};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Maximum number of events read from the ring at once, so that the writer never waits long for the lock.
const TAKE: usize = 256;
/// Maximum number of events kept, however small they are.
const EVENTS: usize = 16_384;

/// Recent events in memory, and the newest revision; a change of it wakes the watches.
pub(super) struct EventFeed {
    committed: AtomicU64,
    ring: Mutex<EventRing>,
    head: watch::Sender<FeedHead>,
}

/// The state whose change wakes a watch.
#[derive(Clone, Copy, Debug)]
pub(super) struct FeedHead {
    /// The newest published revision: every event up to it is in the ring or in the log table.
    pub revision: u64,
    /// Counts the progress requests.
    pub round: u64,
    /// The least revision that answers the last progress request.
    pub progress_revision: u64,
}

/// Consecutive events of some keys.
pub(super) struct EventBatch {
    /// The events in the keys asked for.
    pub events: Vec<BackendEvent>,
    /// Every event up to this revision is included.
    pub upto: u64,
}

impl EventFeed {
    pub fn new(revision: Revision, bytes: usize) -> Self {
        let revision = revision.0;
        Self {
            committed: AtomicU64::new(revision),
            ring: Mutex::new(EventRing {
                events: VecDeque::new(),
                next: revision + 1,
                bytes: 0,
                max_bytes: bytes,
            }),
            head: watch::Sender::new(FeedHead { revision, round: 0, progress_revision: 0 }),
        }
    }

    /// Returns the newest committed revision that any reader may have seen.
    pub fn committed(&self) -> Revision {
        Revision(self.committed.load(Ordering::SeqCst))
    }

    /// Records that a reader saw this revision, possibly before the writer published it. From now on no reader may be
    /// given an older one.
    pub fn saw(&self, revision: Revision) {
        self.committed.fetch_max(revision.0, Ordering::SeqCst);
    }

    /// Publishes the events of a committed transaction whose last revision is `revision`.
    pub fn publish(&self, events: Vec<BackendEvent>, revision: u64) {
        self.saw(Revision(revision));
        self.ring.lock().push(events);
        self.head.send_modify(|head| head.revision = revision);
    }

    /// Requests a progress report of every watch.
    pub fn request_progress(&self) {
        let progress_revision = self.committed().0;
        self.head.send_modify(|head| {
            head.round += 1;
            head.progress_revision = progress_revision;
        });
    }

    pub fn subscribe(self: &std::sync::Arc<Self>) -> FeedSubscription {
        FeedSubscription { feed: std::sync::Arc::downgrade(self), head: self.head.subscribe() }
    }

    fn take(&self, keys: &Range<String>, after: u64) -> Option<EventBatch> {
        self.ring.lock().take(keys, after)
    }
}

/// A watch's subscription to the feed. It does not keep the backend alive.
pub(super) struct FeedSubscription {
    feed: std::sync::Weak<EventFeed>,
    /// Changes with each commit and each progress request; closed when the backend is dropped.
    pub head: watch::Receiver<FeedHead>,
}

impl FeedSubscription {
    /// Returns the next events above `after`; `None` if the ring no longer has them all.
    pub fn take(&self, keys: &Range<String>, after: u64) -> Option<EventBatch> {
        self.feed.upgrade()?.take(keys, after)
    }
}

/// The newest events without a gap: their revisions are `next - events.len() .. next`.
struct EventRing {
    events: VecDeque<BackendEvent>,
    next: u64,
    bytes: usize,
    max_bytes: usize,
}

impl EventRing {
    fn push(&mut self, events: Vec<BackendEvent>) {
        for event in events {
            self.bytes += weight(&event);
            self.next = event.revision.0 + 1;
            self.events.push_back(event);
        }
        while self.bytes > self.max_bytes || self.events.len() > EVENTS {
            let Some(event) = self.events.pop_front() else { break };
            self.bytes -= weight(&event);
        }
    }

    fn take(&self, keys: &Range<String>, after: u64) -> Option<EventBatch> {
        let first = self.next - self.events.len() as u64;
        let skip = usize::try_from((after + 1).checked_sub(first)?).ok()?;
        let seen = self.events.range(skip.min(self.events.len())..).take(TAKE);
        let upto = after + seen.len() as u64;
        Some(EventBatch { events: seen.filter(|event| keys.contains(&event.key)).cloned().collect(), upto })
    }
}

fn weight(event: &BackendEvent) -> usize {
    let value = event.value.as_ref().map_or(0, |value| value.len());
    let previous = event.previous.as_ref().map_or(0, |pair| pair.value.len() + pair.key.len());
    256 + event.key.len() + value + previous
}
