//! The objects of one snapshot, and the keys whose values cannot be decoded.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::backend::BackendError;
use crate::storage::{Scope, StorageError, Stored};

/// Objects in key order. Snapshots share their structure.
#[derive(Clone, Default)]
pub(super) struct ObjectMap {
    readable: OrdSet<ByKey>,
    /// Keys whose values cannot be decoded, and why. A reader of the other objects must not conclude that these were
    /// deleted.
    damaged: OrdMap<String, Arc<str>>,
}

impl ObjectMap {
    pub(super) fn from_sorted(items: Vec<Arc<Stored>>, damaged: Vec<(String, String)>) -> Self {
        let damaged = damaged.into_iter().map(|(key, why)| (key, Arc::from(why))).collect();
        Self { readable: items.into_iter().map(ByKey).collect(), damaged }
    }

    pub(super) fn get(&self, key: &str) -> Result<Option<&Arc<Stored>>, StorageError> {
        match self.damaged.get(key) {
            Some(why) => Err(damage(why)),
            None => Ok(self.readable.get(key).map(|entry| &entry.0)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.readable.len()
    }

    /// Number of keys whose values cannot be decoded.
    pub(super) fn damaged(&self) -> usize {
        self.damaged.len()
    }

    /// Returns the objects in a range of keys, in key order.
    pub(super) fn range<'a>(
        &'a self,
        keys: (Bound<&str>, Bound<&str>),
    ) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
        self.readable.range::<_, str>(keys).map(|entry| &entry.0)
    }

    /// Fails if a value in the scope cannot be decoded: a client takes an object that is missing from a list for
    /// deleted.
    pub(super) fn whole(&self, scope: &Scope) -> Result<(), StorageError> {
        let mut within = self.damaged.range::<_, str>((Bound::Included(&*scope.prefix), Bound::Unbounded));
        match within.next() {
            Some((key, why)) if scope.contains(key) => Err(damage(why)),
            _ => Ok(()),
        }
    }

    /// Records that the new value of a key cannot be decoded. Returns the object that it replaces.
    pub(super) fn damage(&mut self, key: &str, why: Arc<str>) -> Option<Arc<Stored>> {
        let previous = self.replace(key, None);
        self.damaged.insert(key.to_owned(), why);
        previous
    }

    /// Replaces the object of a key; `None` removes it. Returns the object before.
    pub(super) fn replace(&mut self, key: &str, current: Option<Arc<Stored>>) -> Option<Arc<Stored>> {
        self.damaged.remove(key);
        let previous = match current {
            Some(stored) => self.readable.insert(ByKey(stored)),
            None => self.readable.remove(key),
        };
        previous.map(|entry| entry.0)
    }
}

/// The error for a read of a value that cannot be decoded.
pub(super) fn damage(why: &str) -> StorageError {
    StorageError::Backend(BackendError::Corrupt(why.to_owned()))
}

/// An object ordered by its key, so that a map need not store the key a second time.
#[derive(Clone)]
struct ByKey(Arc<Stored>);

impl Borrow<str> for ByKey {
    fn borrow(&self) -> &str {
        &self.0.key
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}
