//! Which watchers a change concerns: the others sleep on.
//!
//! ```text
//!   change ──key──────────> group of the watchers of that object
//!          ──namespace────> bucket of the namespace ┐ the group of all its watchers that require nothing more,
//!          ───────────────> bucket of everything    ┘ and a group for each field and value that one of them requires
//!                             │ each group is marked with the change's revision
//!                             │ the state is published
//!                             └ the groups are woken (`wake_queue`)
//! ```
//!
//! A group is marked before the change can be seen and woken afterwards. The registry is locked from the marking to the
//! publication, so that no group is made in between. So whoever's group is not marked knows that nothing up to the
//! newest state concerned it, and need not have been awake for that. Locks are taken in this order: the registry, then a
//! group or an object. (Kubernetes calls these triggers, storage/cacher: there a kind names its indexed fields, here
//! whatever selectors in use require is indexed.)

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::bucket::{Bucket, Index};
use super::group::{Group, Member};
use super::ring::Change;
use super::wake_flag::WakeFlag;
use super::wake_queue::WakeQueue;
use crate::backend::Revision;
use crate::storage::Scope;

/// The watchers that are woken by some changes only.
#[derive(Default)]
pub(super) struct WatcherIndex {
    registry: Mutex<Registry>,
    wake_queue: Arc<WakeQueue>,
}

#[derive(Default)]
struct Registry {
    /// Watchers of one object, by its key.
    objects: HashMap<String, Arc<Group>>,
    /// Watchers of one namespace. What they require beyond that is indexed for each namespace apart: whoever may watch
    /// a single one cannot use up the places of another.
    namespaces: HashMap<String, Bucket>,
    /// Watchers of everything.
    everything: Bucket,
}

/// Where a watcher is registered.
enum Place {
    Object(String),
    Namespace(String, Index),
    Everything(Index),
}

/// A watcher that is registered until this is dropped.
pub(super) struct Registration {
    watcher_index: Arc<WatcherIndex>,
    place: Place,
    member: Member,
}

/// Whom a state concerns that is about to be shown; nobody registers as long as this is held.
#[must_use]
pub(super) struct Matched<'i> {
    registry: MutexGuard<'i, Registry>,
    wake_queue: Arc<WakeQueue>,
    groups: Vec<Arc<Group>>,
}

impl WatcherIndex {
    /// Registers a watcher by the most selective thing that its scope requires.
    pub(super) fn register(self: &Arc<Self>, scope: &Scope) -> Registration {
        let required = scope.matches.as_ref().and_then(|selection| selection.requires.clone());
        let mut registry = self.registry.lock();
        let (place, member) = match scope.prefix.strip_suffix('/') {
            _ if scope.single => {
                let key = scope.prefix.clone();
                let member = registry.objects.entry(key.clone()).or_default().join();
                (Place::Object(key), member)
            }
            Some(namespace) => {
                let bucket = registry.namespaces.entry(namespace.to_owned()).or_default();
                let (index, member) = bucket.join(required);
                (Place::Namespace(namespace.to_owned(), index), member)
            }
            None => {
                let (index, member) = registry.everything.join(required);
                (Place::Everything(index), member)
            }
        };
        drop(registry);
        Registration { watcher_index: self.clone(), place, member }
    }

    /// Marks whom changes concern that cannot be seen yet. What is at the `floor` of the ring or below it can no longer
    /// be told.
    pub(super) fn mark<'c>(
        &self,
        changes: impl Iterator<Item = &'c Arc<Change>>,
        floor: Revision,
    ) -> Matched<'_> {
        let registry = self.registry.lock();
        let (mut first, mut groups, mut found) = (None, Vec::new(), Vec::new());
        for change in changes {
            let first = *first.get_or_insert(change.revision);
            registry.find(change, &mut found);
            // A group that several of the changes concern is woken once.
            groups.extend(found.drain(..).filter(|group| group.mark(first, change.revision, floor)));
        }
        Matched { registry, wake_queue: self.wake_queue.clone(), groups }
    }

    /// Everyone: something happened that is no change of an object.
    pub(super) fn everyone(&self) -> Matched<'_> {
        let registry = self.registry.lock();
        let groups = registry.groups().cloned().collect();
        Matched { registry, wake_queue: self.wake_queue.clone(), groups }
    }
}

impl Matched<'_> {
    /// Wakes them, now that the state is shown.
    pub(super) fn wake(self) {
        drop(self.registry);
        self.wake_queue.wake(self.groups);
    }
}

impl Registration {
    /// Its alarm.
    pub(super) fn wake_flag(&self) -> &WakeFlag {
        &self.member.wake_flag
    }

    /// The first change above a revision that may concern the watcher, which has read everything up to there.
    pub(super) fn first_after(&self, read: Revision) -> Option<Revision> {
        self.member.group.first_after(read)
    }
}

impl Registry {
    /// Adds the groups that a change concerns. One that cannot be read may concern anyone.
    fn find(&self, change: &Change, found: &mut Vec<Arc<Group>>) {
        if change.damage.is_some() {
            return found.extend(self.groups().cloned());
        }
        found.extend(self.objects.get(&change.key).cloned());
        self.everything.find(change, found);
        let namespace = change.key.split_once('/').and_then(|(name, _)| self.namespaces.get(name));
        namespace.into_iter().for_each(|bucket| bucket.find(change, found));
    }

    fn groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        let buckets = self.namespaces.values().chain([&self.everything]);
        self.objects.values().chain(buckets.flat_map(Bucket::groups))
    }

    fn leave(&mut self, place: &Place, member: &Member) {
        match place {
            Place::Object(key) => {
                if member.leave() {
                    self.objects.remove(key);
                }
            }
            Place::Namespace(namespace, index) => {
                let Some(bucket) = self.namespaces.get_mut(namespace) else { return };
                bucket.leave(index, member);
                if bucket.is_empty() {
                    self.namespaces.remove(namespace);
                }
            }
            Place::Everything(index) => self.everything.leave(index, member),
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.watcher_index.registry.lock().leave(&self.place, &self.member);
    }
}

#[cfg(test)]
#[path = "watcher_index_tests.rs"]
mod tests;
