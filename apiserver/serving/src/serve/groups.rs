//! Groups of members, each with the number of its last step: finds the member of a group whose last step is the
//! oldest, and the largest group.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

/// Number of a connection; a later one has a larger number.
pub(super) type Id = u64;

/// A member: the number of its last step (later steps have larger numbers), and its own number.
pub(super) type Member = (u64, Id);

/// Members by their group. A group takes memory only while it has members. No two groups have a member in common.
pub(super) struct Groups<K> {
    members: HashMap<K, BTreeSet<Member>>,
    /// By the number of members, and the oldest of them.
    by_size: BTreeMap<Rank, K>,
    total: usize,
}

impl<K> Default for Groups<K> {
    fn default() -> Self {
        Self { members: HashMap::new(), by_size: BTreeMap::new(), total: 0 }
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
        let before = rank(members);
        if members.insert(member) {
            self.total += 1;
            let after = rank(members);
            self.rank_anew(group, before, after);
        }
    }

    pub(super) fn remove(&mut self, group: &K, member: Member) {
        let Some(members) = self.members.get_mut(group) else { return };
        let before = rank(members);
        if members.remove(&member) {
            self.total -= 1;
            let after = rank(members);
            if after.is_none() {
                self.members.remove(group);
            }
            self.rank_anew(group, before, after);
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

    /// The group with the most members; of several, the one whose oldest member is the oldest.
    pub(super) fn largest(&self) -> Option<&K> {
        self.by_size.last_key_value().map(|(_, group)| group)
    }

    /// The group with the most members; of several, the one whose oldest member is the newest.
    pub(super) fn largest_and_newest(&self) -> Option<&K> {
        let ((size, _), _) = self.by_size.last_key_value()?;
        let first = (*size, Reverse((u64::MAX, Id::MAX)));
        self.by_size.range(first..).next().map(|(_, group)| group)
    }

    fn rank_anew(&mut self, group: &K, before: Option<Rank>, after: Option<Rank>) {
        if let Some(before) = before {
            self.by_size.remove(&before);
        }
        if let Some(after) = after {
            self.by_size.insert(after, group.clone());
        }
    }
}

/// The number of members, and the oldest of them.
type Rank = (usize, Reverse<Member>);

/// The place of a group among the others; `None` if it has no members.
fn rank(members: &BTreeSet<Member>) -> Option<Rank> {
    members.first().map(|oldest| (members.len(), Reverse(*oldest)))
}

/// Members of which there are at most so many in all groups.
pub(super) struct BoundedGroups<K> {
    groups: Groups<K>,
    most: usize,
}

impl<K: Clone + Eq + Hash + Ord> BoundedGroups<K> {
    /// At most `most` in all.
    pub(super) fn new(most: usize) -> Self {
        Self { groups: Groups::default(), most }
    }

    /// Adds a member. Returns the one that has to give way to it, if any: the oldest one of the largest group.
    pub(super) fn begin(&mut self, group: &K, id: Id) -> Option<Id> {
        self.groups.insert(group, (id, id));
        if self.groups.total() <= self.most {
            return None;
        }
        self.groups.largest().and_then(|group| self.groups.oldest(group)).map(|(_, id)| id)
    }

    /// Removes a member, if it is there.
    pub(super) fn end(&mut self, group: &K, id: Id) {
        self.groups.remove(group, (id, id));
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

    /// When hundreds of addresses had one place each, the last in the order of addresses gave way, which may be a client's that
    /// does no harm.
    #[test]
    fn of_equally_large_groups_the_first_gives_way() {
        let mut groups = BoundedGroups::new(300);
        for id in 0..300 {
            assert_eq!(groups.begin(&id, id), None);
        }
        assert_eq!(groups.begin(&1_000, 1_000), Some(0), "not the last one");
        groups.end(&0, 0);
        assert_eq!((groups.groups.largest(), groups.groups.largest_and_newest()), (Some(&1), Some(&1_000)));
        assert_eq!(groups.begin(&1_000, 1_001), Some(1_000), "the largest");
    }
}
