//! Short ways to write and read objects, and a watcher that is awaited without sleeping.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use drydock_machinery::Object;
use futures::FutureExt;
use serde_json::json;

use crate::backend::{Backend, CompareAndSwap, Revision, WriteOutcome};
use crate::storage::{
    NextState, Page, PageOptions, ReadAt, Replaced, Scope, Storage, StorageError, Stored, UnlimitedMemory,
    WatchEvent, WatchFrom, Watcher,
};

/// How long a test waits for a watch before it fails. Not a measurement.
pub const WATCH_DEADLINE: Duration = Duration::from_secs(60);

/// A storage, and the backend below it.
pub struct Fixture {
    pub storage: Arc<dyn Storage>,
    pub backend: Arc<dyn Backend>,
}

/// Returns an object with a value that selections use.
pub fn object(key: &str, value: u64) -> Object {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    let object = json!({
        "apiVersion": "test.example/v1", "kind": "Widget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"value": value},
    });
    Object::from(object.as_object().unwrap().clone())
}

pub fn read_value(object: &Object) -> u64 {
    object.0["spec"]["value"].as_u64().unwrap()
}

pub fn set_value(object: &Object, value: u64) -> Object {
    let mut object = object.clone();
    object.0["spec"]["value"] = value.into();
    object
}

pub fn even(object: &Object) -> bool {
    read_value(object).is_multiple_of(2)
}

pub fn all(at: ReadAt) -> PageOptions {
    PageOptions { at, limit: 0, start: None }
}

pub fn keys(page: &Listed) -> Vec<&str> {
    page.items.iter().map(|stored| &*stored.key).collect()
}

/// A page that has been read.
pub struct Listed {
    pub items: Vec<Arc<Stored>>,
    pub revision: Revision,
    pub next: Option<String>,
    pub remaining: Option<u64>,
}

impl From<Page> for Listed {
    fn from(Page { items, revision, next, remaining }: Page) -> Self {
        Self { items: items.into_iter().collect(), revision, next, remaining }
    }
}

impl Fixture {
    pub async fn create(&self, key: &str, value: u64) -> Revision {
        self.storage.create(key, object(key, value), Default::default()).await.unwrap().revision
    }

    pub async fn set(&self, key: &str, value: u64) -> Revision {
        let set = |seen: &Object| NextState::Write(set_value(seen, value));
        self.replace(key, set).await.unwrap().revision
    }

    pub async fn delete(&self, key: &str) -> Revision {
        self.replace(key, |seen| NextState::Delete(seen.clone())).await.unwrap().revision
    }

    /// Replaces an object by what `next` makes of it, until no other write comes first. Begins with any state, as a
    /// server does. Returns what is stored, or `None` if the object does not exist.
    pub async fn replace(&self, key: &str, next: impl Fn(&Object) -> NextState) -> Option<Arc<Stored>> {
        let mut present = self.storage.get(key, ReadAt::NotOlderThan(Revision(0))).await.ok();
        if present.is_none() {
            present = self.storage.get(key, ReadAt::Latest).await.ok();
        }
        while let Some(state) = present {
            match self.try_replace(&state, next(&state.object())).await {
                Replaced::Updated(stored) => return Some(stored),
                Replaced::Conflict(newest) => present = newest,
            }
        }
        None
    }

    pub async fn try_replace(&self, present: &Arc<Stored>, next: NextState) -> Replaced {
        self.storage.replace(&present.key, present, next, Default::default()).await.unwrap()
    }

    pub async fn list(&self, scope: &Scope, at: ReadAt) -> Listed {
        self.page(scope, &all(at)).await
    }

    pub async fn page(&self, scope: &Scope, options: &PageOptions) -> Listed {
        self.storage.list(scope, options, &mut UnlimitedMemory).await.unwrap().into()
    }

    pub async fn follow(&self, scope: Scope, from: WatchFrom) -> Follower {
        Follower::new(self.storage.watch(scope, from).await.unwrap())
    }

    /// Writes another resource in the same backend.
    pub async fn write_elsewhere(&self, name: &str) -> Revision {
        self.write_bytes(&format!("/registry/test.example/others/{name}"), b"{}").await
    }

    pub async fn write_bytes(&self, key: &str, bytes: &'static [u8]) -> Revision {
        let write = CompareAndSwap {
            key: key.to_owned(),
            expected: None,
            value: Some(bytes.into()),
            guard: None,
            priority: Default::default(),
        };
        match self.backend.write(write).await.unwrap() {
            WriteOutcome::Committed(revision) => revision,
            WriteOutcome::Conflict(..) | WriteOutcome::GuardFailed => panic!("{key} exists"),
        }
    }
}

/// Reads a watcher event by event, and checks what holds for every watch.
pub struct Follower {
    watcher: Box<dyn Watcher>,
    waiting: VecDeque<WatchEvent>,
    last: Revision,
    bookmarked: Revision,
    /// The value of each key, according to the events.
    pub state: BTreeMap<String, (u64, Revision)>,
}

impl Follower {
    pub fn new(watcher: Box<dyn Watcher>) -> Self {
        let last = Revision(0);
        Self { watcher, waiting: VecDeque::new(), last, bookmarked: last, state: BTreeMap::new() }
    }

    /// The next event.
    pub async fn next(&mut self) -> WatchEvent {
        while self.waiting.is_empty() {
            let events = tokio::time::timeout(WATCH_DEADLINE, self.watcher.next()).await;
            let events = events.expect("an event comes").expect("the watch goes on");
            assert!(!events.is_empty(), "a delivery of nothing");
            self.waiting.extend(events);
        }
        let event = self.waiting.pop_front().unwrap();
        self.check(&event);
        event
    }

    /// Returns the next event as text: `+ns/name=1`, `~ns/name=2`, `-ns/name=2`, `|` (initial bookmark), with its
    /// revision.
    pub async fn next_as_text(&mut self) -> (String, Revision) {
        let say = |sign: &str, stored: &Stored| {
            (format!("{sign}{}={}", stored.key, read_value(&stored.object())), stored.revision)
        };
        match self.next().await {
            WatchEvent::Added(stored) => say("+", &stored),
            WatchEvent::Modified(stored) => say("~", &stored),
            WatchEvent::Deleted(stored) => say("-", &stored),
            WatchEvent::Bookmark { revision, .. } => ("|".to_owned(), revision),
            WatchEvent::Failed(error) => panic!("the watch failed: {error}"),
        }
    }

    pub async fn words(&mut self, count: usize) -> Vec<String> {
        let mut words = Vec::new();
        while words.len() < count {
            words.push(self.next_as_text().await.0);
        }
        words
    }

    /// Returns the error that ends the watch.
    pub async fn failure(&mut self) -> StorageError {
        match self.next().await {
            WatchEvent::Failed(error) => {
                assert!(self.watcher.next().await.is_none(), "told something after the end");
                error
            }
            other => panic!("the watch should have failed and told {other:?}"),
        }
    }

    /// Reads up to and including the event at `revision`.
    pub async fn until(&mut self, revision: Revision) {
        while self.last < revision {
            self.next_as_text().await;
        }
    }

    /// Waits, without expecting an event, until the watcher's progress reaches `revision`.
    pub async fn until_progress(&mut self, backend: &Arc<dyn Backend>, revision: Revision) {
        loop {
            backend.request_progress().await.unwrap();
            let quiet = Duration::from_millis(20);
            // Poll at least once: a watcher sleeps only after it has found nothing to read.
            if let Ok(events) = tokio::time::timeout(quiet, self.watcher.next()).await {
                panic!("told {events:?} instead of nothing");
            }
            if self.watcher.progress() >= revision {
                // It has found nothing to read since, and sleeps.
                assert!(self.watcher.next().now_or_never().is_none(), "told of something");
                return;
            }
        }
    }

    pub fn progress(&self) -> Revision {
        self.watcher.progress()
    }

    /// Checks that no event is at or below an earlier bookmark or event; initial events are in key order instead.
    fn check(&mut self, event: &WatchEvent) {
        let stored = match event {
            WatchEvent::Added(stored) | WatchEvent::Modified(stored) | WatchEvent::Deleted(stored) => stored,
            WatchEvent::Bookmark { revision, .. } => {
                assert!(*revision >= self.last, "bookmark {revision:?} below {:?}", self.last);
                self.last = *revision;
                self.bookmarked = *revision;
                return;
            }
            WatchEvent::Failed(_) => return,
        };
        assert!(stored.revision > self.bookmarked, "{event:?} at or below {:?}", self.bookmarked);
        assert_eq!(stored.object().resource_version(), stored.revision.0.to_string());
        self.last = self.last.max(stored.revision);
        match event {
            // A watch that starts in the middle may get the deletion of an object whose creation it did not see.
            WatchEvent::Deleted(_) => drop(self.state.remove(&*stored.key)),
            _ => {
                let before = self
                    .state
                    .insert(stored.key.to_string(), (read_value(&stored.object()), stored.revision));
                assert!(before.is_none_or(|(_, revision)| revision < stored.revision), "{event:?} again");
            }
        }
    }
}
