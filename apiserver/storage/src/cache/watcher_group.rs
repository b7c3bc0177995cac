//! A group of watchers that are concerned by the same changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use super::wake_flag::WakeFlag;
use crate::backend::Revision;

/// Watchers that are concerned by the same changes. Marking a change takes the same time for any number of them.
#[derive(Default)]
pub(super) struct WatcherGroup {
    members: Mutex<GroupMembers>,
    marks: Mutex<ChangeMarks>,
    /// Whether the group is queued to be woken, and whether it must then be woken once more; [`super::wake_queue`]
    /// maintains both.
    pub(super) waits: AtomicBool,
    pub(super) again: AtomicBool,
}

/// The watchers, each at an index that does not change while it is registered.
#[derive(Default)]
struct GroupMembers {
    slots: Vec<Option<Arc<WakeFlag>>>,
    free: Vec<usize>,
}

/// The revisions of the changes that concern the group, as far back as the ring.
#[derive(Default)]
struct ChangeMarks {
    revisions: VecDeque<Revision>,
    /// The newest revision that was removed.
    forgotten: Revision,
}

/// A watcher's membership in its group.
pub(super) struct Membership {
    pub(super) group: Arc<WatcherGroup>,
    pub(super) wake_flag: Arc<WakeFlag>,
    slot: usize,
}

impl WatcherGroup {
    /// Adds a watcher.
    pub(super) fn join(self: &Arc<Self>) -> Membership {
        let (group, wake_flag) = (self.clone(), Arc::<WakeFlag>::default());
        let mut members = self.members.lock();
        let slot = members.free.pop().unwrap_or(members.slots.len());
        match members.slots.get_mut(slot) {
            Some(free) => *free = Some(wake_flag.clone()),
            None => members.slots.push(Some(wake_flag.clone())),
        }
        drop(members);
        Membership { group, wake_flag, slot }
    }

    /// Whether the group has no watchers.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of watchers.
    pub(super) fn len(&self) -> usize {
        self.members.lock().count()
    }

    /// Marks the group with a change that is not published yet. Removes marks at or below `floor`, the floor of the
    /// ring. Returns whether this is the group's first mark at or above the revision `since`.
    pub(super) fn mark(&self, since: Revision, revision: Revision, floor: Revision) -> bool {
        let mut marks = self.marks.lock();
        while let Some(oldest) = marks.revisions.front().copied().filter(|oldest| *oldest <= floor) {
            marks.revisions.pop_front();
            marks.forgotten = oldest;
        }
        let before = marks.revisions.back().copied();
        if before != Some(revision) {
            marks.revisions.push_back(revision);
        }
        before.is_none_or(|before| before < since)
    }

    /// Returns the revision of the first change above `read` that concerns the group. If marks above `read` were
    /// removed, returns the next revision.
    pub(super) fn first_after(&self, read: Revision) -> Option<Revision> {
        let marks = self.marks.lock();
        if read < marks.forgotten {
            return Some(Revision(read.0 + 1));
        }
        marks.revisions.get(marks.revisions.partition_point(|mark| *mark <= read)).copied()
    }

    /// Wakes the watchers at `most` indexes from `from` on. Returns the next index, if there is one.
    pub(super) fn wake(&self, from: usize, most: usize) -> Option<usize> {
        let members = self.members.lock();
        let end = members.slots.len().min(from.saturating_add(most));
        let flags: Vec<_> = members.slots.get(from..end)?.iter().flatten().cloned().collect();
        let next = (end < members.slots.len()).then_some(end);
        // Wake without holding the lock, because waking runs other code.
        drop(members);
        flags.iter().for_each(|wake_flag| wake_flag.wake());
        next
    }
}

impl GroupMembers {
    fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl Membership {
    /// Removes the watcher. Returns whether the group is now empty.
    pub(super) fn leave(&self) -> bool {
        let mut members = self.group.members.lock();
        members.slots[self.slot] = None;
        members.free.push(self.slot);
        let is_last = members.count() == 0;
        if is_last {
            *members = GroupMembers::default();
        }
        is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_behind_and_what_came_since_is_found() {
        let group = WatcherGroup::default();
        let mark = |since, revision, floor| group.mark(Revision(since), Revision(revision), Revision(floor));
        let first_after = |read| group.first_after(Revision(read)).map(|first| first.0);
        assert!(mark(5, 5, 0));
        assert!(mark(6, 9, 0));
        assert!(!mark(6, 9, 0), "a change may concern it in two ways");
        assert_eq!([3, 5, 8, 9].map(first_after), [Some(5), Some(9), Some(9), None]);
        assert!(mark(20, 20, 5));
        assert_eq!([3, 4, 5, 9].map(first_after), [Some(4), Some(5), Some(9), Some(20)]);
    }

    #[test]
    fn places_are_used_again_and_an_empty_group_has_none() {
        let group = Arc::<WatcherGroup>::default();
        let mut members: Vec<_> = (0..1000).map(|_| group.join()).collect();
        assert!(!members.swap_remove(10).leave());
        members.push(group.join());
        assert_eq!((group.len(), group.members.lock().slots.len()), (1000, 1000));
        let last: Vec<_> = members.iter().map(Membership::leave).collect();
        assert_eq!(last.iter().position(|last| *last), Some(999));
        assert!(group.is_empty() && group.members.lock().slots.is_empty());
    }
}
