//! Groups of members, each with the number of its last step: finds the member of a group whose last step is the
//! oldest, and the largest group.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// Number of a connection; a later one has a larger number.
pub(super) type Id = u64;

/// A member: the number of its last step (later steps have larger numbers), and its own number.
pub(super) type Member = (u64, Id);

/// Members by their group. A group takes memory only while it has members.
pub(super) struct Groups<K> {
    members: HashMap<K, BTreeSet<Member>>,
    by_size: BTreeSet<(usize, K)>,
    total: usize,
}

impl<K> Default for Groups<K> {
    fn default() -> Self {
        Self { members: HashMap::new(), by_size: BTreeSet::new(), total: 0 }
    }
}

impl<K: Clone + Eq + Hash + Ord> Groups<K> {
    /// Members of all groups.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Members of a group.
    pub(super) fn size(&self, group: &K) -> usize {
        self.members.get(group).map_or(0, BTreeSet::len)
    }

    pub(super) fn insert(&mut self, group: &K, member: Member) {
        let members = self.members.entry(group.clone()).or_default();
        let before = members.len();
        if members.insert(member) {
            self.total += 1;
            self.resize(group, before, before + 1);
        }
    }

    pub(super) fn remove(&mut self, group: &K, member: Member) {
        let Some(members) = self.members.get_mut(group) else { return };
        let before = members.len();
        if members.remove(&member) {
            self.total -= 1;
            if before == 1 {
                self.members.remove(group);
            }
            self.resize(group, before, before - 1);
        }
    }

    /// The member of a group that took no step for longest.
    pub(super) fn oldest(&self, group: &K) -> Option<Member> {
        self.members.get(group)?.first().copied()
    }

    /// The member of a group that took the latest step.
    pub(super) fn newest(&self, group: &K) -> Option<Id> {
        self.members.get(group)?.last().map(|(_, id)| *id)
    }

    /// The group with the most members.
    pub(super) fn largest(&self) -> Option<&K> {
        self.by_size.last().map(|(_, group)| group)
    }

    fn resize(&mut self, group: &K, before: usize, after: usize) {
        if before > 0 {
            self.by_size.remove(&(before, group.clone()));
        }
        if after > 0 {
            self.by_size.insert((after, group.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_group_is_known_as_members_come_and_go() {
        let mut groups = Groups::default();
        assert_eq!(groups.largest(), None);
        for (group, id) in [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("b", 5)] {
            groups.insert(&group, (id, id));
        }
        assert_eq!(
            (groups.largest(), groups.oldest(&"b"), groups.newest(&"b")),
            (Some(&"b"), Some((2, 2)), Some(5))
        );
        groups.remove(&"b", (2, 2));
        groups.remove(&"b", (4, 4));
        assert_eq!((groups.largest(), groups.size(&"b"), groups.total()), (Some(&"a"), 1, 3));
    }

    #[test]
    fn an_empty_group_takes_no_memory() {
        let mut groups = Groups::default();
        for id in 0..100 {
            groups.insert(&id, (id, id));
            groups.insert(&id, (id, id));
            groups.remove(&id, (id, id));
            groups.remove(&id, (id, id));
        }
        assert_eq!((groups.members.len(), groups.by_size.len(), groups.total()), (0, 0, 0));
    }
}
