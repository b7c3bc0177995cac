//! The objects of one snapshot, and what among them cannot be read.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::backend::BackendError;
use crate::storage::{Scope, StorageError, Stored};

/// Objects in key order, shared with other snapshots.
#[derive(Clone, Default)]
pub(super) struct Objects {
    readable: OrdSet<ByKey>,
    /// Keys whose values cannot be read, and why. Whoever is shown the others is not told that these are gone.
    damaged: OrdMap<String, Arc<str>>,
}

impl Objects {
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

    /// How many cannot be read.
    pub(super) fn damaged(&self) -> usize {
        self.damaged.len()
    }

    /// Objects in a range of keys, in their order.
    pub(super) fn range<'a>(
        &'a self,
        keys: (Bound<&str>, Bound<&str>),
    ) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
        self.readable.range::<_, str>(keys).map(|entry| &entry.0)
    }

    /// Refuses a scope in which something cannot be read: nobody is shown a list with holes, because what is missing
    /// from a list is taken for deleted.
    pub(super) fn whole(&self, scope: &Scope) -> Result<(), StorageError> {
        let mut within = self.damaged.range::<_, str>((Bound::Included(&*scope.prefix), Bound::Unbounded));
        match within.next() {
            Some((key, why)) if scope.contains(key) => Err(damage(why)),
            _ => Ok(()),
        }
    }

    /// Remembers that the value of a key cannot be read, in place of the present one.
    pub(super) fn damage(&mut self, key: &str, why: Arc<str>) -> Option<Arc<Stored>> {
        let previous = self.replace(key, None);
        self.damaged.insert(key.to_owned(), why);
        previous
    }

    /// Puts the new state of a key, which can be read, in place of the present one.
    pub(super) fn replace(&mut self, key: &str, current: Option<Arc<Stored>>) -> Option<Arc<Stored>> {
        self.damaged.remove(key);
        let previous = match current {
            Some(stored) => self.readable.insert(ByKey(stored)),
            None => self.readable.remove(key),
        };
        previous.map(|entry| entry.0)
    }
}

/// The error of whoever asks for what cannot be read.
pub(super) fn damage(why: &str) -> StorageError {
    StorageError::Backend(BackendError::Corrupt(why.to_owned()))
}

/// An object ordered by its key: a map that need not hold the key a second time.
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
