//! A watcher's alarm, and what it may have missed while it slept.

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::backend::Revision;

/// One watcher's alarm.
#[derive(Default)]
pub(super) struct Sleeper {
    alarm: Notify,
    marked: Mutex<Option<Marked>>,
}

/// The first and the last change that concern a watcher and that it may not have read.
#[derive(Clone, Copy)]
struct Marked {
    first: Revision,
    last: Revision,
}

impl Sleeper {
    /// A change concerns the watcher; it must not be visible yet.
    pub(super) fn mark(&self, revision: Revision) {
        let mut marked = self.marked.lock();
        let first = marked.map_or(revision, |marked| marked.first);
        *marked = Some(Marked { first, last: revision });
    }

    /// Wakes the watcher, or keeps it from falling asleep once.
    pub(super) fn wake(&self) {
        self.alarm.notify_one();
    }

    /// Waits until something may concern the watcher. Cancel safe.
    pub(super) async fn woken(&self) {
        self.alarm.notified().await;
    }

    /// The first change that concerns the watcher and that it may not have read.
    pub(super) fn first(&self) -> Option<Revision> {
        self.marked.lock().map(|marked| marked.first)
    }

    /// The watcher has read everything up to a published revision.
    pub(super) fn read(&self, up_to: Revision) {
        let mut marked = self.marked.lock();
        *marked = marked
            .filter(|marked| marked.last > up_to)
            .map(|marked| Marked { first: marked.first.max(Revision(up_to.0 + 1)), ..marked });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_no_longer_marked_and_what_came_since_is() {
        let sleeper = Sleeper::default();
        sleeper.mark(Revision(5));
        sleeper.mark(Revision(9));
        assert_eq!(sleeper.first(), Some(Revision(5)));
        sleeper.read(Revision(7));
        assert_eq!(sleeper.first(), Some(Revision(8)));
        sleeper.read(Revision(9));
        assert_eq!(sleeper.first(), None);
    }
}
