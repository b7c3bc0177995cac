//! Records what a watcher gets.

use std::ops::Range;
use std::sync::Arc;

use drydock_storage::backend::{BackendError, BackendEvent, WatchItem};
use drydock_storage::storage::{StorageError, Stored, WatchEvent};

use super::typed::pair_of;
use crate::context::HistoryContext;
use crate::object;
use crate::record::{DeliveredEvent, DeliveredItem, DeliveredKind, RecordedWatch, Rev, WatchStart};

/// The notes of one watch; they are handed in when it is over.
pub struct Notes<'a> {
    context: &'a HistoryContext,
    stream: Option<RecordedWatch>,
    upto: Rev,
}

impl<'a> Notes<'a> {
    pub fn bytes(
        context: &'a HistoryContext,
        by: &'static str,
        keys: Range<String>,
        from: WatchStart,
    ) -> Self {
        Self::new(context, by, keys, from, false, true)
    }

    pub fn typed(
        context: &'a HistoryContext,
        by: &'static str,
        keys: Range<String>,
        from: WatchStart,
    ) -> Self {
        Self::new(context, by, keys, from, false, false)
    }

    pub fn new(
        context: &'a HistoryContext,
        by: &'static str,
        keys: Range<String>,
        from: WatchStart,
        even: bool,
        tells_previous: bool,
    ) -> Self {
        let stream = RecordedWatch { by, keys, from, even, tells_previous, items: Vec::new() };
        let upto = stream.base().unwrap_or_default();
        Self { context, stream: Some(stream), upto }
    }

    /// Up to where everything has been delivered.
    pub fn upto(&self) -> Rev {
        self.upto
    }

    /// Whether the present objects come first.
    pub fn is_initial(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| matches!(stream.from, WatchStart::Initial(_)))
    }

    pub fn item(&mut self, item: DeliveredItem) {
        self.upto = match &item {
            DeliveredItem::Event(event) => event.revision,
            DeliveredItem::Progress(at) | DeliveredItem::InitialEnd(at) => self.upto.max(*at),
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
pub fn item(item: WatchItem) -> Vec<DeliveredItem> {
    match item {
        WatchItem::Events(events) => events.into_iter().map(event).collect(),
        WatchItem::Progress(at) => vec![DeliveredItem::Progress(at.0)],
        WatchItem::Failed(BackendError::Compacted { .. }) => vec![DeliveredItem::Expired],
        WatchItem::Failed(_) => vec![DeliveredItem::Failed],
    }
}

fn event(event: BackendEvent) -> DeliveredItem {
    let previous = event.previous.as_ref().and_then(|pair| object::pair(pair).ok());
    let value = match &event.value {
        Some(bytes) => serde_json::from_slice(bytes).ok().as_ref().and_then(object::value_of),
        None => previous.as_ref().map(|pair| pair.value),
    };
    let kind = match &event.value {
        None => DeliveredKind::Deleted,
        Some(_) if event.create_revision == event.revision => DeliveredKind::Added,
        Some(_) => DeliveredKind::Modified,
    };
    DeliveredItem::Event(DeliveredEvent { revision: event.revision.0, key: event.key, kind, value, previous })
}

pub fn typed_item(event: WatchEvent, initial: &mut bool) -> DeliveredItem {
    let change = |kind, stored: Arc<Stored>| {
        let pair = pair_of(&stored);
        let (revision, key, value) = (pair.modified, pair.key, Some(pair.value));
        DeliveredItem::Event(DeliveredEvent { revision, key, kind, value, previous: None })
    };
    match event {
        WatchEvent::Added(stored) if *initial => DeliveredItem::Present(pair_of(&stored)),
        WatchEvent::Added(stored) => change(DeliveredKind::Added, stored),
        WatchEvent::Modified(stored) => change(DeliveredKind::Modified, stored),
        WatchEvent::Deleted(stored) => change(DeliveredKind::Deleted, stored),
        WatchEvent::Bookmark { revision, initial: true } => {
            *initial = false;
            DeliveredItem::InitialEnd(revision.0)
        }
        WatchEvent::Bookmark { revision, .. } => DeliveredItem::Progress(revision.0),
        WatchEvent::Failed(error) => ended(&error),
    }
}

pub fn ended(error: &StorageError) -> DeliveredItem {
    match error {
        StorageError::Expired { .. } => DeliveredItem::Expired,
        _ => DeliveredItem::Failed,
    }
}
