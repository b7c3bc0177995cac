//! Objects by their UID. The index holds no copy of the UIDs: with 150,000 objects, copies would be a tenth of a cache.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;

use super::cacheable::Cacheable;

/// Objects by their UID.
pub(super) struct UidIndex<T> {
    objects: HashTable<Arc<T>>,
    hashes: RandomState,
}

impl<T> Default for UidIndex<T> {
    fn default() -> Self {
        Self { objects: HashTable::new(), hashes: RandomState::new() }
    }
}

impl<T: Cacheable> UidIndex<T> {
    /// The object with this UID.
    pub(super) fn get(&self, uid: &str) -> Option<&Arc<T>> {
        self.objects.find(self.hashes.hash_one(uid), |object| object.uid() == uid)
    }

    /// Takes in an object, in the place of one with the same UID.
    pub(super) fn insert(&mut self, object: Arc<T>) {
        self.remove(object.uid());
        let hash = self.hashes.hash_one(object.uid());
        self.objects.insert_unique(hash, object, |object| self.hashes.hash_one(object.uid()));
    }

    /// Takes out the object with this UID.
    pub(super) fn remove(&mut self, uid: &str) {
        let found = self.objects.find_entry(self.hashes.hash_one(uid), |object| object.uid() == uid);
        if let Ok(entry) = found {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Pod;

    fn pod(uid: &str, version: &str) -> Arc<Pod> {
        Arc::new(Pod { uid: uid.into(), resource_version: version.into(), ..Pod::default() })
    }

    #[test]
    fn of_each_uid_the_last_object_is_found_until_it_is_taken_out() {
        let mut index = UidIndex::default();
        (0..100).for_each(|number| index.insert(pod(&number.to_string(), "1")));
        index.insert(pod("7", "2"));
        assert_eq!((index.objects.len(), index.get("7").unwrap().resource_version.as_str()), (100, "2"));
        index.remove("7");
        index.remove("other");
        assert!(index.get("7").is_none() && index.get("8").is_some());
    }
}
