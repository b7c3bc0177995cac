//! What the tests share: a store, short ways to write, and a watch whose items are awaited without sleeping.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::backend::{
    Backend, BackendError, BackendEvent, CompareAndSwap, KeyValue, Revision, WatchItem, WriteOutcome,
    prefix_range,
};

/// How long a test waits for a watch before it fails. Not a measurement.
const WATCH_DEADLINE: Duration = Duration::from_secs(60);

pub type Store = Arc<dyn Backend>;

pub fn value(text: impl Into<String>) -> Option<Bytes> {
    Some(Bytes::from(text.into()))
}

/// Compares and swaps one key.
pub async fn cas(store: &Store, key: &str, expected: Option<Revision>, to: Option<Bytes>) -> WriteOutcome {
    let write = CompareAndSwap {
        key: key.to_owned(),
        expected,
        value: to,
        guard: None,
        priority: Default::default(),
    };
    store.write(write).await.expect("a write is answered")
}

pub async fn create(store: &Store, key: &str, text: &str) -> Revision {
    committed(cas(store, key, None, value(text)).await)
}

pub async fn update(store: &Store, key: &str, expected: Revision, text: &str) -> Revision {
    committed(cas(store, key, Some(expected), value(text)).await)
}

pub async fn delete(store: &Store, key: &str, expected: Revision) -> Revision {
    committed(cas(store, key, Some(expected), None).await)
}

pub fn committed(outcome: WriteOutcome) -> Revision {
    match outcome {
        WriteOutcome::Committed(revision) => revision,
        WriteOutcome::Conflict(present, at) => panic!("conflict with {present:?} at {at:?}"),
        WriteOutcome::GuardFailed => panic!("the guard has moved"),
    }
}

/// Returns the text of a key, at the latest revision or at another one.
pub async fn text(store: &Store, key: &str, at: Option<Revision>) -> Option<String> {
    let (pair, _) = store.get(key, at).await.expect("a read is answered");
    pair.map(|pair| String::from_utf8(pair.value.to_vec()).expect("text"))
}

/// Returns the keys under a prefix, at the latest revision or at another one.
pub async fn keys(store: &Store, prefix: &str, at: Option<Revision>) -> Vec<String> {
    let found = store.range(prefix_range(prefix), 0, at).await.expect("a range is answered");
    found.items.into_iter().map(|pair| pair.key).collect()
}

/// Returns all pairs, at the latest revision or at another one.
pub async fn all(store: &Store, at: Option<Revision>) -> Vec<KeyValue> {
    store.range(prefix_range("/"), 0, at).await.unwrap().items
}

/// Returns an object as the typed store writes it.
pub fn object(name: &str, text: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"K","metadata":{{"name":"{name}"}},"text":"{text}"}}"#)
}

/// Returns the key of [`object`].
pub fn key(name: &str) -> String {
    format!("/registry/g/plural/{name}")
}

/// Reads a watch event by event, and checks what holds for every watch.
pub struct Watch {
    items: mpsc::Receiver<WatchItem>,
    waiting: std::collections::VecDeque<BackendEvent>,
    last: Revision,
}

impl Watch {
    pub async fn start(store: &Store, prefix: &str, after: Revision) -> Self {
        let items = store.watch(prefix_range(prefix), after).await.expect("a watch is accepted");
        Self { items, waiting: Default::default(), last: after }
    }

    /// Returns the next item. Checks that the revisions of its events are above all before.
    pub async fn item(&mut self) -> WatchItem {
        let item = tokio::time::timeout(WATCH_DEADLINE, self.items.recv()).await;
        let item = item.expect("an item comes").expect("the watch goes on");
        match &item {
            WatchItem::Events(events) => {
                for event in events {
                    assert!(event.revision > self.last, "{event:?} after {:?}", self.last);
                    self.last = event.revision;
                }
            }
            WatchItem::Progress(revision) => {
                assert!(*revision >= self.last, "progress {revision:?} after {:?}", self.last);
                self.last = *revision;
            }
            WatchItem::Failed(_) => {}
        }
        item
    }

    /// Returns the next event; skips progress.
    pub async fn event(&mut self) -> BackendEvent {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return event;
            }
            match self.item().await {
                WatchItem::Events(events) => self.waiting.extend(events),
                WatchItem::Progress(_) => {}
                WatchItem::Failed(error) => panic!("the watch failed: {error}"),
            }
        }
    }

    /// Returns the next `count` events.
    pub async fn events(&mut self, count: usize) -> Vec<BackendEvent> {
        let mut events = Vec::with_capacity(count);
        while events.len() < count {
            events.push(self.event().await);
        }
        events
    }

    /// Waits for progress up to `least`, and returns the events before it.
    pub async fn until_progress(&mut self, store: &Store, least: Revision) -> Vec<BackendEvent> {
        let mut events: Vec<_> = self.waiting.drain(..).collect();
        store.request_progress().await.expect("progress can be asked for");
        loop {
            match self.item().await {
                WatchItem::Events(more) => events.extend(more),
                WatchItem::Progress(revision) if revision >= least => return events,
                WatchItem::Progress(_) => store.request_progress().await.expect("progress can be asked for"),
                WatchItem::Failed(error) => panic!("the watch failed: {error}"),
            }
        }
    }

    /// Returns the error that ends the watch. Fails if an event arrives first.
    pub async fn failure(&mut self) -> BackendError {
        loop {
            match self.item().await {
                WatchItem::Failed(error) => return error,
                WatchItem::Progress(_) => {}
                WatchItem::Events(events) => panic!("events of a watch that must fail: {events:?}"),
            }
        }
    }

    /// Returns the receiver, with the items that have arrived and are unread.
    pub fn into_receiver(self) -> mpsc::Receiver<WatchItem> {
        self.items
    }
}

/// Returns the errors of a get and a range at a revision.
pub async fn errors_at(store: &Store, at: Revision) -> [BackendError; 2] {
    let get = store.get("/a", Some(at)).await.expect_err("a get at this revision fails");
    [get, store.range(prefix_range("/"), 1, Some(at)).await.expect_err("a range at this revision fails")]
}

/// Waits until the store reports that it refuses writes, or that it accepts them again.
pub async fn until_it_says(store: &Store, says: impl Fn(Option<String>) -> bool) {
    let told = async {
        while !says(store.refuses_writes()) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WATCH_DEADLINE, told).await.expect("it is told");
}
