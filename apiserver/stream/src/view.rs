//! A filter's entities: one log for all subscribers whose filter is equal.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::filter::Filter;
use crate::index::Change;
use crate::log::Log;

/// The entities that one filter selects. The hub writes it, its subscribers read it.
pub struct View {
    /// What it selects.
    pub filter: Filter,
    log: RwLock<Log>,
    has_ended: watch::Sender<bool>,
    users: Mutex<Users>,
}

/// Who reads a view.
struct Users {
    subscribers: HashMap<Arc<str>, usize>,
    idle_since: Instant,
}

impl View {
    /// A view that has these entities.
    pub fn new(filter: Filter, log: Log) -> Self {
        let users = Users { subscribers: HashMap::new(), idle_since: Instant::now() };
        Self { filter, log: RwLock::new(log), has_ended: watch::Sender::new(false), users: Mutex::new(users) }
    }

    /// Takes in a change; returns whether subscribers have something new to read. It does not wake them.
    pub fn apply(&self, change: &Change) -> bool {
        let mut log = self.log.write();
        if change.is_selected_by(&self.filter) {
            log.put(change.entry.clone());
            return true;
        }
        let leaves = log.is_live(&change.entry.key);
        if leaves {
            log.put(change.removal().clone());
        }
        leaves
    }

    /// Wakes its subscribers.
    pub fn wake(&self) {
        self.has_ended.send_modify(|_| {});
    }

    /// Ends the view: its hub has ended, or it made room for another. Subscribers attach again.
    pub fn end(&self) {
        self.has_ended.send_replace(true);
    }

    /// Reads the log, which nobody writes meanwhile. Not across an await.
    pub fn read<T>(&self, read: impl FnOnce(&Log) -> T) -> T {
        read(&self.log.read())
    }

    /// Writes the log: for the hub alone.
    pub fn write<T>(&self, write: impl FnOnce(&mut Log) -> T) -> T {
        write(&mut self.log.write())
    }

    /// Since when nobody reads it; none while somebody does.
    pub fn idle_since(&self) -> Option<Instant> {
        let users = self.users.lock();
        users.subscribers.is_empty().then_some(users.idle_since)
    }

    /// Who reads it.
    pub fn users(&self) -> Vec<Arc<str>> {
        self.users.lock().subscribers.keys().cloned().collect()
    }

    /// Whether a user reads it.
    pub fn is_read_by(&self, user: &str) -> bool {
        self.users.lock().subscribers.contains_key(user)
    }
}

/// A user's place among the subscribers of a view. Dropped, it is given back.
pub struct Subscription {
    view: Arc<View>,
    user: Arc<str>,
    changed: watch::Receiver<bool>,
}

impl Subscription {
    /// Subscribes a user.
    pub fn new(view: Arc<View>, user: Arc<str>) -> Self {
        *view.users.lock().subscribers.entry(user.clone()).or_default() += 1;
        let changed = view.has_ended.subscribe();
        Self { view, user, changed }
    }

    /// The view.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Whether the view has ended. Later changes of the view wake [`Self::changed`].
    pub fn has_ended(&mut self) -> bool {
        *self.changed.borrow_and_update()
    }

    /// Waits until the view has changed since [`Self::has_ended`] was asked. Cancel safe.
    pub async fn changed(&mut self) {
        // The sender is in the view, which this keeps.
        let _ = self.changed.changed().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut users = self.view.users.lock();
        if let Some(count) = users.subscribers.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                users.subscribers.remove(&self.user);
                users.idle_since = Instant::now();
            }
        }
    }
}
