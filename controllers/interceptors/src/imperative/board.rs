//! What the controller remembers of the requests whose turn is ours. Bounded by their number.

use std::collections::{BTreeSet, HashMap};

use drydock_api::eviction_request::InterceptorStatus;
use drydock_runtime::ObjectKey;
use tokio::time::Instant;

use super::gate::{Gate, Relief};
use super::plan::Tried;

/// At least so many of those who wait for a budget are woken by a change in their favour, as many as may be in flight.
const WOKEN: usize = 64;

/// What is remembered of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) tried: Tried,
    /// UID of the request.
    uid: String,
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
    waiting: Option<Waiting>,
}

impl Memory {
    /// A request that was made anew under the name has none of the entries that were written to the one before, which may
    /// have gone while the watch was broken off.
    pub(crate) fn belong_to(&mut self, uid: &str) {
        if self.uid != uid {
            (self.uid, self.written, self.written_at) = (uid.to_owned(), None, None);
        }
    }
}

/// What a request waits for.
#[derive(Clone, Debug)]
enum Waiting {
    /// Room in this budget; with the place in its queue.
    Room(ObjectKey, u64),
    /// That these budgets no longer cover its pod together.
    Fewer(Vec<ObjectKey>),
}

#[derive(Default)]
pub(crate) struct Board {
    memories: HashMap<ObjectKey, Memory>,
    /// Those who wait for room, by the budget and in the order in which they came.
    room: HashMap<ObjectKey, BTreeSet<(u64, ObjectKey)>>,
    /// Those who wait for fewer budgets, by each of these. Apart from the others, whom they would keep from being woken.
    fewer: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
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

    /// Lets a request wait for the budgets in its way to change; it keeps its place if it waits for them already.
    pub(crate) fn wait_for(&mut self, key: &ObjectKey, gate: &Gate) {
        match (self.memories.get(key).and_then(|m| m.waiting.as_ref()), gate) {
            (Some(Waiting::Room(waited, _)), _) if gate.budget() == Some(waited) => return,
            (Some(Waiting::Fewer(waited)), Gate::Many(budgets)) if waited == budgets => return,
            _ => self.stop_waiting(key),
        }
        let Some(memory) = self.memories.get_mut(key) else { return };
        if let Gate::Many(budgets) = gate {
            memory.waiting = Some(Waiting::Fewer(budgets.clone()));
            for budget in budgets {
                self.fewer.entry(budget.clone()).or_default().insert(key.clone());
            }
        } else if let Some(budget) = gate.budget() {
            self.sequence += 1;
            memory.waiting = Some(Waiting::Room(budget.clone(), self.sequence));
            self.room.entry(budget.clone()).or_default().insert((self.sequence, key.clone()));
        }
    }

    pub(crate) fn stop_waiting(&mut self, key: &ObjectKey) {
        match self.memories.get_mut(key).and_then(|m| m.waiting.take()) {
            Some(Waiting::Room(budget, place)) => take_out(&mut self.room, &budget, &(place, key.clone())),
            Some(Waiting::Fewer(budgets)) => {
                budgets.iter().for_each(|budget| take_out(&mut self.fewer, budget, key));
            }
            None => {}
        }
    }

    /// Those to wake when a budget changes in favour of its pods: the longest waiting if it has room, all if its pods are
    /// no longer the same.
    pub(crate) fn to_wake(&self, budget: &ObjectKey, relief: Relief) -> Vec<ObjectKey> {
        let room = self.room.get(budget).into_iter().flatten().map(|(_, key)| key);
        match relief {
            Relief::Some(allowed) => room.take(WOKEN.max(allowed)).cloned().collect(),
            Relief::Any => room.chain(self.fewer.get(budget).into_iter().flatten()).cloned().collect(),
        }
    }

    /// Who waits longest for room in a budget.
    pub(crate) fn first_for(&self, budget: &ObjectKey) -> Option<ObjectKey> {
        self.room.get(budget)?.first().map(|(_, key)| key.clone())
    }
}

fn take_out<T: Ord>(queues: &mut HashMap<ObjectKey, BTreeSet<T>>, budget: &ObjectKey, waiting: &T) {
    let Some(queue) = queues.get_mut(budget) else { return };
    queue.remove(waiting);
    if queue.is_empty() {
        queues.remove(budget);
    }
}

#[cfg(test)]
mod tests {
    use super::super::gate::Covering;
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    fn behind(budget: &str) -> Gate {
        Gate::Open(Some(Covering { key: key(budget), version: "1".into() }))
    }

    fn waiting(names: &[&str], gate: &Gate, board: &mut Board) {
        for name in names {
            board.recall(&key(name), "");
            board.wait_for(&key(name), gate);
        }
    }

    #[test]
    fn longest_waiting_are_woken_first_and_all_when_the_budget_is_gone() {
        let mut board = Board::default();
        for i in 0..100 {
            waiting(&[&format!("{i:03}")], &behind("b"), &mut board);
        }
        board.wait_for(&key("000"), &behind("b"));
        let woken = board.to_wake(&key("b"), Relief::Some(1));
        assert_eq!((woken.len(), &*woken[0].name, &*woken[63].name), (64, "000", "063"));
        assert_eq!(board.to_wake(&key("b"), Relief::Any).len(), 100);
    }

    #[test]
    fn those_whom_several_budgets_keep_are_woken_when_one_is_gone_and_not_when_one_has_room() {
        let mut board = Board::default();
        let both = Gate::Many(vec![key("a"), key("b")]);
        waiting(&["several"], &both, &mut board);
        waiting(&["one"], &behind("b"), &mut board);
        assert_eq!(board.to_wake(&key("b"), Relief::Some(1)), [key("one")]);
        assert_eq!(board.to_wake(&key("b"), Relief::Any), [key("one"), key("several")]);
        assert_eq!(board.to_wake(&key("a"), Relief::Any), [key("several")]);
        board.wait_for(&key("several"), &behind("a"));
        assert_eq!(board.to_wake(&key("b"), Relief::Any), [key("one")], "it waits for what is left");
        assert_eq!(board.first_for(&key("a")), Some(key("several")));
    }

    #[test]
    fn forgotten_request_waits_nowhere() {
        for gate in [behind("b"), Gate::Many(vec![key("a"), key("b")])] {
            let mut board = Board::default();
            waiting(&["a"], &gate, &mut board);
            assert!(board.forget(&key("a")).is_some() && board.forget(&key("a")).is_none());
            assert!(board.room.is_empty() && board.fewer.is_empty());
        }
    }
}
