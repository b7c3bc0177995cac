//! What the writer tells the watches: the newest events and the head revision.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::backend::{BackendEvent, Revision};

/// How many events one look at the ring takes, so that the writer never waits long for the lock.
const TAKE: usize = 256;
/// Most events held, however small.
const EVENTS: usize = 16_384;

/// Recent events in memory, and the newest revision, which wakes the watches.
pub(super) struct Feed {
    committed: AtomicU64,
    ring: Mutex<Ring>,
    head: watch::Sender<Head>,
}

/// What wakes a watch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Every event up to here is in the ring or the log.
    pub revision: u64,
    /// Counts the requests for progress.
    pub round: u64,
    /// The least revision that answers the last request for progress.
    pub wanted: u64,
}

/// Consecutive events.
pub(super) struct EventBatch {
    /// The events in the keys asked for.
    pub events: Vec<BackendEvent>,
    /// Nothing up to here is missing.
    pub upto: u64,
}

impl Feed {
    pub fn new(revision: Revision, bytes: usize) -> Self {
        let revision = revision.0;
        Self {
            committed: AtomicU64::new(revision),
            ring: Mutex::new(Ring {
                events: VecDeque::new(),
                next: revision + 1,
                bytes: 0,
                max_bytes: bytes,
            }),
            head: watch::Sender::new(Head { revision, round: 0, wanted: 0 }),
        }
    }

    /// The newest committed revision that anyone may have seen.
    pub fn committed(&self) -> Revision {
        Revision(self.committed.load(Ordering::SeqCst))
    }

    /// A reader saw this revision, perhaps before the writer came to publish it: from now on nobody may be told
    /// of an older one.
    pub fn saw(&self, revision: Revision) {
        self.committed.fetch_max(revision.0, Ordering::SeqCst);
    }

    /// Publishes the events of a committed transaction, which end at `revision`.
    pub fn publish(&self, events: Vec<BackendEvent>, revision: u64) {
        self.saw(Revision(revision));
        self.ring.lock().push(events);
        self.head.send_modify(|head| head.revision = revision);
    }

    /// Asks every watch for its progress.
    pub fn request_progress(&self) {
        let wanted = self.committed().0;
        self.head.send_modify(|head| {
            head.round += 1;
            head.wanted = wanted;
        });
    }

    pub fn subscribe(self: &std::sync::Arc<Self>) -> Subscription {
        Subscription { feed: std::sync::Arc::downgrade(self), head: self.head.subscribe() }
    }

    fn take(&self, keys: &Range<String>, after: u64) -> Option<EventBatch> {
        self.ring.lock().take(keys, after)
    }
}

/// A watch's end of the feed. It does not keep the backend alive.
pub(super) struct Subscription {
    feed: std::sync::Weak<Feed>,
    /// Changes with each commit and each request for progress; closed when the backend is.
    pub head: watch::Receiver<Head>,
}

impl Subscription {
    /// Events above `after`, if the ring still holds them all.
    pub fn take(&self, keys: &Range<String>, after: u64) -> Option<EventBatch> {
        self.feed.upgrade()?.take(keys, after)
    }
}

/// The newest events without a gap: revisions `next - events.len() .. next`.
struct Ring {
    events: VecDeque<BackendEvent>,
    next: u64,
    bytes: usize,
    max_bytes: usize,
}

impl Ring {
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
