//! The watchers of one namespace, or of everything, by what else they require of a change.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use drydock_machinery::Object;
use drydock_machinery::excerpt::Excerpt;
use serde_json::Value;

use super::group::{Group, Member};
use super::ring::Change;
use crate::storage::Term;

/// Most labels that are looked up of each change. Clients choose them: the watchers of more are woken by every change in
/// the bucket. The fields that a kind lets select are few, and do not count.
const LABELS: usize = 16;
/// Where the labels of an object are.
const LABELS_PATH: [&str; 2] = ["metadata", "labels"];

/// Watchers of the same keys.
#[derive(Default)]
pub(super) struct Bucket {
    /// Those whom every change concerns.
    any: Arc<Group>,
    /// The others, by the field and the text in it that they require.
    fields: HashMap<Path, HashMap<String, Arc<Group>>>,
    /// All these fields: each object is read once for all of them.
    excerpt: Excerpt,
}

/// The names that lead to a field.
type Path = Arc<[String]>;
/// What is known of an object as it became and as it was.
type States = [Option<Arc<Object>>; 2];

/// Where in a bucket a watcher is.
pub(super) enum Index {
    Any,
    Field(Term),
}

impl Bucket {
    /// Takes in a watcher, who requires a term perhaps.
    pub(super) fn join(&mut self, required: Option<Term>) -> (Index, Member) {
        let Some(term) = required.filter(|term| self.has_room(&term.path)) else {
            return (Index::Any, self.any.join());
        };
        if !self.fields.contains_key(&term.path) {
            self.excerpt.include(term.path.iter().map(String::as_str));
        }
        let groups = self.fields.entry(term.path.clone()).or_default();
        let member = groups.entry(term.value.clone()).or_default().join();
        (Index::Field(term), member)
    }

    /// A watcher is gone.
    pub(super) fn leave(&mut self, index: &Index, member: &Member) {
        let is_empty = member.leave();
        let Index::Field(term) = index else { return };
        let Some(groups) = self.fields.get_mut(&term.path).filter(|_| is_empty) else { return };
        groups.remove(&term.value);
        if groups.is_empty() {
            self.fields.remove(&term.path);
            self.excerpt = Excerpt::default();
            for path in self.fields.keys() {
                self.excerpt.include(path.iter().map(String::as_str));
            }
        }
    }

    /// Whether it has no watcher.
    pub(super) fn is_empty(&self) -> bool {
        self.any.is_empty() && self.fields.is_empty()
    }

    /// All groups with watchers.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        let any = Some(&self.any).filter(|group| !group.is_empty());
        any.into_iter().chain(self.fields.values().flat_map(HashMap::values))
    }

    /// Adds the groups that a change to one of the keys concerns.
    pub(super) fn find(&self, change: &Change, found: &mut Vec<Arc<Group>>) {
        if !self.any.is_empty() {
            found.push(self.any.clone());
        }
        if self.fields.is_empty() {
            return;
        }
        let states: States = [&change.current, &change.previous]
            .map(|state| state.as_ref().map(|stored| stored.excerpt(&self.excerpt)));
        for (path, groups) in &self.fields {
            for value in values(path, &states).iter().flatten() {
                found.extend(groups.get(value.as_ref()).cloned());
            }
        }
    }

    fn has_room(&self, path: &Path) -> bool {
        let labels = self.fields.keys().filter(|path| is_label(path)).count();
        !is_label(path) || labels < LABELS || self.fields.contains_key(path)
    }
}

fn is_label(path: &[String]) -> bool {
    path.iter().take(LABELS_PATH.len()).eq(LABELS_PATH)
}

/// The texts at a path of an object, as it became and as it was.
fn values<'s>(path: &[String], states: &'s States) -> [Option<Cow<'s, str>>; 2] {
    let [now, before] = states.each_ref().map(|state| Some(text(state.as_ref()?, path)));
    [now, before.filter(|before| now != Some(before))].map(|value| value.map(Cow::from))
}

/// The text at a path of an object: empty where there is none, as field selectors have it.
fn text<'o>(object: &'o Object, path: &[String]) -> &'o str {
    let found = path.split_first().and_then(|(first, rest)| {
        rest.iter().try_fold(object.0.get(first)?, |value, name| value.get(name)).and_then(Value::as_str)
    });
    found.unwrap_or_default()
}
