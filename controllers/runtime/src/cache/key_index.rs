//! Objects in the order of their keys. The index holds no copy of the keys, like [`super::uid_index`].

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use super::cacheable::Cacheable;

/// Objects by namespace and name, in this order.
pub(super) struct KeyIndex<T: Cacheable> {
    objects: BTreeSet<OrderedObject<T>>,
}

impl<T: Cacheable> Default for KeyIndex<T> {
    fn default() -> Self {
        Self { objects: BTreeSet::new() }
    }
}

impl<T: Cacheable> KeyIndex<T> {
    /// The object with this namespace and name.
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<T>> {
        self.objects.get::<dyn Keyed>(&(namespace, name)).map(|found| &found.0)
    }

    /// Takes in an object. Returns the one that had its key.
    pub(super) fn insert(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        self.objects.replace(OrderedObject(object)).map(|old| old.0)
    }

    /// Takes out the object with this namespace and name.
    pub(super) fn remove(&mut self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.objects.take::<dyn Keyed>(&(namespace, name)).map(|old| old.0)
    }

    /// All objects, ordered by key.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.objects.iter().map(|object| &object.0)
    }

    /// The objects of a namespace, ordered by name.
    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Arc<T>> {
        let first: &dyn Keyed = &(namespace, "");
        let from = self.objects.range::<dyn Keyed, _>((Included(first), Unbounded));
        from.map(|object| &object.0).take_while(move |object| object.namespace() == namespace)
    }

    /// Number of objects.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

/// An object, ordered by its key.
struct OrderedObject<T>(Arc<T>);

/// The key that the set compares: a set is searched by one type alone ([`Borrow`]), which both an object in it and a
/// namespace and name that are looked up have to be.
trait Keyed {
    fn namespace_and_name(&self) -> (&str, &str);
}

impl<T: Cacheable> Keyed for OrderedObject<T> {
    fn namespace_and_name(&self) -> (&str, &str) {
        (self.0.namespace(), self.0.name())
    }
}

impl Keyed for (&str, &str) {
    fn namespace_and_name(&self) -> (&str, &str) {
        *self
    }
}

impl Ord for dyn Keyed + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.namespace_and_name().cmp(&other.namespace_and_name())
    }
}

impl PartialOrd for dyn Keyed + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Keyed + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn Keyed + '_ {}

impl<'a, T: Cacheable> Borrow<dyn Keyed + 'a> for OrderedObject<T> {
    fn borrow(&self) -> &(dyn Keyed + 'a) {
        self
    }
}

impl<T: Cacheable> Ord for OrderedObject<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.namespace_and_name().cmp(&other.namespace_and_name())
    }
}

impl<T: Cacheable> PartialOrd for OrderedObject<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Cacheable> PartialEq for OrderedObject<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Cacheable> Eq for OrderedObject<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pod;

    fn pod(namespace: &str, name: &str, version: &str) -> Arc<Pod> {
        Arc::new(Pod {
            namespace: namespace.into(),
            name: name.into(),
            resource_version: version.into(),
            ..Pod::default()
        })
    }

    fn keys<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>) -> Vec<String> {
        pods.map(|pod| pod.key().to_string()).collect()
    }

    #[test]
    fn of_each_key_the_last_object_is_found_until_it_is_taken_out() {
        let mut index = KeyIndex::default();
        assert!(index.insert(pod("a", "x", "1")).is_none());
        assert!(index.insert(pod("b", "x", "1")).is_none());
        assert_eq!(index.insert(pod("a", "x", "2")), Some(pod("a", "x", "1")));
        assert_eq!((index.get("a", "x"), index.len()), (Some(&pod("a", "x", "2")), 2));
        assert_eq!(index.remove("a", "x"), Some(pod("a", "x", "2")));
        assert!(index.remove("a", "x").is_none() && index.get("a", "x").is_none());
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn objects_are_ordered_by_namespace_and_then_by_name() {
        let mut index = KeyIndex::default();
        for (namespace, name) in [("b", "x"), ("ab", "y"), ("a", "z"), ("ab", "x"), ("", "z"), ("a-b", "x")] {
            index.insert(pod(namespace, name, "1"));
        }
        assert_eq!(keys(index.iter()), ["z", "a/z", "a-b/x", "ab/x", "ab/y", "b/x"]);
        assert_eq!(keys(index.in_namespace("ab")), ["ab/x", "ab/y"]);
        assert_eq!(keys(index.in_namespace("")), ["z"]);
        assert!(index.in_namespace("aa").next().is_none());
    }
}
