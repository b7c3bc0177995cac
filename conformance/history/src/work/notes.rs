//! What a watcher is told, as it is noted.

use std::ops::Range;
use std::sync::Arc;

use drydock_storage::backend::{BackendError, BackendEvent, WatchItem};
use drydock_storage::storage::{StorageError, Stored, WatchEvent};

use super::typed::pair_of;
use crate::context::Context;
use crate::object;
use crate::record::{Event, From, Item, Kind, Rev, Stream};

/// The notes of one watch; they are handed in when it is over.
pub struct Notes<'a> {
    context: &'a Context,
    stream: Option<Stream>,
    upto: Rev,
}

impl<'a> Notes<'a> {
    pub fn bytes(context: &'a Context, by: &'static str, keys: Range<String>, from: From) -> Self {
        Self::new(context, by, keys, from, false, true)
    }

    pub fn typed(context: &'a Context, by: &'static str, keys: Range<String>, from: From) -> Self {
        Self::new(context, by, keys, from, false, false)
    }

    pub fn new(
        context: &'a Context,
        by: &'static str,
        keys: Range<String>,
        from: From,
        even: bool,
        tells_previous: bool,
    ) -> Self {
        let stream = Stream { by, keys, from, even, tells_previous, items: Vec::new() };
        let upto = stream.base().unwrap_or_default();
        Self { context, stream: Some(stream), upto }
    }

    /// How far all has been told.
    pub fn upto(&self) -> Rev {
        self.upto
    }

    /// Whether the present objects come first.
    pub fn is_initial(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| matches!(stream.from, From::Initial(_)))
    }

    pub fn item(&mut self, item: Item) {
        self.upto = match &item {
            Item::Event(event) => event.revision,
            Item::Progress(at) | Item::InitialEnd(at) => self.upto.max(*at),
            _ => self.upto,
        };
        let stamp = self.context.recorder.stamp();
        if let Some(stream) = &mut self.stream {
            stream.items.push((stamp, item));
        }
    }
}

impl Drop for Notes<'_> {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.context.recorder.stream(stream);
        }
    }
}

/// A delivery of the backend as notes.
pub fn item(item: WatchItem) -> Vec<Item> {
    match item {
        WatchItem::Events(events) => events.into_iter().map(event).collect(),
        WatchItem::Progress(at) => vec![Item::Progress(at.0)],
        WatchItem::Failed(BackendError::Compacted { .. }) => vec![Item::Expired],
        WatchItem::Failed(_) => vec![Item::Failed],
    }
}

fn event(event: BackendEvent) -> Item {
    let previous = event.previous.as_ref().and_then(|pair| object::pair(pair).ok());
    let value = match &event.value {
        Some(bytes) => serde_json::from_slice(bytes).ok().as_ref().and_then(object::value_of),
        None => previous.as_ref().map(|pair| pair.value),
    };
    let kind = match &event.value {
        None => Kind::Deleted,
        Some(_) if event.create_revision == event.revision => Kind::Added,
        Some(_) => Kind::Modified,
    };
    Item::Event(Event { revision: event.revision.0, key: event.key, kind, value, previous })
}

pub fn typed_item(event: WatchEvent, initial: &mut bool) -> Item {
    let change = |kind, stored: Arc<Stored>| {
        let pair = pair_of(&stored);
        let (revision, key, value) = (pair.modified, pair.key, Some(pair.value));
        Item::Event(Event { revision, key, kind, value, previous: None })
    };
    match event {
        WatchEvent::Added(stored) if *initial => Item::Present(pair_of(&stored)),
        WatchEvent::Added(stored) => change(Kind::Added, stored),
        WatchEvent::Modified(stored) => change(Kind::Modified, stored),
        WatchEvent::Deleted(stored) => change(Kind::Deleted, stored),
        WatchEvent::Bookmark { revision, initial: true } => {
            *initial = false;
            Item::InitialEnd(revision.0)
        }
        WatchEvent::Bookmark { revision, .. } => Item::Progress(revision.0),
        WatchEvent::Failed(error) => ended(&error),
    }
}

pub fn ended(error: &StorageError) -> Item {
    match error {
        StorageError::Expired { .. } => Item::Expired,
        _ => Item::Failed,
    }
}
