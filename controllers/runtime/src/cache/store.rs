//! A store: objects by key, with indexes by UID and node, and handlers that are called with every change.
//!
//! Locks: `handlers` is taken before `objects`, and handlers run without `objects` held, so a handler may read any
//! store. A handler must not block, and must not subscribe.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::cacheable::{Cacheable, ObjectKey};
use super::key_index::KeyIndex;
use super::uid_index::UidIndex;

/// A change of an object: `old` is absent when it is new, `new` when it is gone.
#[derive(Debug)]
pub struct ObjectChange<T> {
    /// The object before.
    pub old: Option<Arc<T>>,
    /// The object after.
    pub new: Option<Arc<T>>,
    /// Whether the watch said that this object was deleted. An object that a new list merely lacks may have been
    /// deleted too, but nobody has said so.
    pub is_deleted: bool,
}

impl<T> ObjectChange<T> {
    /// A change of which no DELETED event is known.
    pub fn between(old: Option<Arc<T>>, new: Option<Arc<T>>) -> Self {
        Self { old, new, is_deleted: false }
    }
    /// The object after, or before if it is gone.
    pub fn latest(&self) -> Option<&Arc<T>> {
        self.new.as_ref().or(self.old.as_ref())
    }
    /// The object before and the object after, as far as they exist.
    pub fn both(&self) -> impl Iterator<Item = &Arc<T>> {
        self.old.iter().chain(self.new.iter())
    }
}

type ChangeHandler<T> = Box<dyn Fn(&ObjectChange<T>) + Send + Sync>;

/// Objects of one kind. Clones share the same objects.
pub struct Store<T: Cacheable> {
    shared: Arc<Shared<T>>,
}

struct Shared<T: Cacheable> {
    handlers: RwLock<Vec<ChangeHandler<T>>>,
    objects: RwLock<IndexedObjects<T>>,
    synced: watch::Sender<bool>,
}

struct IndexedObjects<T: Cacheable> {
    by_key: KeyIndex<T>,
    by_uid: UidIndex<T>,
    by_node: HashMap<Box<str>, KeyIndex<T>>,
}

impl<T: Cacheable> Clone for Store<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T: Cacheable> Default for Store<T> {
    fn default() -> Self {
        let objects = IndexedObjects {
            by_key: KeyIndex::default(),
            by_uid: UidIndex::default(),
            by_node: HashMap::new(),
        };
        Self {
            shared: Arc::new(Shared {
                handlers: RwLock::default(),
                objects: RwLock::new(objects),
                synced: watch::Sender::new(false),
            }),
        }
    }
}

impl<T: Cacheable> Store<T> {
    /// The object with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.find(&key.namespace, &key.name)
    }
    /// The object with this namespace (empty if cluster-scoped) and name.
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.shared.objects.read().by_key.get(namespace, name).cloned()
    }
    /// The object with this UID.
    pub fn by_uid(&self, uid: &str) -> Option<Arc<T>> {
        self.shared.objects.read().by_uid.get(uid).cloned()
    }
    /// The objects on a node, ordered by key.
    pub fn on_node(&self, node: &str) -> Vec<Arc<T>> {
        let objects = self.shared.objects.read();
        objects.by_node.get(node).into_iter().flat_map(KeyIndex::iter).cloned().collect()
    }
    /// All objects, ordered by key.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.shared.objects.read().by_key.iter().cloned().collect()
    }
    /// The objects of a namespace, ordered by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        self.shared.objects.read().by_key.in_namespace(namespace).cloned().collect()
    }
    /// Number of objects.
    pub fn len(&self) -> usize {
        self.shared.objects.read().by_key.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shared.objects.read().by_key.is_empty()
    }

    /// Calls `handler` with every object that is there, and from then on with every change, in their order.
    pub fn subscribe(&self, handler: impl Fn(&ObjectChange<T>) + Send + Sync + 'static) {
        let mut handlers = self.shared.handlers.write();
        for object in self.all() {
            handler(&ObjectChange::between(None, Some(object)));
        }
        handlers.push(Box::new(handler));
    }

    /// Whether the first complete list has been read.
    pub fn is_synced(&self) -> bool {
        *self.shared.synced.borrow()
    }
    /// Waits until the first complete list has been read.
    pub async fn wait_until_synced(&self) {
        let mut synced = self.shared.synced.subscribe();
        // The sender lives in `self.shared`, so it cannot be gone.
        let _ = synced.wait_for(|done| *done).await;
    }

    /// Takes in a new or changed object. For the reflector, and for tests.
    pub fn apply(&self, object: T) {
        let handlers = self.shared.handlers.read();
        let new = Arc::new(object);
        let old = self.shared.objects.write().insert(new.clone());
        let change = ObjectChange::between(old, Some(new));
        let same = change.old.as_ref().is_some_and(|old| is_same_version(old.as_ref(), &change));
        if !same {
            handlers.iter().for_each(|handler| handler(&change));
        }
    }

    /// Puts an object in the place of `old`, if the store still has that: the two differ in what other stores say of it. The
    /// handlers hear of it, although the version is the same.
    pub(super) fn exchange(&self, old: &Arc<T>, new: T) {
        let handlers = self.shared.handlers.read();
        let new = Arc::new(new);
        let is_exchanged = self.shared.objects.write().exchange(old, &new);
        if is_exchanged {
            let change = ObjectChange::between(Some(old.clone()), Some(new));
            handlers.iter().for_each(|handler| handler(&change));
        }
    }

    /// Takes out an object that a DELETED event names. For the reflector, and for tests.
    pub fn delete(&self, key: &ObjectKey) {
        self.take_out(key, true);
    }

    fn take_out(&self, key: &ObjectKey, is_deleted: bool) {
        let handlers = self.shared.handlers.read();
        let old = self.shared.objects.write().remove(key);
        if old.is_some() {
            let change = ObjectChange { old, new: None, is_deleted };
            handlers.iter().for_each(|handler| handler(&change));
        }
    }

    /// Ends a list: what it did not contain is gone. For the reflector, and for tests.
    pub fn finish_list(&self, listed: &HashSet<ObjectKey>) {
        let keys = self.all().into_iter().map(|object| object.key());
        keys.filter(|key| !listed.contains(key)).for_each(|key| self.take_out(&key, false));
        self.shared.synced.send_replace(true);
    }
}

fn is_same_version<T: Cacheable>(old: &T, change: &ObjectChange<T>) -> bool {
    !old.resource_version().is_empty()
        && change
            .new
            .as_ref()
            .is_some_and(|new| new.resource_version() == old.resource_version() && new.uid() == old.uid())
}

impl<T: Cacheable> IndexedObjects<T> {
    fn insert(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        let old = self.by_key.insert(object.clone());
        if let Some(old) = &old {
            self.unindex(old);
        }
        if !object.uid().is_empty() {
            self.by_uid.insert(object.clone());
        }
        if let Some(node) = object.node() {
            self.by_node.entry(node.into()).or_default().insert(object.clone());
        }
        old
    }

    fn exchange(&mut self, old: &Arc<T>, new: &Arc<T>) -> bool {
        let held = self.by_key.get(old.namespace(), old.name());
        let is_held = held.is_some_and(|held| Arc::ptr_eq(held, old));
        if is_held {
            self.insert(new.clone());
        }
        is_held
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Arc<T>> {
        let old = self.by_key.remove(&key.namespace, &key.name)?;
        self.unindex(&old);
        Some(old)
    }

    /// Takes an object out of all indexes but `by_key`.
    fn unindex(&mut self, object: &T) {
        self.by_uid.remove(object.uid());
        let Some(node) = object.node() else { return };
        if let Some(objects) = self.by_node.get_mut(node) {
            objects.remove(object.namespace(), object.name());
            if objects.is_empty() {
                self.by_node.remove(node);
            }
        }
    }
}
