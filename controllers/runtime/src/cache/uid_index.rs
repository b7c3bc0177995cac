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
