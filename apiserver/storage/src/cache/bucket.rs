//! The watchers of one namespace, or of all objects, indexed by the field value that their selection requires.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use drydock_machinery::Object;
use drydock_machinery::field_mask::FieldMask;
use serde_json::Value;

use super::ring::CachedChange;
use super::watcher_group::{Membership, WatcherGroup};
use crate::storage::RequiredField;

/// Maximum number of label keys that are indexed. Clients choose labels: the watchers of further keys are woken by
/// every change in the bucket. The selectable fields of a kind are few and are always indexed.
const LABELS: usize = 16;
/// The path of the labels in an object.
const LABELS_PATH: [&str; 2] = ["metadata", "labels"];

/// Watchers of the same namespace, or of all objects.
#[derive(Default)]
pub(super) struct Bucket {
    /// Watchers that every change may concern.
    any: Arc<WatcherGroup>,
    /// The other watchers, by the field and the value that they require.
    fields: HashMap<FieldPath, HashMap<String, Arc<WatcherGroup>>>,
    /// All indexed fields: each object is read once for all of them.
    field_mask: FieldMask,
}

/// The field names from the root of the object to a field.
type FieldPath = Arc<[String]>;
/// The indexed fields of an object, after a change and before it.
type States = [Option<Arc<Object>>; 2];

/// The key under which a watcher is registered in a bucket.
pub(super) enum BucketKey {
    Any,
    Field(RequiredField),
}

impl Bucket {
    /// Adds a watcher, with the field value that its selection requires, if any.
    pub(super) fn join(&mut self, required: Option<RequiredField>) -> (BucketKey, Membership) {
        let Some(required) = required.filter(|required| self.has_room(&required.path)) else {
            return (BucketKey::Any, self.any.join());
        };
        if !self.fields.contains_key(&required.path) {
            self.field_mask.include(required.path.iter().map(String::as_str));
        }
        let groups = self.fields.entry(required.path.clone()).or_default();
        let membership = groups.entry(required.value.clone()).or_default().join();
        (BucketKey::Field(required), membership)
    }

    /// Removes a watcher.
    pub(super) fn leave(&mut self, bucket_key: &BucketKey, membership: &Membership) {
        let is_empty = membership.leave();
        let BucketKey::Field(required) = bucket_key else { return };
        let Some(groups) = self.fields.get_mut(&required.path).filter(|_| is_empty) else { return };
        groups.remove(&required.value);
        if groups.is_empty() {
            self.fields.remove(&required.path);
            self.field_mask = FieldMask::default();
            for path in self.fields.keys() {
                self.field_mask.include(path.iter().map(String::as_str));
            }
        }
    }

    /// Whether the bucket has no watchers.
    pub(super) fn is_empty(&self) -> bool {
        self.any.is_empty() && self.fields.is_empty()
    }

    /// Returns all groups that have watchers.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Arc<WatcherGroup>> {
        let any = Some(&self.any).filter(|group| !group.is_empty());
        any.into_iter().chain(self.fields.values().flat_map(HashMap::values))
    }

    /// Appends the groups that a change may concern; its key must belong to the bucket.
    pub(super) fn find(&self, change: &CachedChange, found: &mut Vec<Arc<WatcherGroup>>) {
        if !self.any.is_empty() {
            found.push(self.any.clone());
        }
        if self.fields.is_empty() {
            return;
        }
        let states: States = [&change.current, &change.previous]
            .map(|state| state.as_ref().map(|stored| stored.with_fields(&self.field_mask)));
        for (path, groups) in &self.fields {
            for value in values(path, &states).iter().flatten() {
                found.extend(groups.get(value.as_ref()).cloned());
            }
        }
    }

    fn has_room(&self, path: &FieldPath) -> bool {
        let labels = self.fields.keys().filter(|path| is_label(path)).count();
        !is_label(path) || labels < LABELS || self.fields.contains_key(path)
    }
}

fn is_label(path: &[String]) -> bool {
    path.iter().take(LABELS_PATH.len()).eq(LABELS_PATH)
}

/// Returns the values of a field after and before a change; only one if they are equal.
fn values<'s>(path: &[String], states: &'s States) -> [Option<Cow<'s, str>>; 2] {
    let [now, before] = states.each_ref().map(|state| Some(text(state.as_ref()?, path)));
    [now, before.filter(|before| now != Some(before))].map(|value| value.map(Cow::from))
}

/// Returns the text of a field; "" if it is absent, as in field selectors.
fn text<'o>(object: &'o Object, path: &[String]) -> &'o str {
    let found = path.split_first().and_then(|(first, rest)| {
        rest.iter().try_fold(object.0.get(first)?, |value, name| value.get(name)).and_then(Value::as_str)
    });
    found.unwrap_or_default()
}
