//! Measures the cost of a delivered message without HTTP and TLS: many subscribers with one filter, and objects that
//! change.
//!
//! `cargo run --release -p drydock-measure --example stream_message_cost -- SUBSCRIBERS SECONDS`
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use drydock_machinery::Object;
use drydock_storage::backend::Backend;
use drydock_storage::cache::{Config as CacheConfig, WatchCache};
use drydock_storage::storage::{NextState, ReadAt, Storage};
use drydock_storage::store::Store;
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};
use drydock_stream::{Config, StatusStream};
use http_body_util::{BodyExt, Full};
use serde_json::json;

const OBJECTS: u64 = 1000;
const EVENTS_A_SECOND: u64 = 100;
const WATCH: &str = "/drydock.status.v1alpha1.StatusService/WatchEvictions";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let (subscribers, seconds) = (arguments.next().unwrap_or(1000), arguments.next().unwrap_or(10));
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteBackend::open(directory.path().join("store.db"), SqliteOptions::default()).unwrap();
    let backend: Arc<dyn Backend> = Arc::new(store);
    let cache = |resource| {
        let store = Store::new(backend.clone(), "coordination.k8s.io", resource);
        Arc::new(WatchCache::start(store, CacheConfig::default()))
    };
    let evictions = cache("evictionrequests");
    let stream = StatusStream::new(cache("nodemaintenances"), evictions.clone(), Config::default());
    for n in 0..OBJECTS {
        write(evictions.as_ref(), n, 0).await;
    }
    let bytes = Arc::new(AtomicU64::new(0));
    let before = resident();
    for _ in 0..subscribers {
        tokio::spawn(read(stream.clone(), bytes.clone()));
    }
    quiet(&bytes).await;
    println!("{} KiB a subscriber", resident().saturating_sub(before) / subscribers);
    let (cpu, sent, started) = (cpu(), bytes.load(Relaxed), Instant::now());
    let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / EVENTS_A_SECOND));
    for n in 0..seconds * EVENTS_A_SECOND {
        tick.tick().await;
        write(evictions.as_ref(), n % OBJECTS, n + 1).await;
    }
    quiet(&bytes).await;
    let delivered = subscribers * seconds * EVENTS_A_SECOND;
    let micros = (self::cpu() - cpu).as_secs_f64() * 1e6 / delivered as f64;
    let message = (bytes.load(Relaxed) - sent) / delivered;
    println!("{micros:.2} us of CPU a delivered message of {message} bytes, in {:?}", started.elapsed());
}

async fn read(stream: Arc<StatusStream>, bytes: Arc<AtomicU64>) {
    let request = http::Request::post(WATCH).body(Full::new(Bytes::from_static(&[0; 5]))).unwrap();
    let mut body = stream.call("reader", request, || {}).await.into_body();
    while let Some(Ok(frame)) = body.frame().await {
        bytes.fetch_add(frame.data_ref().map_or(0, |data| data.len() as u64), Relaxed);
    }
}

/// Waits until subscribers have read nothing for a while.
async fn quiet(bytes: &AtomicU64) {
    let mut last = u64::MAX;
    while last != bytes.load(Relaxed) {
        last = bytes.load(Relaxed);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn write(storage: &dyn Storage, n: u64, version: u64) {
    let object = json!({
        "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "EvictionRequest",
        "metadata": {"namespace": "shop", "name": format!("uid-{n}"), "labels": {"team": "web"}},
        "spec": {"target": {"pod": {"name": format!("web-{n}"), "uid": "u"}}, "requesters": [{"name": "nodemaintenance.k8s.io"}]},
        "status": {
            "podInfo": {"nodeName": "n1", "podType": "Default", "priority": 0},
            "activeInterceptors": ["imperative-eviction.k8s.io"],
            "interceptors": [{"name": "imperative-eviction.k8s.io", "message": format!("try {version}")}],
        },
    });
    let object = Object::from(object.as_object().unwrap().clone());
    let key = format!("shop/uid-{n}");
    match storage.get(&key, ReadAt::Latest).await {
        Ok(present) => {
            storage.replace(&key, &present, NextState::Write(object), Default::default()).await.map(drop)
        }
        Err(_) => storage.create(&key, object, Default::default()).await.map(drop),
    }
    .unwrap();
}

/// Processor time of this process.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let ticks = text.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
    Duration::from_millis(10 * ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>())
}

/// Resident memory in KiB.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
