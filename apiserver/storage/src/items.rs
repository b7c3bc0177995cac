//! The objects of a page.

use std::sync::Arc;

use crate::cache::KeyRange;
use crate::pinned::{Age, Pinned, json_bytes};
use crate::stored::Stored;

/// Objects in key order. A long list is not put together before it is read: whoever sends it begins at once, and holds
/// the snapshot that it is read from.
#[derive(Clone)]
pub struct Items {
    source: Source,
    /// Of the state that they are of; absent where they are shared with nobody.
    age: Option<Age>,
}

#[derive(Clone)]
enum Source {
    /// With the bytes of their JSON.
    Held(Arc<[Arc<Stored>]>, usize),
    Snapshot(KeyRange),
}

impl Items {
    /// Objects of a snapshot.
    pub(crate) fn of_snapshot(range: KeyRange) -> Self {
        Self { source: Source::Snapshot(range), age: None }
    }

    /// They are of a cache's state of this age.
    #[must_use]
    pub(crate) fn aged(self, age: Age) -> Self {
        Self { age: Some(age), ..self }
    }

    /// The objects, one after another.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Arc<Stored>> + Send> {
        match &self.source {
            Source::Held(held, _) => {
                let held = held.clone();
                Box::new((0..held.len()).filter_map(move |index| held.get(index).cloned()))
            }
            Source::Snapshot(range) => Box::new(range.iter()),
        }
    }
}

impl From<Vec<Arc<Stored>>> for Items {
    fn from(items: Vec<Arc<Stored>>) -> Self {
        let bytes = json_bytes(&items);
        Self { source: Source::Held(items.into(), bytes), age: None }
    }
}

impl Pinned for Items {
    fn bytes(&self) -> usize {
        let older = self.age.as_ref().map_or(usize::MAX, Age::bytes);
        match &self.source {
            Source::Held(_, bytes) => older.min(*bytes),
            Source::Snapshot(_) => older,
        }
    }

    /// A list is of one state, and goes on in it.
    fn let_go(&self) {}
}

impl IntoIterator for Items {
    type Item = Arc<Stored>;
    type IntoIter = Box<dyn Iterator<Item = Arc<Stored>> + Send>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
