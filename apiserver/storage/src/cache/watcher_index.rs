//! Finds the watchers that a change concerns; the others are not woken.
//!
//! ```text
//!   change ──key──────────> group of the watchers of that object
//!          ──namespace────> bucket of the namespace ┐ one group for the watchers without a field requirement,
//!          ───────────────> bucket of everything    ┘ and one for each field value that a watcher requires
//!                             │ each group is marked with the change's revision
//!                             │ the state is published
//!                             └ the groups are woken (`wake_queue`)
//! ```
//!
//! A group is marked before the change is published, and woken afterwards. The registry stays locked from the marking
//! to the publication, so that no group is added in between. So a watcher whose group is not marked knows that no
//! change up to the newest state concerned it, without having been awake. Locks are taken in this order: the
//! registry, then a group or an object. (Kubernetes calls these triggers, storage/cacher: there a kind names its
//! indexed fields, here every field is indexed that a selector in use requires.)

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::bucket::{Bucket, BucketKey};
use super::ring::CachedChange;
use super::wake_flag::WakeFlag;
use super::wake_queue::WakeQueue;
use super::watcher_group::{Membership, WatcherGroup};
use crate::backend::Revision;
use crate::storage::Scope;

/// The index of all watchers of a cache.
#[derive(Default)]
pub(super) struct WatcherIndex {
    registry: Mutex<Registry>,
    wake_queue: Arc<WakeQueue>,
}

#[derive(Default)]
struct Registry {
    /// Watchers of one object, by its key.
    objects: HashMap<String, Arc<WatcherGroup>>,
    /// Watchers of one namespace. The field values that they require are indexed for each namespace separately, so
    /// that a client who may watch only one namespace cannot use up the index entries of another.
    namespaces: HashMap<String, Bucket>,
    /// Watchers of all objects.
    everything: Bucket,
}

/// The key under which a watcher is registered.
enum RegistryKey {
    Object(String),
    Namespace(String, BucketKey),
    Everything(BucketKey),
}

/// The registration of a watcher; it ends when this is dropped.
pub(super) struct Registration {
    watcher_index: Arc<WatcherIndex>,
    registry_key: RegistryKey,
    membership: Membership,
}

/// The groups that the next published state concerns. No watcher can register while this is held.
#[must_use]
pub(super) struct MarkedGroups<'i> {
    registry: MutexGuard<'i, Registry>,
    wake_queue: Arc<WakeQueue>,
    groups: Vec<Arc<WatcherGroup>>,
}

impl WatcherIndex {
    /// Registers a watcher under the most selective property of its scope.
    pub(super) fn register(self: &Arc<Self>, scope: &Scope) -> Registration {
        let required = scope.matches.as_ref().and_then(|selection| selection.requires.clone());
        let mut registry = self.registry.lock();
        let (registry_key, membership) = match scope.prefix.strip_suffix('/') {
            _ if scope.single => {
                let key = scope.prefix.clone();
                let membership = registry.objects.entry(key.clone()).or_default().join();
                (RegistryKey::Object(key), membership)
            }
            Some(namespace) => {
                let bucket = registry.namespaces.entry(namespace.to_owned()).or_default();
                let (bucket_key, membership) = bucket.join(required);
                (RegistryKey::Namespace(namespace.to_owned(), bucket_key), membership)
            }
            None => {
                let (bucket_key, membership) = registry.everything.join(required);
                (RegistryKey::Everything(bucket_key), membership)
            }
        };
        drop(registry);
        Registration { watcher_index: self.clone(), registry_key, membership }
    }

    /// Marks the groups that unpublished changes concern. Marks at or below `floor`, the floor of the ring, are
    /// removed.
    pub(super) fn mark<'c>(
        &self,
        changes: impl Iterator<Item = &'c Arc<CachedChange>>,
        floor: Revision,
    ) -> MarkedGroups<'_> {
        let registry = self.registry.lock();
        let (mut first, mut groups, mut found) = (None, Vec::new(), Vec::new());
        for change in changes {
            let first = *first.get_or_insert(change.revision);
            registry.find(change, &mut found);
            // Several changes that concern one group wake it once.
            groups.extend(found.drain(..).filter(|group| group.mark(first, change.revision, floor)));
        }
        MarkedGroups { registry, wake_queue: self.wake_queue.clone(), groups }
    }

    /// Returns all groups, for an event that is no change of an object.
    pub(super) fn everyone(&self) -> MarkedGroups<'_> {
        let registry = self.registry.lock();
        let groups = registry.groups().cloned().collect();
        MarkedGroups { registry, wake_queue: self.wake_queue.clone(), groups }
    }
}

impl MarkedGroups<'_> {
    /// Wakes the groups, after the state was published.
    pub(super) fn wake(self) {
        drop(self.registry);
        self.wake_queue.wake(self.groups);
    }
}

impl Registration {
    /// The watcher's wake-up flag.
    pub(super) fn wake_flag(&self) -> &WakeFlag {
        &self.membership.wake_flag
    }

    /// Returns the first change above `read` that may concern the watcher, which has read everything up to there.
    pub(super) fn first_after(&self, read: Revision) -> Option<Revision> {
        self.membership.group.first_after(read)
    }
}

impl Registry {
    /// Appends the groups that a change may concern; one whose value cannot be decoded may concern every watcher.
    fn find(&self, change: &CachedChange, found: &mut Vec<Arc<WatcherGroup>>) {
        if change.damage.is_some() {
            return found.extend(self.groups().cloned());
        }
        found.extend(self.objects.get(&change.key).cloned());
        self.everything.find(change, found);
        let namespace = change.key.split_once('/').and_then(|(name, _)| self.namespaces.get(name));
        namespace.into_iter().for_each(|bucket| bucket.find(change, found));
    }

    fn groups(&self) -> impl Iterator<Item = &Arc<WatcherGroup>> {
        let buckets = self.namespaces.values().chain([&self.everything]);
        self.objects.values().chain(buckets.flat_map(Bucket::groups))
    }

    fn leave(&mut self, registry_key: &RegistryKey, membership: &Membership) {
        match registry_key {
            RegistryKey::Object(key) => {
                if membership.leave() {
                    self.objects.remove(key);
                }
            }
            RegistryKey::Namespace(namespace, bucket_key) => {
                let Some(bucket) = self.namespaces.get_mut(namespace) else { return };
                bucket.leave(bucket_key, membership);
                if bucket.is_empty() {
                    self.namespaces.remove(namespace);
                }
            }
            RegistryKey::Everything(bucket_key) => self.everything.leave(bucket_key, membership),
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.watcher_index.registry.lock().leave(&self.registry_key, &self.membership);
    }
}

#[cfg(test)]
#[path = "watcher_index_tests.rs"]
mod tests;
