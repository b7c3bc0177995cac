//! The pages that a move reads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use async_trait::async_trait;
use drydock_storage::backend::{CompareAndSwap, RangeResult, WatchItem, WriteOutcome};
use tokio::sync::mpsc;

use crate::migrate::*;

/// A store, and how often all of its keys were counted.
struct CountingBackend(SqliteBackend, AtomicUsize);

#[async_trait]
impl Backend for CountingBackend {
    async fn current_revision(&self) -> Result<Revision> {
        self.0.current_revision().await
    }

    async fn get(&self, key: &str, at: Option<Revision>) -> Result<(Option<KeyValue>, Revision)> {
        self.0.get(key, at).await
    }

    async fn range(&self, keys: Range<String>, limit: usize, at: Option<Revision>) -> Result<RangeResult> {
        self.1.fetch_add(1, SeqCst);
        self.0.range(keys, limit, at).await
    }

    async fn page(&self, keys: Range<String>, limit: usize, at: Option<Revision>) -> Result<Vec<KeyValue>> {
        self.0.page(keys, limit, at).await
    }

    async fn write(&self, write: CompareAndSwap) -> Result<WriteOutcome> {
        self.0.write(write).await
    }

    async fn watch(&self, keys: Range<String>, after: Revision) -> Result<mpsc::Receiver<WatchItem>> {
        self.0.watch(keys, after).await
    }

    async fn request_progress(&self) -> Result<()> {
        self.0.request_progress().await
    }

    async fn compact(&self, at: Revision) -> Result<()> {
        self.0.compact(at).await
    }
}

/// Regression: with each page of 500, all following keys were counted: ten million for 100,000 objects.
#[tokio::test]
async fn objects_are_counted_once_and_each_is_read_once() {
    let directory = tempfile::tempdir().unwrap();
    for count in [1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE] {
        let path = directory.path().join(format!("{count}.db"));
        let store = CountingBackend(
            SqliteBackend::open(path, SqliteOptions::default()).unwrap(),
            AtomicUsize::new(0),
        );
        let key = |n: usize| format!("/{n:05}");
        let write = |n| CompareAndSwap {
            key: key(n),
            expected: None,
            value: Some("x".into()),
            guard: None,
            priority: Default::default(),
        };
        futures::future::join_all((0..count).map(|n| store.write(write(n)))).await;
        let mut pages = Pages::new(&store, store.current_revision().await.unwrap());
        assert!(pages.any(&Progress::silent()).await.unwrap());
        let mut keys = Vec::new();
        while let Some(pairs) = pages.next(&Progress::silent()).await.unwrap() {
            keys.extend(pairs.into_iter().map(|pair| pair.key));
        }
        assert_eq!(keys, (0..count).map(key).collect::<Vec<_>>());
        assert_eq!((pages.read, pages.total, store.1.load(SeqCst)), (count as u64, count as u64, 1));
    }
}
