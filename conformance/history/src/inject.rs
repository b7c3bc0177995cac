//! Faults injected on purpose, between a correct store and its clients: a test that does not find them would
//! not find others.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use async_trait::async_trait;
use drydock_storage::backend::{
    Backend, CompareAndSwap, KeyValue, RangeResult, Result, Revision, WatchItem, WriteOutcome,
};
use tokio::sync::{RwLock, mpsc};

use crate::object::PREFIX;

/// What is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FaultKind {
    /// A write that is acknowledged and not made.
    LostWrite,
    /// Two events of one watch in the wrong order.
    ReorderedEvent,
    /// A write that is acknowledged before it is made.
    EarlyAcknowledgement,
}

/// One in this many opportunities is taken.
const OPPORTUNITIES_OF_A_FAULT: u64 = 40;

/// Injects one kind of fault.
pub struct FaultInjector {
    what: FaultKind,
    chances: AtomicU64,
    /// Held alone by a write that is injected: the revision that it is answered must be right.
    order: Arc<RwLock<()>>,
}

impl FaultInjector {
    pub fn new(what: FaultKind) -> Self {
        Self { what, chances: AtomicU64::new(0), order: Arc::default() }
    }

    /// The same store with the fault in it.
    pub fn over(self: &Arc<Self>, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Faulty { inject: self.clone(), inner })
    }

    fn is_due(&self, what: FaultKind) -> bool {
        self.what == what
            && self.chances.fetch_add(1, SeqCst) % OPPORTUNITIES_OF_A_FAULT == OPPORTUNITIES_OF_A_FAULT - 1
    }
}

struct Faulty {
    inject: Arc<FaultInjector>,
    inner: Arc<dyn Backend>,
}

impl Faulty {
    /// Acknowledges an update that would be made, and makes another one elsewhere in its place.
    async fn lose(&self, write: CompareAndSwap) -> Result<WriteOutcome> {
        let _alone = self.inject.order.write().await;
        let (present, at) = self.inner.get(&write.key, None).await?;
        if present.map(|pair| pair.mod_revision) != write.expected || write.guard.is_some() {
            return self.inner.write(write).await;
        }
        let elsewhere = format!("/lost/{}", at.0);
        self.inner
            .write(CompareAndSwap {
                key: elsewhere,
                expected: None,
                value: write.value,
                guard: None,
                priority: Default::default(),
            })
            .await
    }

    /// Acknowledges an update that would be made, and makes it a little later.
    async fn hurry(&self, write: CompareAndSwap) -> Result<WriteOutcome> {
        let alone = self.inject.order.clone().write_owned().await;
        let (present, at) = self.inner.get(&write.key, None).await?;
        if present.map(|pair| pair.mod_revision) != write.expected || write.guard.is_some() {
            return self.inner.write(write).await;
        }
        let inner = self.inner.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let _ = inner.write(write).await;
            drop(alone);
        });
        Ok(WriteOutcome::Committed(Revision(at.0 + 1)))
    }

    /// Passes a watch on, and swaps two of its deliveries now and then.
    fn reorder(&self, mut items: mpsc::Receiver<WatchItem>) -> mpsc::Receiver<WatchItem> {
        let (sender, receiver) = mpsc::channel(4);
        let inject = self.inject.clone();
        tokio::spawn(async move {
            let mut held = None;
            while let Some(item) = items.recv().await {
                let is_event = matches!(item, WatchItem::Events(_));
                if held.is_none() && is_event && inject.is_due(FaultKind::ReorderedEvent) {
                    held = Some(item);
                    continue;
                }
                if sender.send(item).await.is_err() {
                    return;
                }
                if let Some(held) = held.take().filter(|_| is_event)
                    && sender.send(held).await.is_err()
                {
                    return;
                }
            }
        });
        receiver
    }
}

#[async_trait]
impl Backend for Faulty {
    async fn current_revision(&self) -> Result<Revision> {
        self.inner.current_revision().await
    }

    fn local_revision(&self) -> Option<Revision> {
        self.inner.local_revision()
    }

    async fn get(&self, key: &str, at: Option<Revision>) -> Result<(Option<KeyValue>, Revision)> {
        self.inner.get(key, at).await
    }

    async fn range(&self, keys: Range<String>, limit: usize, at: Option<Revision>) -> Result<RangeResult> {
        self.inner.range(keys, limit, at).await
    }

    async fn write(&self, write: CompareAndSwap) -> Result<WriteOutcome> {
        let is_ours = write.key.starts_with(PREFIX) && write.value.is_some();
        if is_ours && self.inject.is_due(FaultKind::LostWrite) {
            return self.lose(write).await;
        }
        if is_ours && self.inject.is_due(FaultKind::EarlyAcknowledgement) {
            return self.hurry(write).await;
        }
        let _order = self.inject.order.read().await;
        self.inner.write(write).await
    }

    async fn watch(&self, keys: Range<String>, after: Revision) -> Result<mpsc::Receiver<WatchItem>> {
        let items = self.inner.watch(keys, after).await?;
        Ok(if self.inject.what == FaultKind::ReorderedEvent { self.reorder(items) } else { items })
    }

    async fn request_progress(&self) -> Result<()> {
        self.inner.request_progress().await
    }

    async fn compact(&self, at: Revision) -> Result<()> {
        self.inner.compact(at).await
    }
}
