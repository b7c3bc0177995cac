//! A backend for tests: its watches can be held and broken, and its reads counted, delayed and refused.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

use async_trait::async_trait;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::backend::{
    Backend, BackendError, CompareAndSwap, KeyValue, RangeResult, Result, Revision, WatchItem, WriteOutcome,
};

pub struct GatedBackend {
    inner: Arc<dyn Backend>,
    flow: watch::Sender<Flow>,
    /// Number of requests for the current revision.
    pub checks: AtomicUsize,
    /// Number of reads of pairs.
    pub reads: AtomicUsize,
    /// Number of watches opened.
    pub watches: AtomicUsize,
    pub refuse_ranges: AtomicBool,
    /// Returned instead of the current revision, unless 0.
    pub pretended: AtomicU64,
    /// Each request for the current revision takes a permit.
    pub permits: Semaphore,
}

#[derive(Clone)]
enum Flow {
    Open,
    Held,
    /// Ends the watches that were opened before it.
    Broken(BackendError),
}

impl GatedBackend {
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self {
            inner,
            flow: watch::Sender::new(Flow::Open),
            checks: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            watches: AtomicUsize::new(0),
            refuse_ranges: AtomicBool::new(false),
            pretended: AtomicU64::new(0),
            permits: Semaphore::new(Semaphore::MAX_PERMITS),
        }
    }

    /// Holds back the items of all watches until [`Self::release`].
    pub fn hold(&self) {
        self.flow.send_replace(Flow::Held);
    }

    pub fn release(&self) {
        self.flow.send_replace(Flow::Open);
    }

    /// Ends the running watches.
    pub fn break_watches(&self, error: BackendError) {
        self.flow.send_replace(Flow::Broken(error));
    }
}

async fn pass(
    mut from: mpsc::Receiver<WatchItem>,
    to: mpsc::Sender<WatchItem>,
    mut flow: watch::Receiver<Flow>,
) {
    loop {
        let now = flow.borrow_and_update().clone();
        let item = match now {
            Flow::Broken(error) => {
                let _ = to.send(WatchItem::Failed(error)).await;
                return;
            }
            Flow::Held => {
                tokio::select! {
                    changed = flow.changed() => if changed.is_err() { return },
                    () = to.closed() => return,
                }
                continue;
            }
            Flow::Open => tokio::select! {
                biased;
                changed = flow.changed() => if changed.is_err() { return } else { continue },
                () = to.closed() => return,
                item = from.recv() => item,
            },
        };
        let Some(item) = item else { return };
        if to.send(item).await.is_err() {
            return;
        }
    }
}

#[async_trait]
impl Backend for GatedBackend {
    async fn current_revision(&self) -> Result<Revision> {
        self.checks.fetch_add(1, SeqCst);
        self.permits.acquire().await.unwrap().forget();
        match self.pretended.load(SeqCst) {
            0 => self.inner.current_revision().await,
            pretended => Ok(Revision(pretended)),
        }
    }

    async fn get(&self, key: &str, at: Option<Revision>) -> Result<(Option<KeyValue>, Revision)> {
        self.reads.fetch_add(1, SeqCst);
        self.inner.get(key, at).await
    }

    async fn range(&self, keys: Range<String>, limit: usize, at: Option<Revision>) -> Result<RangeResult> {
        self.reads.fetch_add(1, SeqCst);
        if self.refuse_ranges.load(SeqCst) {
            return Err(BackendError::Unavailable("refused by the test".to_owned()));
        }
        self.inner.range(keys, limit, at).await
    }

    async fn write(&self, write: CompareAndSwap) -> Result<WriteOutcome> {
        self.inner.write(write).await
    }

    async fn watch(&self, keys: Range<String>, after: Revision) -> Result<mpsc::Receiver<WatchItem>> {
        self.watches.fetch_add(1, SeqCst);
        // A break affects only the watches opened before it.
        self.flow.send_if_modified(|flow| {
            let broken = matches!(flow, Flow::Broken(_));
            if broken {
                *flow = Flow::Open;
            }
            broken
        });
        let (to, items) = mpsc::channel(4);
        tokio::spawn(pass(self.inner.watch(keys, after).await?, to, self.flow.subscribe()));
        Ok(items)
    }

    async fn request_progress(&self) -> Result<()> {
        self.inner.request_progress().await
    }

    async fn compact(&self, at: Revision) -> Result<()> {
        self.inner.compact(at).await
    }
}
