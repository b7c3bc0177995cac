//! Tests of what a subscriber keeps in memory while its client does not read.

use std::sync::Weak;

use drydock_storage::cache::{Config as CacheConfig, WatchCache};
use drydock_storage::storage::Storage;
use drydock_storage::store::Store;
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};

use super::*;
use crate::config::Config;
use crate::facts::{State, Update};
use crate::filter::{Attributes, Entity};
use crate::hub::Stores;
use crate::index::Index;

async fn hubs(directory: &std::path::Path) -> Arc<Hubs> {
    let backend =
        Arc::new(SqliteBackend::open(directory.join("store.db"), SqliteOptions::default()).unwrap());
    let cache = |resource| -> Arc<dyn Storage> {
        Arc::new(WatchCache::start(Store::new(backend.clone(), "g", resource), CacheConfig::default()))
    };
    let (maintenances, evictions) = (cache("nodemaintenances"), cache("evictionrequests"));
    Arc::new(Hubs::new(Stores { maintenances, evictions }, Config::default()))
}

#[tokio::test]
async fn nothing_is_held_of_changes_that_newer_ones_replaced_while_nobody_read() {
    let directory = tempfile::tempdir().unwrap();
    let watch = Watch { filter: Filter::all(Entity::Eviction), token: None, interval: Duration::ZERO };
    let mut subscriber =
        Subscriber::open(hubs(directory.path()).await, "tester".into(), watch, None).await.unwrap();
    while subscriber.next().await.unwrap().event != SNAPSHOT_COMPLETE {}
    let mut index = Index::new(Entity::Eviction, Config::default().tombstones, 0);
    let mut changes: Vec<Weak<Entry>> = Vec::new();
    let position = subscriber.attached.reached.position;
    for serial in position.serial + 1..=position.serial + 1000 {
        let state = State { attributes: Attributes::default(), event: serial.to_be_bytes().to_vec().into() };
        let update = Update { entity: Entity::Eviction, key: "shop/uid".into(), state: Some(state) };
        let change = index.apply(update, Position { serial, ..position }, 0).unwrap();
        changes.push(Arc::downgrade(&change.entry));
        // As the hub does.
        let view = subscriber.attached.subscription.view();
        assert!(view.apply(&change));
        view.wake();
    }
    let held = changes.iter().filter(|change| change.strong_count() > 0).count();
    assert_eq!(held, 1, "the newest one");
    let newest = (position.serial + 1000).to_be_bytes();
    assert_eq!(subscriber.next().await.unwrap().event[..], newest);
}
