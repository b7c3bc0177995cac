//! A watch that reads directly from the backend and translates its events for a scope.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::mpsc;

use super::{Store, codec, list};
use crate::backend::{BackendError, BackendEvent, Revision, WatchItem};
use crate::pinned::{Fetched, Pinned};
use crate::scope::transition;
use crate::storage::{Scope, StorageError, WatchEvent, WatchFrom, Watcher};

/// Maximum number of initial events delivered at once.
const INITIAL_BATCH: usize = 500;

/// A watcher with a backend watch of its own.
pub(super) struct StoreWatcher {
    store: Store,
    scope: Scope,
    items: mpsc::Receiver<WatchItem>,
    initial: Option<UnsentObjects>,
    /// Events up to this revision are not delivered (again).
    sent_upto: Revision,
    /// As `sent_upto`, but never ahead of what the backend has committed.
    progress: Revision,
    over: bool,
}

/// The objects that are still to be sent, and their number.
struct UnsentObjects {
    objects: Arc<Fetched>,
    left: usize,
}

impl StoreWatcher {
    pub(super) async fn open(store: &Store, scope: Scope, from: WatchFrom) -> Result<Self, StorageError> {
        let (initial, sent_upto, progress) = match from {
            WatchFrom::After(revision) => {
                (None, revision, revision.min(store.backend.current_revision().await?))
            }
            WatchFrom::InitialEvents(at) => {
                let (items, revision) = list::everything(store, &scope, at).await?;
                let left = items.len();
                (Some(UnsentObjects { objects: Arc::new(Fetched::new(items)), left }), revision, revision)
            }
        };
        let items = store.backend.watch(scope.keys(&store.prefix), sent_upto).await?;
        Ok(Self { store: store.clone(), scope, items, initial, sent_upto, progress, over: false })
    }

    /// Appends the events of the backend's next delivery, possibly none. Returns `false` when the watch has ended.
    fn poll_step(&mut self, context: &mut Context<'_>, events: &mut VecDeque<WatchEvent>) -> Poll<bool> {
        if self.over {
            return Poll::Ready(false);
        }
        if let Some(initial) = self.initial.take() {
            self.initial_events(initial, events);
            return Poll::Ready(true);
        }
        let item = ready!(self.items.poll_recv(context));
        events.extend(self.deliver(item));
        Poll::Ready(true)
    }

    fn initial_events(&mut self, mut initial: UnsentObjects, events: &mut VecDeque<WatchEvent>) {
        let next = initial.objects.next(INITIAL_BATCH);
        if initial.left == 0 {
            return events.push_back(WatchEvent::Bookmark { revision: self.sent_upto, initial: true });
        }
        if next.is_empty() {
            // The objects were released, and this watcher cannot make them again.
            let (requested, oldest) = (self.sent_upto.0, self.sent_upto.0);
            let expired = self.fail(StorageError::Expired { requested, oldest });
            return events.push_back(expired);
        }
        initial.left -= next.len();
        self.initial = Some(initial);
        events.extend(next.into_iter().map(WatchEvent::Added));
    }

    fn deliver(&mut self, item: Option<WatchItem>) -> Vec<WatchEvent> {
        match item {
            Some(WatchItem::Events(events)) => self.translate(events),
            Some(WatchItem::Progress(revision)) => {
                self.reached(revision);
                Vec::new()
            }
            Some(WatchItem::Failed(error)) => vec![self.fail(error.into())],
            None => vec![self.fail(BackendError::Unavailable("the watch ended".to_owned()).into())],
        }
    }

    fn translate(&mut self, batch: Vec<BackendEvent>) -> Vec<WatchEvent> {
        let mut events = Vec::with_capacity(batch.len());
        let sent_upto = self.sent_upto;
        for event in batch.into_iter().filter(|event| event.revision > sent_upto) {
            match self.seen_from_scope(&event) {
                Ok(seen) => events.extend(seen),
                Err(error) => {
                    events.push(self.fail(error));
                    return events;
                }
            }
            self.reached(event.revision);
        }
        events
    }

    fn reached(&mut self, revision: Revision) {
        self.sent_upto = self.sent_upto.max(revision);
        self.progress = self.progress.max(revision);
    }

    fn seen_from_scope(&self, event: &BackendEvent) -> Result<Option<WatchEvent>, StorageError> {
        let key = self.store.relative(&event.key)?;
        let current =
            event.value.as_ref().map(|value| codec::decode(key, value, event.revision)).transpose()?;
        let previous = event.previous.as_ref().map(|pair| self.store.decode(pair)).transpose()?;
        let created = event.create_revision == event.revision && event.value.is_some();
        if previous.is_none() && !created {
            // Without the previous state it is unknown whether the object left the selection.
            let oldest = event.revision.0;
            return Err(StorageError::Expired { requested: self.sent_upto.0, oldest });
        }
        Ok(transition(&self.scope, current.as_ref(), previous.as_ref(), |last| {
            Arc::new(last.stamped(event.revision))
        }))
    }

    fn fail(&mut self, error: StorageError) -> WatchEvent {
        self.over = true;
        WatchEvent::Failed(error)
    }
}

impl Watcher for StoreWatcher {
    fn poll_next(&mut self, context: &mut Context<'_>, events: &mut VecDeque<WatchEvent>) -> Poll<bool> {
        let known = events.len();
        while ready!(self.poll_step(context, events)) {
            if events.len() > known {
                return Poll::Ready(true);
            }
        }
        Poll::Ready(false)
    }

    fn progress(&self) -> Revision {
        if self.initial.is_some() { Revision(0) } else { self.progress }
    }

    fn pinned(&self) -> Option<Arc<dyn Pinned>> {
        self.initial.as_ref().map(|initial| initial.objects.clone() as Arc<dyn Pinned>)
    }
}
