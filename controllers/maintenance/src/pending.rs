//! Which actions wait, and which have been written but not seen yet.
//!
//! An action that was written is not decided again on a cache that has not heard of it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use crate::actions::{Action, Task};

/// A write that no watch shows within this time is decided again.
const SHOWS_WITHIN: Duration = Duration::from_secs(10);
/// Status writes of one object are at least this far apart.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// Actions of all tasks.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    waiting: HashMap<Task, Action>,
    written: HashMap<Task, Written>,
    status_at: HashMap<Task, Instant>,
}

#[derive(Debug)]
struct Written {
    version: u64,
    at: Instant,
}

impl Pending {
    /// Takes over what is to be done now. Returns the tasks to be queued, each with a delay. `seen` is the version of
    /// the task's object in the cache.
    pub(crate) fn replace(
        &mut self,
        actions: BTreeMap<Task, Action>,
        seen: impl Fn(&Task) -> u64,
        now: Instant,
    ) -> Vec<(Task, Duration)> {
        self.written.retain(|task, w| seen(task) < w.version && now.duration_since(w.at) < SHOWS_WITHIN);
        self.status_at.retain(|_, at| now.duration_since(*at) < STATUS_INTERVAL);
        let mut queue = Vec::new();
        let mut waiting = HashMap::new();
        for (task, action) in actions {
            if self.written.contains_key(&task) {
                continue;
            }
            if self.waiting.get(&task) != Some(&action) {
                let since = self.status_at.get(&task).map(|at| now.duration_since(*at));
                let delay = since.map_or(Duration::ZERO, |since| STATUS_INTERVAL.saturating_sub(since));
                queue.push((task.clone(), delay));
            }
            waiting.insert(task, action);
        }
        self.waiting = waiting;
        queue
    }

    /// The present action of a task, if it is still wanted.
    pub(crate) fn get(&self, task: &Task) -> Option<Action> {
        self.waiting.get(task).cloned()
    }

    /// An action was written; the object has this version since.
    pub(crate) fn done(&mut self, task: &Task, action: &Action, version: u64, now: Instant) {
        if self.waiting.get(task) == Some(action) {
            self.waiting.remove(task);
        }
        self.written.insert(task.clone(), Written { version, at: now });
        if matches!(task, Task::Status(_)) {
            self.status_at.insert(task.clone(), now);
        }
    }

    /// When writes that were not seen are to be decided again.
    pub(crate) fn wake(&self) -> Option<Instant> {
        self.written.values().map(|w| w.at + SHOWS_WITHIN).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(pod: &str) -> Action {
        Action::Ask { pod: pod.to_owned(), request: None }
    }

    fn actions(list: &[(&Task, Action)]) -> BTreeMap<Task, Action> {
        list.iter().map(|(t, a)| ((*t).clone(), a.clone())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_action_is_queued_once_and_again_only_when_it_changes() {
        let (task, mut pending, now) =
            (Task::Request("ns".into(), "u".into()), Pending::default(), Instant::now());
        assert_eq!(pending.replace(actions(&[(&task, ask("a"))]), |_| 0, now).len(), 1);
        assert!(pending.replace(actions(&[(&task, ask("a"))]), |_| 0, now).is_empty());
        assert_eq!(pending.replace(actions(&[(&task, ask("b"))]), |_| 0, now).len(), 1);
        assert!(pending.replace(BTreeMap::new(), |_| 0, now).is_empty());
        assert_eq!(pending.get(&task), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_written_is_not_decided_again_until_it_is_seen_or_lost() {
        let (task, mut pending, now) =
            (Task::Request("ns".into(), "u".into()), Pending::default(), Instant::now());
        let all = || actions(&[(&task, ask("a"))]);
        pending.replace(all(), |_| 0, now);
        pending.done(&task, &ask("a"), 7, now);
        assert!(pending.replace(all(), |_| 6, now).is_empty());
        assert_eq!(pending.wake(), Some(now + SHOWS_WITHIN));
        assert_eq!(pending.replace(all(), |_| 7, now).len(), 1);
        pending.done(&task, &ask("a"), 9, now);
        assert_eq!(pending.replace(all(), |_| 7, now + SHOWS_WITHIN).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_status_goes_at_once_and_the_next_after_a_second() {
        let (task, mut pending, now) = (Task::Status("m".into()), Pending::default(), Instant::now());
        assert_eq!(
            pending.replace(actions(&[(&task, ask("a"))]), |_| 0, now),
            [(task.clone(), Duration::ZERO)]
        );
        pending.done(&task, &ask("a"), 1, now);
        let soon = now + Duration::from_millis(300);
        let queued = pending.replace(actions(&[(&task, ask("b"))]), |_| 1, soon);
        assert_eq!(queued, [(task, Duration::from_millis(700))]);
    }
}
