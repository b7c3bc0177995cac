//! The objects of a page.

use std::sync::Arc;

use crate::cache::Stretch;
use crate::stored::Stored;

/// Objects in key order. A long list is not put together before it is read: whoever sends it begins at once, and holds
/// the snapshot that it is read from.
#[derive(Clone)]
pub struct Items(Source);

#[derive(Clone)]
enum Source {
    Held(Arc<[Arc<Stored>]>),
    Snapshot(Stretch),
}

impl Items {
    /// Objects of a snapshot.
    pub(crate) fn of_snapshot(stretch: Stretch) -> Self {
        Self(Source::Snapshot(stretch))
    }

    /// The objects, one after another.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Arc<Stored>> + Send> {
        match &self.0 {
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
        Self(Source::Held(items.into()))
    }
}

impl IntoIterator for Items {
    type Item = Arc<Stored>;
    type IntoIter = Box<dyn Iterator<Item = Arc<Stored>> + Send>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
