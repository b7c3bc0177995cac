//! Which keys and objects a [`Scope`] selects, and how a change looks to a watcher of it.

use std::ops::Range;
use std::sync::Arc;

use drydock_machinery::Object;
use drydock_machinery::field_mask::FieldMask;

use crate::backend::prefix_range;
use crate::storage::{Scope, Selection, Stored, WatchEvent};

impl Scope {
    /// All objects of the resource.
    pub fn all() -> Self {
        Self { prefix: String::new(), single: false, matches: None }
    }

    /// The objects of one namespace.
    pub fn namespace(namespace: &str) -> Self {
        Self { prefix: format!("{namespace}/"), single: false, matches: None }
    }

    /// The one object with this key.
    pub fn object(key: &str) -> Self {
        Self { prefix: key.to_owned(), single: true, matches: None }
    }

    /// Narrows the scope to the objects that `accepts` returns `true` for; it reads the fields at the dotted `paths`.
    pub fn matching(
        mut self,
        paths: &[&str],
        accepts: impl Fn(&Object) -> bool + Send + Sync + 'static,
    ) -> Self {
        let reads = Arc::new(FieldMask::of(paths.iter().copied()));
        self.matches = Some(Selection { reads, requires: None, bytes: 0, accepts: Arc::new(accepts) });
        self
    }

    /// Whether an object with this key (relative to the resource) may be in the scope.
    pub fn contains(&self, key: &str) -> bool {
        if self.single { key == self.prefix } else { key.starts_with(&self.prefix) }
    }

    /// Whether the label and field selection includes the object.
    pub fn selects(&self, stored: &Stored) -> bool {
        let selected = |selection: &Selection| (selection.accepts)(&stored.with_fields(&selection.reads));
        self.matches.as_ref().is_none_or(selected)
    }

    /// Returns the range of the scope's keys, each prefixed with `base`.
    pub(crate) fn keys(&self, base: &str) -> Range<String> {
        let start = format!("{base}{}", self.prefix);
        if self.single { start.clone()..next_key(&start) } else { prefix_range(&start) }
    }
}

/// The smallest key above `key`.
pub(crate) fn next_key(key: &str) -> String {
    format!("{key}\0")
}

/// Returns the event that a change to a key in the scope causes; `None` if the object is outside the selection before
/// and after.
///
/// A change that leaves the selection is a deletion, one that enters it an addition (Kubernetes: etcd3 watcher.go,
/// `transform`). `last_in_selection` makes the last state in the selection, with the change's revision.
pub(crate) fn transition(
    scope: &Scope,
    current: Option<&Arc<Stored>>,
    previous: Option<&Arc<Stored>>,
    last_in_selection: impl FnOnce(&Arc<Stored>) -> Arc<Stored>,
) -> Option<WatchEvent> {
    let current = current.filter(|stored| scope.selects(stored));
    let previous = previous.filter(|stored| scope.selects(stored));
    match (current, previous) {
        (Some(now), Some(_)) => Some(WatchEvent::Modified(now.clone())),
        (Some(now), None) => Some(WatchEvent::Added(now.clone())),
        (None, Some(before)) => Some(WatchEvent::Deleted(last_in_selection(before))),
        (None, None) => None,
    }
}
