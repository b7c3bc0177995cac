//! A watcher's alarm, and what it may have missed while it slept.

use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::backend::Revision;

/// One watcher's alarm.
#[derive(Default)]
pub(super) struct Sleeper(Mutex<Asleep>);

#[derive(Default)]
struct Asleep {
    marked: Option<Marked>,
    /// Woken since it was looked at last.
    rung: bool,
    /// The watcher's task. It stays when it is woken: nearly always it is the same the next time.
    task: Option<Waker>,
}

/// The first and the last change that concern a watcher and that it may not have read.
#[derive(Clone, Copy)]
struct Marked {
    first: Revision,
    last: Revision,
}

impl Sleeper {
    /// A change concerns the watcher; it must not be visible yet. Whether one since a revision did before.
    pub(super) fn mark(&self, since: Revision, revision: Revision) -> bool {
        let marked = &mut self.0.lock().marked;
        let (before, first) = (*marked, marked.map_or(revision, |marked| marked.first));
        *marked = Some(Marked { first, last: revision });
        before.is_some_and(|before| before.last >= since)
    }

    /// Wakes the watcher, or keeps it from falling asleep once.
    pub(super) fn wake(&self) {
        let mut asleep = self.0.lock();
        asleep.rung = true;
        let task = asleep.task.clone();
        // Whatever waking does, it does without the lock.
        drop(asleep);
        task.into_iter().for_each(Waker::wake);
    }

    /// Whether something may concern the watcher since the last look; if not, the task is woken when it does.
    pub(super) fn poll_woken(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut asleep = self.0.lock();
        let known = asleep.task.as_ref().is_some_and(|task| task.will_wake(context.waker()));
        let before = if known { None } else { asleep.task.replace(context.waker().clone()) };
        let rung = std::mem::take(&mut asleep.rung);
        drop(asleep);
        // Only now: another task may end with it.
        drop(before);
        if rung { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The first change that concerns the watcher and that it may not have read.
    pub(super) fn first(&self) -> Option<Revision> {
        self.0.lock().marked.map(|marked| marked.first)
    }

    /// The watcher has read everything up to a published revision.
    pub(super) fn read(&self, up_to: Revision) {
        let marked = &mut self.0.lock().marked;
        *marked = marked
            .filter(|marked| marked.last > up_to)
            .map(|marked| Marked { first: marked.first.max(Revision(up_to.0 + 1)), ..marked });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::Wake;

    use super::*;

    #[test]
    fn what_was_read_is_no_longer_marked_and_what_came_since_is() {
        let sleeper = Sleeper::default();
        assert!(!sleeper.mark(Revision(5), Revision(5)));
        assert!(!sleeper.mark(Revision(6), Revision(9)));
        assert!(sleeper.mark(Revision(6), Revision(9)), "a change may concern it in two ways");
        assert_eq!(sleeper.first(), Some(Revision(5)));
        sleeper.read(Revision(7));
        assert_eq!(sleeper.first(), Some(Revision(8)));
        sleeper.read(Revision(9));
        assert_eq!(sleeper.first(), None);
    }

    #[test]
    fn who_is_woken_before_it_sleeps_does_not_fall_asleep_and_who_sleeps_is_woken_each_time() {
        let woken = Arc::<Count>::default();
        let waker = Waker::from(woken.clone());
        let (sleeper, mut context) = (Sleeper::default(), Context::from_waker(&waker));
        sleeper.wake();
        assert!(sleeper.poll_woken(&mut context).is_ready());
        for times in 1..=2 {
            assert!(sleeper.poll_woken(&mut context).is_pending());
            sleeper.wake();
            assert_eq!(woken.0.load(SeqCst), times);
            assert!(sleeper.poll_woken(&mut context).is_ready());
        }
    }

    #[test]
    fn it_wakes_the_task_that_looked_last() {
        let (sleeper, tasks) = (Sleeper::default(), [(); 2].map(|()| Arc::<Count>::default()));
        for task in &tasks {
            assert!(sleeper.poll_woken(&mut Context::from_waker(&task.clone().into())).is_pending());
        }
        sleeper.wake();
        assert_eq!(tasks.each_ref().map(|task| task.0.load(SeqCst)), [0, 1]);
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }
}
