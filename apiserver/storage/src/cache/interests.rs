//! Which watchers a change concerns: the others sleep on.
//!
//! ```text
//!   change ──key, namespace, fields in use──> sleepers: marked with its revision
//!                                                │ the state is published
//!                                                └ woken
//! ```
//!
//! A sleeper is marked before the change can be seen and woken afterwards. So whoever is not marked knows that
//! nothing up to the newest state concerned it, and need not have been awake for that. Nobody registers in between.
//! (Kubernetes: storage/cacher,
//! triggers; there a kind names its indexed fields, here whatever selectors in use require is indexed.)

use std::collections::HashMap;
use std::sync::Arc;

use drydock_machinery::Object;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::Notify;

use super::state::Change;
use crate::backend::Revision;
use crate::storage::{Scope, Stored};

/// The watchers that are woken by some changes only.
#[derive(Default)]
pub(super) struct Interests {
    registry: Mutex<Registry>,
}

type Registry = HashMap<Index, ByValue>;
type ByValue = HashMap<String, Vec<Arc<Sleeper>>>;

/// What of a change is looked up.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Index {
    /// Its key.
    Key,
    /// Its key up to the name.
    Namespace,
    /// The text at a path of the object, as it became and as it was.
    Field(Arc<[String]>),
}

/// A watcher that is registered until this is dropped.
pub(super) struct Registered {
    interests: Arc<Interests>,
    index: Index,
    value: String,
    sleeper: Arc<Sleeper>,
}

/// One watcher's alarm.
#[derive(Default)]
pub(super) struct Sleeper {
    alarm: Notify,
    marked: Mutex<Option<Marked>>,
}

/// The first and the last change that concern a watcher and that it may not have read.
#[derive(Clone, Copy)]
struct Marked {
    first: Revision,
    last: Revision,
}

/// Whom a state concerns that is about to be shown; nobody registers as long as this is held.
#[must_use]
pub(super) struct Concerned<'i> {
    registry: MutexGuard<'i, Registry>,
    sleepers: Vec<Arc<Sleeper>>,
}

impl Interests {
    /// Registers a watcher by the most selective thing that its scope requires; `None` if any change may concern it.
    pub(super) fn register(self: &Arc<Self>, scope: &Scope) -> Option<Registered> {
        let (index, value) = required(scope)?;
        let sleeper = Arc::<Sleeper>::default();
        let mut registry = self.registry.lock();
        registry.entry(index.clone()).or_default().entry(value.clone()).or_default().push(sleeper.clone());
        drop(registry);
        Some(Registered { interests: self.clone(), index, value, sleeper })
    }

    /// Marks whom changes concern that cannot be seen yet.
    pub(super) fn mark<'c>(&self, changes: impl Iterator<Item = &'c Arc<Change>>) -> Concerned<'_> {
        let registry = self.registry.lock();
        let mut sleepers = Vec::new();
        if registry.is_empty() {
            return Concerned { registry, sleepers };
        }
        for change in changes {
            let known = sleepers.len();
            registry.iter().for_each(|(index, by_value)| find(index, by_value, change, &mut sleepers));
            sleepers[known..].iter().for_each(|sleeper| sleeper.mark(change.revision));
        }
        Concerned { registry, sleepers }
    }

    /// Everyone: something happened that is no change of an object.
    pub(super) fn everyone(&self) -> Concerned<'_> {
        let registry = self.registry.lock();
        let sleepers = registry.values().flat_map(HashMap::values).flatten().cloned().collect();
        Concerned { registry, sleepers }
    }
}

/// Adds those whom a change concerns by one index. A change that cannot be read may concern anyone.
fn find(index: &Index, by_value: &ByValue, change: &Change, found: &mut Vec<Arc<Sleeper>>) {
    if change.damage.is_some() {
        return found.extend(by_value.values().flatten().cloned());
    }
    for value in index.values(change).iter().flatten() {
        found.extend(by_value.get(value.as_ref()).into_iter().flatten().cloned());
    }
}

impl Concerned<'_> {
    /// Wakes them, now that the state is shown.
    pub(super) fn wake(self) {
        drop(self.registry);
        self.sleepers.iter().for_each(|sleeper| sleeper.alarm.notify_one());
    }
}

impl Registered {
    /// Waits until something may concern the watcher. Cancel safe.
    pub(super) async fn woken(&self) {
        self.sleeper.alarm.notified().await;
    }

    /// The first change that concerns the watcher and that it may not have read.
    pub(super) fn first(&self) -> Option<Revision> {
        self.sleeper.marked.lock().map(|marked| marked.first)
    }

    /// The watcher has read everything up to a published revision.
    pub(super) fn read(&self, up_to: Revision) {
        let mut marked = self.sleeper.marked.lock();
        *marked = marked
            .filter(|marked| marked.last > up_to)
            .map(|marked| Marked { first: marked.first.max(Revision(up_to.0 + 1)), ..marked });
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut registry = self.interests.registry.lock();
        let Some(by_value) = registry.get_mut(&self.index) else { return };
        if let Some(sleepers) = by_value.get_mut(&self.value) {
            sleepers.retain(|sleeper| !Arc::ptr_eq(sleeper, &self.sleeper));
            if sleepers.is_empty() {
                by_value.remove(&self.value);
            }
        }
        if by_value.is_empty() {
            registry.remove(&self.index);
        }
    }
}

impl Sleeper {
    fn mark(&self, revision: Revision) {
        let mut marked = self.marked.lock();
        let first = marked.map_or(revision, |marked| marked.first);
        *marked = Some(Marked { first, last: revision });
    }
}

impl Index {
    /// What is looked up of a change: at most two values.
    fn values<'c>(&self, change: &'c Change) -> [Option<std::borrow::Cow<'c, str>>; 2] {
        match self {
            Self::Key => [Some(change.key.as_str().into()), None],
            Self::Namespace => [change.key.split_once('/').map(|(namespace, _)| namespace.into()), None],
            Self::Field(path) => {
                let [now, before] =
                    [&change.current, &change.previous].map(|state| text(state.as_ref(), path));
                let before = before.filter(|before| now.as_ref() != Some(before));
                [now, before].map(|value| value.map(Into::into))
            }
        }
    }
}

/// What every change that concerns a scope has.
fn required(scope: &Scope) -> Option<(Index, String)> {
    if scope.single {
        return Some((Index::Key, scope.prefix.clone()));
    }
    if let Some(term) = scope.matches.as_ref().and_then(|selection| selection.requires.as_ref()) {
        return Some((Index::Field(term.path.clone()), term.value.clone()));
    }
    let namespace = scope.prefix.strip_suffix('/')?;
    Some((Index::Namespace, namespace.to_owned()))
}

/// The text at a path of an object: empty where there is none, as field selectors have it.
fn text(state: Option<&Arc<Stored>>, path: &Arc<[String]>) -> Option<String> {
    let object = state?.object();
    Some(at(&object, path).unwrap_or_default().to_owned())
}

fn at<'o>(object: &'o Object, path: &[String]) -> Option<&'o str> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.0.get(first)?, |value, name| value.get(name)).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered() -> Registered {
        let interests = Arc::<Interests>::default();
        let Some(registered) = interests.register(&Scope::object("a/1")) else { unreachable!("one key") };
        registered
    }

    #[test]
    fn what_was_read_is_no_longer_marked_and_what_came_since_is() {
        let watcher = registered();
        watcher.sleeper.mark(Revision(5));
        watcher.sleeper.mark(Revision(9));
        assert_eq!(watcher.first(), Some(Revision(5)));
        watcher.read(Revision(7));
        assert_eq!(watcher.first(), Some(Revision(8)));
        watcher.read(Revision(9));
        assert_eq!(watcher.first(), None);
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let watcher = registered();
        let interests = watcher.interests.clone();
        assert_eq!(interests.everyone().sleepers.len(), 1);
        drop(watcher);
        assert!(interests.registry.lock().is_empty());
    }

    #[test]
    fn a_scope_of_everything_has_no_index() {
        assert!(required(&Scope::all()).is_none());
        assert!(required(&Scope::namespace("a")).is_some_and(|(_, value)| value == "a"));
    }
}
