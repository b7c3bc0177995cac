//! The wake-up flag of one watcher.

use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// A flag that wakes the task of one watcher.
#[derive(Default)]
pub(super) struct WakeFlag(Mutex<FlagState>);

#[derive(Default)]
struct FlagState {
    /// Whether it was set since the last poll.
    woken: bool,
    /// The waker of the watcher's task. It is kept after a wake-up, because it is nearly always the same the next
    /// time.
    task: Option<Waker>,
}

impl WakeFlag {
    /// Wakes the watcher; if it is not asleep, its next poll returns `Ready`. Does nothing if the flag is set
    /// already.
    pub(super) fn wake(&self) {
        let mut inner = self.0.lock();
        if std::mem::replace(&mut inner.woken, true) {
            return;
        }
        let task = inner.task.clone();
        // Wake without holding the lock, because waking runs other code.
        drop(inner);
        task.into_iter().for_each(Waker::wake);
    }

    /// Returns `Ready` if the flag was set since the last poll; otherwise registers the task to be woken.
    pub(super) fn poll_woken(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.0.lock();
        let known = inner.task.as_ref().is_some_and(|task| task.will_wake(context.waker()));
        let before = if known { None } else { inner.task.replace(context.waker().clone()) };
        let woken = std::mem::take(&mut inner.woken);
        drop(inner);
        // Drop the old waker after the lock is released: another task may end with it.
        drop(before);
        if woken { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::Wake;

    use super::*;

    #[test]
    fn who_is_woken_before_it_sleeps_does_not_fall_asleep_and_who_sleeps_is_woken_each_time() {
        let woken = Arc::<WakeCount>::default();
        let waker = Waker::from(woken.clone());
        let (wake_flag, mut context) = (WakeFlag::default(), Context::from_waker(&waker));
        wake_flag.wake();
        assert!(wake_flag.poll_woken(&mut context).is_ready());
        for times in 1..=2 {
            assert!(wake_flag.poll_woken(&mut context).is_pending());
            wake_flag.wake();
            assert_eq!(woken.0.load(SeqCst), times);
            assert!(wake_flag.poll_woken(&mut context).is_ready());
        }
    }

    #[test]
    fn it_wakes_the_task_that_looked_last() {
        let (wake_flag, tasks) = (WakeFlag::default(), [(); 2].map(|()| Arc::<WakeCount>::default()));
        for task in &tasks {
            assert!(wake_flag.poll_woken(&mut Context::from_waker(&task.clone().into())).is_pending());
        }
        wake_flag.wake();
        assert_eq!(tasks.each_ref().map(|task| task.0.load(SeqCst)), [0, 1]);
    }

    #[derive(Default)]
    struct WakeCount(AtomicUsize);

    impl Wake for WakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }
}
