//! A queue in which groups take turns, so that a group with many items does not delay the others.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Items by group: one FIFO for each group, and the groups in turn.
#[derive(Debug)]
pub struct RoundRobin<G, T> {
    queues: HashMap<G, VecDeque<T>>,
    /// The groups that have items, the next one first.
    order: VecDeque<G>,
    len: usize,
}

impl<G, T> Default for RoundRobin<G, T> {
    fn default() -> Self {
        Self { queues: HashMap::new(), order: VecDeque::new(), len: 0 }
    }
}

impl<G: Clone + Eq + Hash, T> RoundRobin<G, T> {
    /// Adds an item as the last of its group.
    pub fn push(&mut self, group: &G, item: T) {
        match self.queues.get_mut(group) {
            Some(queue) => queue.push_back(item),
            None => {
                self.queues.insert(group.clone(), VecDeque::from([item]));
                self.order.push_back(group.clone());
            }
        }
        self.len += 1;
    }

    /// Takes the first item of the group whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        let group = self.order.pop_front()?;
        let queue = self.queues.get_mut(&group)?;
        let item = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&group);
        } else {
            self.order.push_back(group);
        }
        self.len -= 1;
        Some(item)
    }

    /// Number of items of all groups.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Items by group, and within each group by an inner group: the groups take turns, and so do the inner groups
/// each time that their group has its turn.
#[derive(Debug)]
pub struct NestedRoundRobin<G, H, T> {
    groups: HashMap<G, RoundRobin<H, T>>,
    /// The groups that have items, the next one first.
    order: VecDeque<G>,
    len: usize,
}

impl<G, H, T> Default for NestedRoundRobin<G, H, T> {
    fn default() -> Self {
        Self { groups: HashMap::new(), order: VecDeque::new(), len: 0 }
    }
}

impl<G: Clone + Eq + Hash, H: Clone + Eq + Hash, T> NestedRoundRobin<G, H, T> {
    /// Adds an item as the last of its group within `group`.
    pub fn push(&mut self, group: &G, within: &H, item: T) {
        if !self.groups.contains_key(group) {
            self.order.push_back(group.clone());
        }
        self.groups.entry(group.clone()).or_default().push(within, item);
        self.len += 1;
    }

    /// Takes the next item of the group whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        let group = self.order.pop_front()?;
        let items = self.groups.get_mut(&group)?;
        let item = items.pop()?;
        if items.is_empty() {
            self.groups.remove(&group);
        } else {
            self.order.push_back(group);
        }
        self.len -= 1;
        Some(item)
    }

    /// Number of items of all groups.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_take_turns_and_keep_the_order_of_their_items() {
        let mut queue = RoundRobin::default();
        for (group, item) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("b", 6)] {
            queue.push(&group, item);
        }
        assert_eq!(queue.len(), 6);
        assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), [1, 4, 5, 2, 6, 3]);
        assert!(queue.is_empty() && queue.queues.is_empty() && queue.order.is_empty());
    }

    /// A maintenance of one node waited for each of another one's thousand nodes.
    #[test]
    fn groups_within_a_group_share_its_turns() {
        let mut queue = NestedRoundRobin::default();
        for (group, within, item) in [
            ("many", "a", 1),
            ("many", "a", 2),
            ("many", "b", 3),
            ("many", "c", 4),
            ("one", "d", 5),
            ("one", "d", 6),
        ] {
            queue.push(&group, &within, item);
        }
        assert_eq!(queue.len(), 6);
        assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), [1, 5, 3, 6, 4, 2]);
        assert!(queue.is_empty() && queue.groups.is_empty() && queue.order.is_empty());
    }
}
