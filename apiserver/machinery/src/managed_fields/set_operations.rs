//! Set operations on sets of paths: union, intersection, difference.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::path::PathElement;
use super::set::Set;

impl Set {
    /// Returns the paths of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let members = merge(&self.members, &other.members, |e| e, |a, _| a.clone());
        let both = |a: &(PathElement, Self), b: &(PathElement, Self)| (a.0.clone(), a.1.union(&b.1));
        Self { members, children: merge(&self.children, &other.children, |c| &c.0, both) }
    }

    /// Returns the paths of any of the sets. Joins them pairwise, then the results again: one after the other, each
    /// path would be copied once for each set.
    #[must_use]
    pub(super) fn union_of<'s>(sets: impl Iterator<Item = Cow<'s, Self>>) -> Self {
        let mut sets: Vec<Cow<'s, Self>> = sets.collect();
        while sets.len() > 1 {
            sets = sets
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => Cow::Owned(a.union(b)),
                    other => other.first().cloned().unwrap_or_default(),
                })
                .collect();
        }
        sets.pop().unwrap_or_default().into_owned()
    }
    /// Returns the union of two sets that are no longer needed. Usually one of them includes the other.
    #[must_use]
    pub(super) fn join(self, other: Self) -> Self {
        match (other.includes(&self), self.includes(&other)) {
            (true, _) => other,
            (false, true) => self,
            (false, false) => self.union(&other),
        }
    }

    /// Whether every path of `other` is in this set.
    pub(super) fn includes(&self, other: &Self) -> bool {
        let below = |(element, set): &(PathElement, Self)| match self.child(element) {
            Some(below) => below.includes(set),
            None => set.is_empty(),
        };
        other.members.iter().all(|element| self.has_member(element)) && other.children.iter().all(below)
    }

    /// Returns the paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        // Usually one set is much smaller; its paths are looked up in the other.
        if other.members.len() + other.children.len() < self.members.len() + self.children.len() {
            return other.intersection(self);
        }
        let common = |element: &&PathElement| other.has_member(element);
        let members = self.members.iter().filter(common).cloned().collect();
        let both = |(element, set): &(PathElement, Self)| {
            other.child(element).and_then(|other| filled(element, set.intersection(other)))
        };
        Self { members, children: self.children.iter().filter_map(both).collect() }
    }

    /// Returns the paths of this set that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.remove(other);
        out
    }

    /// Whether the sets have a path in common.
    pub(super) fn intersects(&self, other: &Self) -> bool {
        let below = |(element, set): &(PathElement, Self)| {
            other.child(element).is_some_and(|other| set.intersects(other))
        };
        self.members.iter().any(|element| other.has_member(element)) || self.children.iter().any(below)
    }

    /// Removes the paths that are in `other`.
    pub(super) fn remove(&mut self, other: &Self) {
        self.members.retain(|element| !other.has_member(element));
        self.children.retain_mut(|(element, set)| {
            let Some(below) = other.child(element) else { return true };
            set.remove(below);
            !set.is_empty()
        });
    }

    /// Returns the paths of this set that are neither in `other` nor below one of its paths.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.remove_recursively(other);
        out
    }

    /// Removes the paths that are in `other` or below one of its paths.
    pub(super) fn remove_recursively(&mut self, other: &Self) {
        self.members.retain(|element| !other.has_member(element));
        self.children.retain_mut(|(element, set)| {
            if other.has_member(element) {
                return false;
            }
            let Some(below) = other.child(element) else { return true };
            set.remove_recursively(below);
            !set.is_empty()
        });
    }
}

fn filled(element: &PathElement, set: Set) -> Option<(PathElement, Set)> {
    (!set.is_empty()).then(|| (element.clone(), set))
}

/// Merges two sorted lists; elements that are in both are combined by `both`.
fn merge<T: Clone>(a: &[T], b: &[T], key: impl Fn(&T) -> &PathElement, both: impl Fn(&T, &T) -> T) -> Vec<T> {
    let mut out = Vec::with_capacity(a.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        match key(&a[i]).cmp(key(&b[j])) {
            Ordering::Less => {
                out.push(a[i].clone());
                i += 1;
            }
            Ordering::Greater => {
                out.push(b[j].clone());
                j += 1;
            }
            Ordering::Equal => {
                out.push(both(&a[i], &b[j]));
                (i, j) = (i + 1, j + 1);
            }
        }
    }
    out.extend_from_slice(&a[i..]);
    out.extend_from_slice(&b[j..]);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn joined_sets_are_their_union_whichever_has_more() {
        let texts = [
            "{}",
            r#"{"f:a":{}}"#,
            r#"{"f:a":{".":{},"f:b":{}}}"#,
            r#"{"f:a":{"f:b":{},"f:c":{"f:d":{}}}}"#,
            r#"{"f:a":{"f:b":{}},"f:l":{"k:{\"name\":\"x\"}":{".":{},"f:n":{}},"v:1":{}}}"#,
            r#"{"f:l":{"k:{\"name\":\"x\"}":{"f:n":{}}}}"#,
        ];
        let sets = texts.map(|text| Set::from_json(text.as_bytes()).unwrap());
        for (a, b) in sets.iter().flat_map(|a| sets.iter().map(move |b| (a, b))) {
            assert_eq!(a.clone().join(b.clone()), a.union(b), "{a:?} {b:?}");
            assert_eq!(a.includes(b), a.union(b) == *a, "{a:?} {b:?}");
            assert_eq!(a.intersects(b), !a.intersection(b).is_empty(), "{a:?} {b:?}");
        }
    }
}
