//! An etcd that runs short of space: history is compacted before it is full, and also when it is full already.
//!
//! Regression: compaction began with a put, which an etcd without space refuses. So it never compacted, and stayed
//! full until somebody compacted it by hand.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use drydock_storage::backend::{BackendError, CompactionTurn, CompareAndSwap, Priority, Revision};
use drydock_storage::retention::Retention;
use drydock_storage::testing::backend_suite::harness::*;
use drydock_storage_etcd::{EtcdBackend, EtcdConfig};
use tokio_util::task::AbortOnDropHandle;

use drydock_storage_etcd::testing::TestEtcd;

const OBJECT: usize = 64 << 10;

async fn put(
    store: &Store,
    key: &str,
    expected: Option<Revision>,
    priority: Priority,
) -> Result<Revision, BackendError> {
    let value = Some(Bytes::from(vec![b'x'; OBJECT]));
    let write = CompareAndSwap { key: key.to_owned(), expected, value, guard: None, priority };
    store.write(write).await.map(committed)
}

/// Starts an etcd whose quota is `bytes`.
fn start_with_quota(bytes: u64) -> TestEtcd {
    TestEtcd::start_with("http", &[&format!("--quota-backend-bytes={bytes}")])
}

/// Returns a backend that keeps no history, and the task that compacts it.
async fn compacting(etcd: &TestEtcd) -> (Store, AbortOnDropHandle<()>) {
    let none = Duration::ZERO;
    let retention = Retention { half: none, three_quarters: none, full: none };
    let config = EtcdConfig { retention, ..etcd.config("/suite") };
    let store: Store = Arc::new(EtcdBackend::connect(&config).await.unwrap());
    let compacts = store.clone();
    let task = tokio::spawn(async move { compacts.compact_early().await });
    (store, AbortOnDropHandle::new(task))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_given_up_before_etcd_is_full() {
    let quota = 48 << 20;
    let etcd = start_with_quota(quota);
    let (store, _compactor) = compacting(&etcd).await;
    let first = put(&store, "/a", None, Priority::Ordinary).await.unwrap();
    let mut at = first;
    for _ in 0..3 * quota / OBJECT as u64 {
        at = put(&store, "/a", Some(at), Priority::Ordinary).await.unwrap();
    }
    // Until etcd has reported its size again, all that was written since counts. Between two tries etcd answers a read.
    while let Err(refusal) = put(&store, "/another", None, Priority::Ordinary).await {
        assert!(refusal.to_string().contains("its --quota-backend-bytes"), "{refusal}");
        store.current_revision().await.unwrap();
    }
    assert!(store.get("/a", Some(at)).await.unwrap().0.is_some());
    assert!(matches!(store.get("/a", Some(first)).await, Err(BackendError::Compacted { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_without_space_is_compacted() {
    let etcd = start_with_quota(16 << 20);
    let store = etcd.backend("/suite").await;
    let first = put(&store, "/a", None, Priority::Ordinary).await.unwrap();
    let mut at = first;
    let full = loop {
        match put(&store, "/a", Some(at), Priority::Ordinary).await {
            Ok(next) => at = next,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, BackendError::NoSpace(_)), "{full:?}");
    let stored = store.get("/a", None).await.unwrap().0.map(|stored| stored.mod_revision);
    assert_eq!(stored, Some(at), "the refused write was carried out");
    let turn = store.compaction_turn(CompactionTurn::default()).await.unwrap();
    store.compaction_turn(turn).await.unwrap();
    assert!(matches!(store.get("/a", Some(first)).await, Err(BackendError::Compacted { .. })));
    assert!(store.get("/a", Some(at)).await.unwrap().0.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ordinary_creates_leave_the_last_part_of_etcd_to_others() {
    let etcd = start_with_quota(64 << 20);
    let (store, _compactor) = compacting(&etcd).await;
    let status = put(&store, "/status", None, Priority::Ordinary).await.unwrap();
    let mut made = 0;
    let error = loop {
        match put(&store, &format!("/{made}"), None, Priority::Ordinary).await {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("its --quota-backend-bytes is 67108864"), "{error} after {made}");
    assert!(store.refuses_writes().is_some() && store.shortage().is_some_and(|left| left.is_full));
    let grown = put(&store, "/status", Some(status), Priority::Ordinary).await;
    assert!(matches!(grown, Err(BackendError::NoSpace(_))), "{grown:?}");
    put(&store, "/status", Some(status), Priority::Needed).await.unwrap();
    put(&store, "/ours", None, Priority::System).await.unwrap();
    put(&store, "/unscoped/a", None, Priority::Cluster).await.unwrap();
}
