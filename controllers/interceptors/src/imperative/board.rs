//! What the controller remembers of the requests whose turn is ours. Bounded by their number.

use std::collections::{BTreeSet, HashMap};

use drydock_api::eviction_request::InterceptorStatus;
use drydock_runtime::{Budget, ObjectKey};
use tokio::time::Instant;

use super::plan::Tried;

/// At least so many of those who wait for a budget are woken by a change in their favour, as many as may be in flight.
const WOKEN: usize = 64;

/// What is remembered of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) tried: Tried,
    /// The entry that was written last; the cache may not show it yet.
    pub(crate) written: Option<InterceptorStatus>,
    /// When.
    pub(crate) written_at: Option<Instant>,
    /// Name of the pod, which the metrics carry.
    pub(crate) pod: String,
    /// What blocked when it was last told by an event.
    pub(crate) told: Option<&'static str>,
    /// Whether an eviction is queued or in flight.
    pub(crate) asking: bool,
    /// The budget that is waited for, and the place in its queue.
    waiting: Option<(ObjectKey, u64)>,
}

#[derive(Default)]
pub(crate) struct Board {
    memories: HashMap<ObjectKey, Memory>,
    waiting: HashMap<ObjectKey, BTreeSet<(u64, ObjectKey)>>,
    sequence: u64,
}

impl Board {
    /// What is known of a request; made from its message when it is new.
    pub(crate) fn recall(&mut self, key: &ObjectKey, message: &str) -> &mut Memory {
        self.memories
            .entry(key.clone())
            .or_insert_with(|| Memory { tried: Tried::from_message(message), ..Memory::default() })
    }

    pub(crate) fn get_mut(&mut self, key: &ObjectKey) -> Option<&mut Memory> {
        self.memories.get_mut(key)
    }

    pub(crate) fn knows(&self, key: &ObjectKey) -> bool {
        self.memories.contains_key(key)
    }

    /// Forgets a request.
    pub(crate) fn forget(&mut self, key: &ObjectKey) -> Option<Memory> {
        self.stop_waiting(key);
        self.memories.remove(key)
    }

    /// Puts a request into the queue of those who wait for a budget; it keeps its place if it is there already.
    pub(crate) fn wait_for(&mut self, key: &ObjectKey, budget: &ObjectKey) {
        let Some(memory) = self.memories.get_mut(key) else { return };
        if memory.waiting.as_ref().is_some_and(|(waited, _)| waited == budget) {
            return;
        }
        self.stop_waiting(key);
        self.sequence += 1;
        if let Some(memory) = self.memories.get_mut(key) {
            memory.waiting = Some((budget.clone(), self.sequence));
            self.waiting.entry(budget.clone()).or_default().insert((self.sequence, key.clone()));
        }
    }

    pub(crate) fn stop_waiting(&mut self, key: &ObjectKey) {
        let Some((budget, place)) = self.memories.get_mut(key).and_then(|m| m.waiting.take()) else { return };
        if let Some(queue) = self.waiting.get_mut(&budget) {
            queue.remove(&(place, key.clone()));
            if queue.is_empty() {
                self.waiting.remove(&budget);
            }
        }
    }

    /// Those to wake when a budget changes in favour of its pods: the longest waiting, all if the budget is gone.
    pub(crate) fn to_wake(&self, budget: &ObjectKey, after: Option<&Budget>) -> Vec<ObjectKey> {
        let count = after
            .map_or(usize::MAX, |b| WOKEN.max(usize::try_from(b.disruptions_allowed).unwrap_or_default()));
        let queue = self.waiting.get(budget).into_iter().flatten();
        queue.take(count).map(|(_, key)| key.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    #[test]
    fn longest_waiting_are_woken_first_and_all_when_the_budget_is_gone() {
        let mut board = Board::default();
        for i in 0..100 {
            board.recall(&key(&format!("{i:03}")), "");
            board.wait_for(&key(&format!("{i:03}")), &key("b"));
        }
        board.wait_for(&key("000"), &key("b"));
        let woken = board.to_wake(&key("b"), Some(&Budget::default()));
        assert_eq!((woken.len(), &*woken[0].name, &*woken[63].name), (64, "000", "063"));
        assert_eq!(board.to_wake(&key("b"), None).len(), 100);
    }

    #[test]
    fn forgotten_request_waits_nowhere() {
        let mut board = Board::default();
        board.recall(&key("a"), "");
        board.wait_for(&key("a"), &key("b"));
        assert!(board.forget(&key("a")).is_some() && board.forget(&key("a")).is_none());
        assert!(board.waiting.is_empty() && board.to_wake(&key("b"), None).is_empty());
    }
}
