//! The entities of one filter: one log for all subscribers with an equal filter.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::filter::Filter;
use crate::index::Change;
use crate::log::ChangeLog;

/// The entities that one filter selects. The hub writes it, its subscribers read it.
pub struct View {
    /// What it selects.
    pub filter: Filter,
    log: RwLock<ChangeLog>,
    has_ended: watch::Sender<bool>,
    users: Mutex<Users>,
}

/// The subscribers of a view.
struct Users {
    subscribers: HashMap<Arc<str>, usize>,
    idle_since: Instant,
}

impl View {
    /// Creates a view with these entities.
    pub fn new(filter: Filter, log: ChangeLog) -> Self {
        let users = Users { subscribers: HashMap::new(), idle_since: Instant::now() };
        Self { filter, log: RwLock::new(log), has_ended: watch::Sender::new(false), users: Mutex::new(users) }
    }

    /// Applies a change; returns whether subscribers have something new to read. Does not wake them.
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

    /// Ends the view, because its hub has ended or another view needs its room. Its subscribers attach again.
    pub fn end(&self) {
        self.has_ended.send_replace(true);
    }

    /// Calls `read` with the log, which is locked for writers meanwhile.
    pub fn read<T>(&self, read: impl FnOnce(&ChangeLog) -> T) -> T {
        read(&self.log.read())
    }

    /// Calls `write` with the log. Only the hub may call it.
    pub fn write<T>(&self, write: impl FnOnce(&mut ChangeLog) -> T) -> T {
        write(&mut self.log.write())
    }

    /// Returns since when it has had no subscribers; `None` while it has some.
    pub fn idle_since(&self) -> Option<Instant> {
        let users = self.users.lock();
        users.subscribers.is_empty().then_some(users.idle_since)
    }

    /// Returns the users who subscribe to it.
    pub fn users(&self) -> Vec<Arc<str>> {
        self.users.lock().subscribers.keys().cloned().collect()
    }

    /// Whether a user subscribes to it.
    pub fn is_read_by(&self, user: &str) -> bool {
        self.users.lock().subscribers.contains_key(user)
    }
}

/// A user's subscription to a view; dropping it ends it.
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

    /// Waits until the view has changed since [`Self::has_ended`] was called. Cancel safe.
    pub async fn changed(&mut self) {
        // Cannot fail: the sender is in the view, which this subscription keeps.
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
