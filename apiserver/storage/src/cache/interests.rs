//! Which watchers a change concerns: the others sleep on.
//!
//! ```text
//!   change ──key, namespace, fields in use──> sleepers: marked with its revision
//!                                                │ the state is published
//!                                                └ woken
//! ```
//!
//! A sleeper is marked before the change can be seen and woken afterwards, and the registry is locked from the one to
//! the publication, so that nobody registers in between. So whoever is not marked knows that nothing up to the newest
//! state concerned it, and need not have been awake for that. Lock order: the registry, then a sleeper's mark or an
//! object. (Kubernetes has triggers for that, storage/cacher: there a kind names its indexed fields, here whatever
//! selectors in use require is indexed.)

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use drydock_machinery::Object;
use drydock_machinery::excerpt::Excerpt;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::ring::Change;
use super::sleeper::Sleeper;
use crate::storage::Scope;

/// Most fields that are looked up of each change. Clients choose them: the watchers of more are woken by everything.
const FIELDS: usize = 16;

/// The watchers that are woken by some changes only.
#[derive(Default)]
pub(super) struct Interests {
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    sleepers: HashMap<Index, ByValue>,
    /// All fields that are looked up: each object is read once for all of them.
    fields: Excerpt,
}

type ByValue = HashMap<String, Vec<Arc<Sleeper>>>;
/// What is known of an object as it became and as it was.
type States = [Option<Arc<Object>>; 2];

/// What of a change is looked up.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Index {
    /// Its key.
    Key,
    /// Its key up to the name.
    Namespace,
    /// The text at a path of the object, as it became and as it was.
    Field(Arc<[String]>),
    /// Nothing: any change concerns who is registered by it.
    Everything,
}

/// A watcher that is registered until this is dropped.
pub(super) struct Registered {
    interests: Arc<Interests>,
    index: Index,
    value: String,
    /// Its alarm.
    pub(super) sleeper: Arc<Sleeper>,
}

/// Whom a state concerns that is about to be shown; nobody registers as long as this is held.
#[must_use]
pub(super) struct Concerned<'i> {
    registry: MutexGuard<'i, Registry>,
    sleepers: Vec<Arc<Sleeper>>,
}

impl Interests {
    /// Registers a watcher by the most selective thing that its scope requires.
    pub(super) fn register(self: &Arc<Self>, scope: &Scope) -> Registered {
        let (mut index, mut value) = required(scope);
        let sleeper = Arc::<Sleeper>::default();
        let mut registry = self.registry.lock();
        if !registry.has_room(&index) {
            (index, value) = (Index::Everything, String::new());
        }
        registry.add(&index, &value, sleeper.clone());
        drop(registry);
        Registered { interests: self.clone(), index, value, sleeper }
    }

    /// Marks whom changes concern that cannot be seen yet.
    pub(super) fn mark<'c>(&self, changes: impl Iterator<Item = &'c Arc<Change>>) -> Concerned<'_> {
        let registry = self.registry.lock();
        let mut sleepers = Vec::new();
        if registry.sleepers.is_empty() {
            return Concerned { registry, sleepers };
        }
        let (mut first, mut found) = (None, Vec::new());
        for change in changes {
            let first = *first.get_or_insert(change.revision);
            registry.find(change, &mut found);
            // Whom several of the changes concern is woken once.
            sleepers.extend(found.drain(..).filter(|sleeper| !sleeper.mark(first, change.revision)));
        }
        Concerned { registry, sleepers }
    }

    /// Everyone: something happened that is no change of an object.
    pub(super) fn everyone(&self) -> Concerned<'_> {
        let registry = self.registry.lock();
        let sleepers = registry.sleepers.values().flat_map(HashMap::values).flatten().cloned().collect();
        Concerned { registry, sleepers }
    }
}

impl Concerned<'_> {
    /// Wakes them, now that the state is shown.
    pub(super) fn wake(self) {
        drop(self.registry);
        self.sleepers.iter().for_each(|sleeper| sleeper.wake());
    }
}

impl Registry {
    fn has_room(&self, index: &Index) -> bool {
        let fields = self.sleepers.keys().filter(|index| matches!(index, Index::Field(_))).count();
        !matches!(index, Index::Field(_)) || fields < FIELDS || self.sleepers.contains_key(index)
    }

    fn add(&mut self, index: &Index, value: &str, sleeper: Arc<Sleeper>) {
        if let Index::Field(path) = index
            && !self.sleepers.contains_key(index)
        {
            self.fields.include(path.iter().map(String::as_str));
        }
        self.sleepers.entry(index.clone()).or_default().entry(value.to_owned()).or_default().push(sleeper);
    }

    fn remove(&mut self, index: &Index, value: &str, gone: &Arc<Sleeper>) {
        let Some(by_value) = self.sleepers.get_mut(index) else { return };
        if let Some(sleepers) = by_value.get_mut(value) {
            sleepers.retain(|sleeper| !Arc::ptr_eq(sleeper, gone));
            if sleepers.is_empty() {
                by_value.remove(value);
            }
        }
        if by_value.is_empty() {
            self.sleepers.remove(index);
            self.fields = Excerpt::default();
            for index in self.sleepers.keys() {
                if let Index::Field(path) = index {
                    self.fields.include(path.iter().map(String::as_str));
                }
            }
        }
    }

    /// Adds those whom a change concerns. One that cannot be read may concern anyone.
    fn find(&self, change: &Change, found: &mut Vec<Arc<Sleeper>>) {
        if change.damage.is_some() {
            return found.extend(self.sleepers.values().flat_map(HashMap::values).flatten().cloned());
        }
        let states = self.states(change);
        for (index, by_value) in &self.sleepers {
            for value in index.values(change, &states).iter().flatten() {
                found.extend(by_value.get(value.as_ref()).into_iter().flatten().cloned());
            }
        }
    }

    /// The fields that are looked up.
    fn states(&self, change: &Change) -> States {
        let read = self.fields != Excerpt::default();
        [&change.current, &change.previous]
            .map(|state| state.as_ref().filter(|_| read).map(|stored| stored.excerpt(&self.fields)))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.interests.registry.lock().remove(&self.index, &self.value, &self.sleeper);
    }
}

impl Index {
    /// What is looked up of a change: at most two values.
    fn values<'c>(&self, change: &'c Change, states: &'c States) -> [Option<Cow<'c, str>>; 2] {
        match self {
            Self::Everything => [Some("".into()), None],
            Self::Key => [Some(change.key.as_str().into()), None],
            Self::Namespace => [change.key.split_once('/').map(|(namespace, _)| namespace.into()), None],
            Self::Field(path) => {
                let [now, before] = states.each_ref().map(|state| Some(text(state.as_ref()?, path)));
                [now, before.filter(|before| now != Some(before))].map(|value| value.map(Cow::from))
            }
        }
    }
}

/// What every change that concerns a scope has.
fn required(scope: &Scope) -> (Index, String) {
    if scope.single {
        return (Index::Key, scope.prefix.clone());
    }
    if let Some(term) = scope.matches.as_ref().and_then(|selection| selection.requires.as_ref()) {
        return (Index::Field(term.path.clone()), term.value.clone());
    }
    match scope.prefix.strip_suffix('/') {
        Some(namespace) => (Index::Namespace, namespace.to_owned()),
        None => (Index::Everything, String::new()),
    }
}

/// The text at a path of an object: empty where there is none, as field selectors have it.
fn text<'o>(object: &'o Object, path: &[String]) -> &'o str {
    let found = path.split_first().and_then(|(first, rest)| {
        rest.iter().try_fold(object.0.get(first)?, |value, name| value.get(name)).and_then(Value::as_str)
    });
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Term;

    fn of_label(key: &str) -> Scope {
        let mut scope = Scope::all().matching(&["metadata.labels"], |_| true);
        let path = ["metadata", "labels", key].map(str::to_owned).into();
        let term = Term { path, value: "v".to_owned() };
        scope.matches.iter_mut().for_each(|selection| selection.requires = Some(term.clone()));
        scope
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let interests = Arc::<Interests>::default();
        let watchers = [interests.register(&Scope::object("a/1")), interests.register(&of_label("x.y/z"))];
        assert_eq!(interests.everyone().sleepers.len(), 2);
        drop(watchers);
        let registry = interests.registry.lock();
        assert!(registry.sleepers.is_empty() && registry.fields == Excerpt::default());
    }

    #[test]
    fn clients_cannot_have_any_number_of_fields_looked_up() {
        let interests = Arc::<Interests>::default();
        let registered: Vec<_> =
            (0..100).map(|key| interests.register(&of_label(&key.to_string()))).collect();
        let looked_up = |registered: &&Registered| matches!(registered.index, Index::Field(_));
        assert_eq!(registered.iter().filter(looked_up).count(), FIELDS);
        assert!(looked_up(&&interests.register(&of_label("3"))), "the label 3 is looked up already");
        assert_eq!(interests.everyone().sleepers.len(), 100, "everything wakes the others");
    }

    #[test]
    fn a_scope_of_everything_has_no_index() {
        assert!(required(&Scope::all()).0 == Index::Everything);
        assert!(required(&Scope::namespace("a")) == (Index::Namespace, "a".to_owned()));
    }
}
