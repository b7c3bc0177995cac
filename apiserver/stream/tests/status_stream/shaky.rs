//! Storage whose watches can be held back and made to fail.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use drydock_machinery::Object;
use drydock_storage::backend::{Revision, Shortage, WriteContext};
use drydock_storage::cache::WatchCache;
use drydock_storage::storage::{
    MemoryBudget, NextState, Page, PageOptions, ReadAt, Replaced, Scope, Storage, StorageError, Stored,
    WatchEvent, WatchFrom, Watcher,
};
use tokio::sync::watch;

/// What its watches do.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    is_held: bool,
    failures: usize,
}

/// A cache whose watches a test controls.
pub struct Shaky {
    cache: Arc<WatchCache>,
    state: watch::Sender<State>,
}

impl Shaky {
    pub fn new(cache: Arc<WatchCache>) -> Arc<Self> {
        Arc::new(Self { cache, state: watch::Sender::new(State::default()) })
    }

    /// While they are held, its watches deliver nothing.
    pub fn hold(&self, is_held: bool) {
        self.state.send_modify(|state| state.is_held = is_held);
    }

    /// Makes all its present watches fail.
    pub fn fail(&self) {
        self.state.send_modify(|state| state.failures += 1);
    }
}

struct ShakyWatcher {
    inner: Box<dyn Watcher>,
    state: watch::Receiver<State>,
    /// Completes when the state changes.
    changed: Pin<Box<dyn Future<Output = ()> + Send>>,
    failures: usize,
}

fn changed(mut state: watch::Receiver<State>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move { drop(state.changed().await) })
}

impl Watcher for ShakyWatcher {
    fn poll_next(&mut self, context: &mut Context<'_>, events: &mut VecDeque<WatchEvent>) -> Poll<bool> {
        loop {
            let state = *self.state.borrow_and_update();
            if state.failures > self.failures {
                self.failures = state.failures;
                events.push_back(WatchEvent::Failed(StorageError::Expired { requested: 1, oldest: 2 }));
                return Poll::Ready(true);
            }
            if !state.is_held
                && let Poll::Ready(more) = self.inner.poll_next(context, events)
            {
                return Poll::Ready(more);
            }
            if self.changed.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.changed = changed(self.state.clone());
        }
    }

    fn progress(&self) -> Revision {
        self.inner.progress()
    }
}

#[async_trait]
impl Storage for Shaky {
    async fn create(
        &self,
        key: &str,
        object: Object,
        context: WriteContext<'_>,
    ) -> Result<Arc<Stored>, StorageError> {
        self.cache.create(key, object, context).await
    }

    async fn get(&self, key: &str, at: ReadAt) -> Result<Arc<Stored>, StorageError> {
        self.cache.get(key, at).await
    }

    async fn list(
        &self,
        scope: &Scope,
        options: &PageOptions,
        room: &mut dyn MemoryBudget,
    ) -> Result<Page, StorageError> {
        self.cache.list(scope, options, room).await
    }

    async fn replace(
        &self,
        key: &str,
        present: &Arc<Stored>,
        next: NextState,
        context: WriteContext<'_>,
    ) -> Result<Replaced, StorageError> {
        self.cache.replace(key, present, next, context).await
    }

    async fn watch(&self, scope: Scope, from: WatchFrom) -> Result<Box<dyn Watcher>, StorageError> {
        let inner = self.cache.watch(scope, from).await?;
        let mut state = self.state.subscribe();
        let failures = state.borrow_and_update().failures;
        let changed = changed(state.clone());
        Ok(Box::new(ShakyWatcher { inner, state, changed, failures }))
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.cache.current_revision().await
    }

    fn listed_bytes(&self, scope: &Scope, options: &PageOptions, enough: usize) -> usize {
        self.cache.listed_bytes(scope, options, enough)
    }

    fn shortage(&self) -> Option<Shortage> {
        self.cache.shortage()
    }

    fn ready(&self) -> bool {
        self.cache.ready()
    }
}
