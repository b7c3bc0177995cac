//! Wakes groups of watchers: some at once, the rest in steps between which other tasks run.
//!
//! The task that follows the backend serves every reader of the cache, and clients choose how many watches there are.
//! So this task wakes only one step of the watchers itself. The remaining groups take turns, so that a large group
//! does not delay the others. If a queued group is to be woken again, it is woken once more afterwards, no matter how
//! many changes there were.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;

use super::watcher_group::WatcherGroup;

/// Maximum number of watchers woken in one step.
const STEP: usize = 256;

/// The groups that are queued to be woken.
#[derive(Default)]
pub(super) struct WakeQueue(Mutex<QueuedGroups>);

#[derive(Default)]
struct QueuedGroups {
    /// Each group once, with the index of its next watcher.
    groups: VecDeque<(Arc<WatcherGroup>, usize)>,
    /// Whether a task is waking them.
    runs: bool,
}

impl WakeQueue {
    /// Wakes groups, at once or soon. Must be called within a Tokio runtime.
    pub(super) fn wake(self: &Arc<Self>, groups: Vec<Arc<WatcherGroup>>) {
        let mut left = STEP;
        for group in groups {
            let many = group.len().max(1);
            let next = if left > 0 { group.wake(0, left) } else { Some(0) };
            left = left.saturating_sub(many);
            if let Some(next) = next {
                self.later(group, next);
            }
        }
    }

    fn later(self: &Arc<Self>, group: Arc<WatcherGroup>, next: usize) {
        let mut queue = self.0.lock();
        if group.waits.swap(true, Relaxed) {
            group.again.store(true, Relaxed);
            return;
        }
        queue.groups.push_back((group, next));
        if !std::mem::replace(&mut queue.runs, true) {
            tokio::spawn(self.clone().run());
        }
    }

    async fn run(self: Arc<Self>) {
        while let Some((group, from)) = self.next() {
            let next = group.wake(from, STEP);
            self.woken(group, next);
            tokio::task::yield_now().await;
        }
    }

    fn next(&self) -> Option<(Arc<WatcherGroup>, usize)> {
        let mut queue = self.0.lock();
        let next = queue.groups.pop_front();
        queue.runs = next.is_some();
        next
    }

    /// Continues with a group after one step of it.
    fn woken(&self, group: Arc<WatcherGroup>, next: Option<usize>) {
        let mut queue = self.0.lock();
        match next {
            Some(next) => queue.groups.push_back((group, next)),
            None if group.again.swap(false, Relaxed) => queue.groups.push_back((group, 0)),
            None => group.waits.store(false, Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::{Context, Wake, Waker};

    use super::super::watcher_group::Membership;
    use super::*;

    #[derive(Default)]
    struct QueuedWakeCount(AtomicUsize);

    impl Wake for QueuedWakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    /// A group of sleeping watchers, and the number of wake-ups.
    fn asleep(many: usize) -> (Arc<WatcherGroup>, Vec<Membership>, Arc<QueuedWakeCount>) {
        let (group, count) = (Arc::<WatcherGroup>::default(), Arc::<QueuedWakeCount>::default());
        let members: Vec<_> = (0..many).map(|_| group.join()).collect();
        sleep(&members, &count);
        (group, members, count)
    }

    fn sleep(members: &[Membership], count: &Arc<QueuedWakeCount>) {
        let waker = Waker::from(count.clone());
        for membership in members {
            while membership.wake_flag.poll_woken(&mut Context::from_waker(&waker)).is_ready() {}
        }
    }

    async fn settle(wake_queue: &WakeQueue) {
        while wake_queue.0.lock().runs {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn who_follows_the_backend_wakes_a_step_and_a_task_the_rest() {
        let wake_queue = Arc::<WakeQueue>::default();
        let (large, _large_members, large_count) = asleep(10 * STEP);
        let (small, _small_members, small_count) = asleep(1);
        wake_queue.wake(vec![large, small]);
        assert_eq!((large_count.0.load(SeqCst), small_count.0.load(SeqCst)), (STEP, 0));
        while small_count.0.load(SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        assert!(large_count.0.load(SeqCst) <= 3 * STEP, "the small group has its turn");
        settle(&wake_queue).await;
        assert_eq!((large_count.0.load(SeqCst), small_count.0.load(SeqCst)), (10 * STEP, 1));
    }

    #[tokio::test]
    async fn changes_that_come_while_a_group_is_woken_wake_it_once_more() {
        let wake_queue = Arc::<WakeQueue>::default();
        let (group, members, count) = asleep(3 * STEP);
        wake_queue.wake(vec![group.clone()]);
        sleep(&members[..STEP], &count);
        for _ in 0..100 {
            wake_queue.wake(vec![group.clone()]);
        }
        assert_eq!(wake_queue.0.lock().groups.len(), 1);
        settle(&wake_queue).await;
        // The first step is woken twice; no watcher that has not polled since is woken twice.
        assert_eq!(count.0.load(SeqCst), 4 * STEP);
        assert!(!group.waits.load(SeqCst) && !group.again.load(SeqCst));
    }
}
