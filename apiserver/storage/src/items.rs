//! The objects of a page.

use std::sync::Arc;

use crate::cache::Stretch;
use crate::pinned::{Age, Pinned};
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
    Held(Arc<[Arc<Stored>]>),
    Snapshot(Stretch),
}

impl Items {
    /// Objects of a snapshot.
    pub(crate) fn of_snapshot(stretch: Stretch) -> Self {
        Self { source: Source::Snapshot(stretch), age: None }
    }

    /// They are of a cache's state of this age.
    #[must_use]
    pub(crate) fn aged(self, age: Age) -> Self {
        Self { age: Some(age), ..self }
    }

    /// The objects, one after another.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Arc<Stored>> + Send> {
        match &self.source {
            Source::Held(held) => {
                let held = held.clone();
                Box::new((0..held.len()).filter_map(move |index| held.get(index).cloned()))
            }
            Source::Snapshot(stretch) => Box::new(stretch.iter()),
        }
    }
}

impl From<Vec<Arc<Stored>>> for Items {
    fn from(items: Vec<Arc<Stored>>) -> Self {
        Self { source: Source::Held(items.into()), age: None }
    }
}

impl Pinned for Items {
    fn bytes(&self) -> usize {
        let older = self.age.as_ref().map_or(usize::MAX, Age::bytes);
        match &self.source {
            Source::Held(_) if older == 0 => 0,
            Source::Held(held) => older.min(held.iter().map(|stored| stored.json_len()).sum()),
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
