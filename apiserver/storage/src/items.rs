//! The objects of a page.

use std::sync::Arc;

use crate::pinned::{Pinned, StateAge, json_bytes};
use crate::stored::Stored;

/// Objects in key order. A long list is not collected before it is read: its reader starts at once, and holds the
/// snapshot that it reads from.
#[derive(Clone)]
pub struct Items {
    source: ItemsSource,
    /// The age of the state that the objects belong to; `None` if they are not shared.
    age: Option<StateAge>,
}

#[derive(Clone)]
enum ItemsSource {
    /// The objects, and the bytes of their JSON.
    Held(Arc<[Arc<Stored>]>, usize),
    Snapshot(Arc<dyn SnapshotRange>),
}

/// A range of keys in a snapshot.
pub(crate) trait SnapshotRange: Send + Sync + 'static {
    /// Iterates over the objects, and holds only the next few of them.
    fn iter(&self) -> Box<dyn Iterator<Item = Arc<Stored>> + Send>;
}

impl Items {
    /// Objects of a snapshot.
    pub(crate) fn of_snapshot(range: impl SnapshotRange) -> Self {
        Self { source: ItemsSource::Snapshot(Arc::new(range)), age: None }
    }

    /// Sets the age of the state that the objects belong to.
    #[must_use]
    pub(crate) fn aged(self, age: StateAge) -> Self {
        Self { age: Some(age), ..self }
    }

    /// Iterates over the objects.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Arc<Stored>> + Send> {
        match &self.source {
            ItemsSource::Held(held, _) => {
                let held = held.clone();
                Box::new((0..held.len()).filter_map(move |index| held.get(index).cloned()))
            }
            ItemsSource::Snapshot(range) => range.iter(),
        }
    }
}

impl From<Vec<Arc<Stored>>> for Items {
    fn from(items: Vec<Arc<Stored>>) -> Self {
        let bytes = json_bytes(&items);
        Self { source: ItemsSource::Held(items.into(), bytes), age: None }
    }
}

impl Pinned for Items {
    fn bytes(&self) -> usize {
        let older = self.age.as_ref().map_or(usize::MAX, StateAge::bytes);
        match &self.source {
            ItemsSource::Held(_, bytes) => older.min(*bytes),
            ItemsSource::Snapshot(_) => older,
        }
    }

    /// Does nothing: a list must come from one state, and continues in it.
    fn release(&self) {}
}

impl IntoIterator for Items {
    type Item = Arc<Stored>;
    type IntoIter = Box<dyn Iterator<Item = Arc<Stored>> + Send>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
