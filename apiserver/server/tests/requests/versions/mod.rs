//! Flunder, a kind in two versions: `v1alpha1`, in which it is stored, and `v1beta1`.

mod apply;
mod conversion;
mod documents;
mod reads;
mod round_trip;
mod v1alpha1;
mod v1beta1;
mod writes;

use std::sync::Arc;

use drydock_machinery::strategy::Strategy;
use drydock_machinery::versions::Versions;
use drydock_server::api_group::ApiGroup;
use drydock_server::handlers::Resource;
use drydock_storage::backend::Backend;
use drydock_storage::cache::{Config, WatchCache};
use drydock_storage::store::Store;
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{NotTheReader, Server, merge};

const GROUP: &str = "wardle.example.com";
const ALPHA: &str = "/apis/wardle.example.com/v1alpha1/namespaces/ns/flunders";
const BETA: &str = "/apis/wardle.example.com/v1beta1/namespaces/ns/flunders";

fn versions() -> Versions {
    let alpha = Versions::new(v1alpha1::FlunderStrategy.into_kind());
    alpha.with_version(v1beta1::FlunderStrategy.into_kind(), conversion::References).unwrap()
}

async fn server() -> Server {
    let dir = tempfile::tempdir().unwrap();
    let opened = SqliteBackend::open(dir.path().join("db"), SqliteOptions::default());
    let backend: Arc<dyn Backend> = Arc::new(opened.unwrap());
    let versions = versions();
    let cache = WatchCache::start(Store::new(backend.clone(), GROUP, "flunders"), Config::default());
    cache.wait_until_ready().await;
    let kind = versions.storage_version().clone();
    let stored =
        Resource { kind, storage: Arc::new(cache), admission: Vec::new(), usage: None, versions: None };
    let shutdown = CancellationToken::new();
    let api = ApiGroup::new(stored.in_versions(versions))
        .with_shutdown(shutdown.clone())
        .with_authorizer(Arc::new(NotTheReader));
    Server { api, backend, shutdown, caches: Default::default(), _dir: dir }
}

/// A flunder of a version, with `extra` merged in.
fn flunder(version: &str, extra: Value) -> Value {
    let mut object = json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": "Flunder", "metadata": {"name": "f"},
    });
    merge(&mut object, extra);
    object
}

fn alpha(extra: Value) -> Value {
    flunder("v1alpha1", extra)
}

fn beta(extra: Value) -> Value {
    flunder("v1beta1", extra)
}

/// Returns who owns what: `manager/operation version: fields`, in the order of the entries.
fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let owner = |entry: Value| {
        let version = text(&entry["apiVersion"]).replace(&format!("{GROUP}/"), "");
        let (manager, operation) = (text(&entry["manager"]), text(&entry["operation"]));
        format!("{manager}/{operation} {version}: {}", entry["fieldsV1"])
    };
    entries.into_iter().map(owner).collect()
}
