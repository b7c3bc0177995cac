//! Which actions wait, and which have been written but not seen yet.
//!
//! An action that was written is not decided again from a cache that does not show it yet.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use super::write_queues::WriteJob;
use crate::actions::{Action, Task};

/// A write that no watch shows within this time is decided again.
const SHOWS_WITHIN: Duration = Duration::from_secs(10);
/// Status writes of one object are at least this far apart, but for those that move the plan on.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// Actions of all tasks.
#[derive(Debug, Default)]
pub(crate) struct PendingWrites {
    waiting: HashMap<Task, Decided>,
    written: HashMap<Task, Unseen>,
    /// When the write of a status was tried last.
    statuses_tried: HashMap<Task, Instant>,
    /// Tasks whose last write failed. Their queue tries them again with backoff, with the action that is
    /// current then.
    failed: HashSet<Task>,
    /// When an action was last queued that moves the drain on.
    moved_on: Option<Instant>,
}

#[derive(Debug)]
struct Decided {
    action: Action,
    /// The version of the task's object in the cache that it was decided from.
    seen: u64,
}

#[derive(Debug)]
struct Unseen {
    version: u64,
    at: Instant,
}

impl PendingWrites {
    /// Replaces the waiting actions by the current ones. Returns the jobs to queue, each with a
    /// delay. `seen` is the version of the task's object in the cache.
    pub(crate) fn replace(
        &mut self,
        actions: BTreeMap<Task, Action>,
        seen: impl Fn(&Task) -> u64,
        now: Instant,
    ) -> Vec<(WriteJob, Duration)> {
        self.written.retain(|task, w| seen(task) < w.version && now.duration_since(w.at) < SHOWS_WITHIN);
        self.statuses_tried.retain(|_, at| now.duration_since(*at) < STATUS_INTERVAL);
        self.failed.retain(|task| actions.contains_key(task));
        let mut queue = Vec::new();
        let mut waiting = HashMap::new();
        for (task, action) in actions {
            if self.written.contains_key(&task) {
                continue;
            }
            let is_new = self.waiting.get(&task).is_none_or(|before| before.action != action);
            if is_new && !self.failed.contains(&task) {
                let moves_on = action.moves_on();
                self.moved_on = if moves_on { Some(now) } else { self.moved_on };
                let last = self.statuses_tried.get(&task).filter(|_| !moves_on);
                let since = last.map(|at| now.duration_since(*at));
                let delay = since.map_or(Duration::ZERO, |since| STATUS_INTERVAL.saturating_sub(since));
                queue.push((WriteJob::of(&action), delay));
            }
            let seen = seen(&task);
            waiting.insert(task, Decided { action, seen });
        }
        self.waiting = waiting;
        queue
    }

    /// Whether an action that moves the drain on was queued within this time.
    pub(crate) fn has_moved_on(&self, within: Duration, now: Instant) -> bool {
        self.moved_on.is_some_and(|at| now.duration_since(at) < within)
    }

    /// Returns the present action of a task, which is tried now; none if there is nothing left to do.
    pub(crate) fn begin(&mut self, task: &Task, now: Instant) -> Option<Action> {
        self.failed.remove(task);
        if matches!(task, Task::Status(_)) {
            self.statuses_tried.insert(task.clone(), now);
        }
        self.waiting.get(task).map(|decided| decided.action.clone())
    }

    /// Records that a write failed; its queue tries it again.
    pub(crate) fn failed(&mut self, task: &Task) {
        self.failed.insert(task.clone());
    }

    /// Records that an action was written, and the version of the object since then. One that was decided meanwhile from a
    /// cache without that version is decided again when it is seen.
    pub(crate) fn done(&mut self, action: &Action, version: u64, now: Instant) {
        let task = action.task();
        let is_over = |waiting: &Decided| waiting.action == *action || waiting.seen < version;
        if self.waiting.get(&task).is_some_and(is_over) {
            self.waiting.remove(&task);
        }
        self.written.insert(task, Unseen { version, at: now });
    }

    /// When writes that were not seen are to be decided again.
    pub(crate) fn wake(&self) -> Option<Instant> {
        self.written.values().map(|w| w.at + SHOWS_WITHIN).min()
    }
}

#[cfg(test)]
mod tests {
    use drydock_api::node_maintenance::NodeMaintenance;

    use super::*;
    use crate::actions::{RequestChange, RequestLane};

    fn ask(pod: &str) -> Action {
        let change = RequestChange::Ask {
            pod: pod.to_owned(),
            request: None,
            maintenances: "".into(),
            asked_again: None,
        };
        Action::Request { namespace: "ns".into(), pod: "u".into(), change, lane: RequestLane::default() }
    }

    fn status(generation: i64) -> Action {
        let mut maintenance = NodeMaintenance::default();
        maintenance.metadata.name = "m".into();
        maintenance.metadata.generation = generation;
        Action::Status {
            maintenance: maintenance.into(),
            status: Box::default(),
            confirm: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    fn actions(list: &[Action]) -> BTreeMap<Task, Action> {
        list.iter().map(|action| (action.task(), action.clone())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_action_is_queued_once_and_again_only_when_it_changes() {
        let (mut pending, now) = (PendingWrites::default(), Instant::now());
        assert_eq!(pending.replace(actions(&[ask("a")]), |_| 0, now).len(), 1);
        assert!(pending.replace(actions(&[ask("a")]), |_| 0, now).is_empty());
        assert_eq!(pending.replace(actions(&[ask("b")]), |_| 0, now).len(), 1);
        assert!(pending.replace(BTreeMap::new(), |_| 0, now).is_empty());
        assert_eq!(pending.begin(&ask("b").task(), now), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_moves_on_by_what_is_new_and_not_by_news_of_its_progress() {
        let (mut pending, now) = (PendingWrites::default(), Instant::now());
        let (second, later) = (Duration::from_secs(1), now + Duration::from_secs(2));
        pending.replace(actions(&[status(1)]), |_| 0, now);
        assert!(!pending.has_moved_on(second, now));
        pending.replace(actions(&[ask("a")]), |_| 0, now);
        assert!(pending.has_moved_on(second, now) && !pending.has_moved_on(second, later));
        pending.replace(actions(&[ask("a")]), |_| 0, later);
        assert!(!pending.has_moved_on(second, later), "it was decided before");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_written_is_not_decided_again_until_it_is_seen_or_lost() {
        let (mut pending, now) = (PendingWrites::default(), Instant::now());
        let all = || actions(&[ask("a")]);
        pending.replace(all(), |_| 0, now);
        pending.done(&ask("a"), 7, now);
        assert!(pending.replace(all(), |_| 6, now).is_empty());
        assert_eq!(pending.wake(), Some(now + SHOWS_WITHIN));
        assert_eq!(pending.replace(all(), |_| 7, now).len(), 1);
        pending.done(&ask("a"), 9, now);
        assert_eq!(pending.replace(all(), |_| 7, now + SHOWS_WITHIN).len(), 1);
    }

    /// The conditions of a node were written twice: once after the live read that confirmed them, and once more as the
    /// planning had decided on them again during the write, now that the read was there.
    #[tokio::test(start_paused = true)]
    async fn what_was_decided_during_a_write_waits_until_that_is_seen() {
        let (mut pending, now) = (PendingWrites::default(), Instant::now());
        pending.replace(actions(&[ask("a")]), |_| 0, now);
        let task = ask("a").task();
        let begun = pending.begin(&task, now).expect("it waits");
        assert_eq!(pending.replace(actions(&[ask("b")]), |_| 0, now).len(), 1);
        pending.done(&begun, 7, now);
        assert_eq!(pending.begin(&task, now), None);
        assert!(pending.replace(actions(&[ask("b")]), |_| 6, now).is_empty());
        assert_eq!(pending.replace(actions(&[ask("b")]), |_| 7, now).len(), 1);
        assert_eq!(pending.begin(&task, now), Some(ask("b")));
    }

    /// The watch showed a write before its answer came. What was decided from that was dropped with the answer, and no
    /// event came to decide it again: a maintenance stayed as it was for good.
    #[tokio::test(start_paused = true)]
    async fn what_was_decided_from_the_version_of_a_write_is_not_lost_when_its_answer_comes() {
        let (mut pending, now) = (PendingWrites::default(), Instant::now());
        pending.replace(actions(&[ask("a")]), |_| 0, now);
        let task = ask("a").task();
        let begun = pending.begin(&task, now).expect("it waits");
        assert_eq!(pending.replace(actions(&[ask("b")]), |_| 7, now).len(), 1);
        pending.done(&begun, 7, now);
        assert_eq!(pending.begin(&task, now), Some(ask("b")));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_status_goes_at_once_and_the_next_after_a_second() {
        let (mut pending, now) = (PendingWrites::default(), Instant::now());
        assert_eq!(
            pending.replace(actions(&[status(1)]), |_| 0, now),
            [(WriteJob::of(&status(1)), Duration::ZERO)]
        );
        pending.begin(&status(1).task(), now);
        pending.done(&status(1), 1, now);
        let soon = now + Duration::from_millis(300);
        let queued = pending.replace(actions(&[status(2)]), |_| 1, soon);
        assert_eq!(queued, [(WriteJob::of(&status(2)), Duration::from_millis(700))]);
    }

    /// If the write differed at each planning, each planning sent it again, to a host that refused it.
    #[tokio::test(start_paused = true)]
    async fn a_write_that_failed_waits_for_its_queue_though_it_is_another_one_by_then() {
        let (mut pending, now) = (PendingWrites::default(), Instant::now());
        pending.replace(actions(&[ask("a")]), |_| 0, now);
        pending.begin(&ask("a").task(), now);
        pending.failed(&ask("a").task());
        assert!(pending.replace(actions(&[ask("b")]), |_| 0, now).is_empty());
        assert_eq!(pending.begin(&ask("a").task(), now), Some(ask("b")));
        assert_eq!(pending.replace(actions(&[ask("c")]), |_| 0, now).len(), 1);
        pending.failed(&ask("a").task());
        pending.replace(BTreeMap::new(), |_| 0, now);
        assert_eq!(pending.replace(actions(&[ask("c")]), |_| 0, now).len(), 1, "it is wanted anew");
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_that_was_not_written_is_not_tried_again_within_the_second_either() {
        let (mut pending, now) = (PendingWrites::default(), Instant::now());
        pending.replace(actions(&[status(1)]), |_| 0, now);
        pending.begin(&status(1).task(), now);
        let queued = pending.replace(actions(&[status(2)]), |_| 0, now + Duration::from_millis(300));
        assert_eq!(queued, [(WriteJob::of(&status(2)), Duration::from_millis(700))]);
    }
}
