//! The host: the client that reaches it, connections to its Services, and reflectors of its objects.
//!
//! It is reached over one HTTP/2 connection, as client-go does it. Nearly every request about a new name
//! needs a review of access. Over HTTP/1 each review in flight would need a connection of its own, and the answer of
//! a host whose machine has gone would be waited for forever.

mod answer_limit;
mod dialer;
mod observe;
mod service;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use drydock_logging::WatchFailures;
use futures::{FutureExt, StreamExt};
use http::StatusCode;
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client as HttpClient};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::api::PartialObjectMeta;
use kube::client::{Body, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::{Store, store};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Config};
use tower::timeout::TimeoutLayer;
use tower::{BoxError, Layer, ServiceBuilder, service_fn};

use answer_limit::{Limited, SILENT_WATCH, limited};
pub use dialer::{Dialer, ServiceRef};
use observe::Observe;
pub use service::{ConnectFailure, service_client};

use crate::tasks::ProgramTasks;

/// Longest time for a connection to be made, TLS included.
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);
/// A server of the host answers with this when its etcd does not answer it. Another server may do better.
const LEFT_AFTER: &[StatusCode] = &[StatusCode::GATEWAY_TIMEOUT];

/// HTTP/2 keep-alive of a connection to the host: a host whose machine is gone would be waited for forever.
#[derive(Clone, Copy, Debug)]
pub struct KeepAlive {
    /// A connection that has been silent for so long is sent a ping
    /// (k8s.io/apimachinery pkg/util/net, HTTP2_READ_IDLE_TIMEOUT_SECONDS).
    pub interval: Duration,
    /// It is closed when it does not answer within this time (HTTP2_PING_TIMEOUT_SECONDS).
    pub timeout: Duration,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self { interval: Duration::from_secs(30), timeout: Duration::from_secs(15) }
    }
}

/// A client by `kubeconfig`, or by the in-cluster configuration, with a connection of its own. It never repeats a
/// request: only the caller knows what may be sent again.
pub async fn client(flag: &str, kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    client_with(KeepAlive::default(), flag, kubeconfig).await
}

/// The same with other keep-alive times.
pub async fn client_with(
    keep_alive: KeepAlive,
    flag: &str,
    kubeconfig: Option<&Path>,
) -> anyhow::Result<Client> {
    let config = config(flag, kubeconfig).await?;
    let from = kubeconfig.map(|file| format!("{flag} {}", file.display()));
    let from = from.unwrap_or_else(|| "the in-cluster configuration".to_owned());
    client_by(config, keep_alive, flag, from)
}

/// The configuration of a person: by `kubeconfig`, or by the files that KUBECONFIG names, or by ~/.kube/config. Never the
/// in-cluster configuration: a file that cannot be read must not lead to another cluster.
pub async fn config_of_person(
    flag: &str,
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> anyhow::Result<Config> {
    let read = match kubeconfig {
        Some(file) => Kubeconfig::read_from(file).with_context(|| format!("{flag}: {}", file.display()))?,
        None => Kubeconfig::read().with_context(|| format!("no kubeconfig can be read; give {flag}"))?,
    };
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(read, &options).await.context("the kubeconfig leads to no cluster")
}

/// A client of a person, by [`config_of_person`]. It never repeats a request.
pub fn client_of_person(config: Config) -> anyhow::Result<Client> {
    client_by(config, KeepAlive::default(), "--kubeconfig", "the kubeconfig".to_owned())
}

fn client_by(mut config: Config, keep_alive: KeepAlive, flag: &str, from: String) -> anyhow::Result<Client> {
    let observe = Observe::of(&config.cluster_url, from);
    // kube's own client handles proxies, and credentials that expire.
    if config.proxy_url.is_some() || config.auth_info.exec.is_some() {
        config.default_retry = false;
        config.connect_timeout = Some(CONNECTED_WITHIN);
        // Its connections are sent no pings.
        (config.read_timeout, config.reset_reader_on_write) = (Some(SILENT_WATCH), true);
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config)?;
        let service = service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        return Ok(Client::new(observe.layer(limited(service, LEFT_AFTER)), namespace));
    }
    over_http2(&config, keep_alive, observe).with_context(|| format!("{flag}: no client can be made of it"))
}

async fn config(flag: &str, kubeconfig: Option<&Path>) -> anyhow::Result<Config> {
    let Some(file) = kubeconfig else {
        return Config::incluster()
            .with_context(|| format!("no {flag} given and not running in a cluster; give {flag}"));
    };
    let read = Kubeconfig::read_from(file).with_context(|| format!("{flag}: {}", file.display()))?;
    Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("{flag}: {}", file.display()))
}

fn over_http2(config: &Config, keep_alive: KeepAlive, observe: Observe) -> anyhow::Result<Client> {
    let connector = ServiceBuilder::new()
        .map_future(Box::pin)
        .layer(TimeoutLayer::new(CONNECTED_WITHIN))
        .service(connector(config)?);
    let http: HttpClient<_, Body> = builder(keep_alive).build(connector);
    client_over(limited(http, LEFT_AFTER), config, observe)
}

/// How connections are kept.
fn builder(keep_alive: KeepAlive) -> Builder {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(keep_alive.interval)
        .http2_keep_alive_timeout(keep_alive.timeout)
        // After the host's GOAWAY, hyper treats a connection as idle although an answer is still to come.
        .http2_keep_alive_while_idle(true);
    builder
}

/// A client whose requests get the credentials of `config`, are logged, and are then sent by `http`.
fn client_over(http: Limited<Incoming>, config: &Config, observe: Observe) -> anyhow::Result<Client> {
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .layer(observe)
        .service(http);
    Ok(Client::new(service, config.default_namespace.clone()))
}

/// HTTP/2 where the host speaks it, HTTP/1 where it does not.
fn connector(config: &Config) -> anyhow::Result<HttpsConnector<HttpConnector>> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let mut https =
        HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().with_context(|| format!("tls-server-name {name:?}"))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(https.enable_all_versions().wrap_connector(tcp))
}

/// Drops what nothing reads, and what is most of the metadata of many objects.
fn drop_unread<K>(object: &mut PartialObjectMeta<K>) {
    let meta = &mut object.metadata;
    (meta.annotations, meta.managed_fields, meta.owner_references) = (None, None, None);
}

/// Most objects of a page of a list. A page is in memory as a whole before anything is dropped, and the metadata of one object may
/// have more than a megabyte.
const PAGE_SIZE: u32 = 50;

/// Reflects names, labels and times of all objects of one of the host's kinds.
pub struct Reflector<K>(Store<PartialObjectMeta<K>>)
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static;

impl<K> Reflector<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    /// Starts a task that reflects `what`. While the host cannot be reached it tries again with backoff, and logs that.
    pub fn start(what: &'static str, api: Api<PartialObjectMeta<K>>, tasks: &ProgramTasks) -> Self {
        let (reader, writer) = store();
        let config = watcher::Config::default().page_size(PAGE_SIZE);
        let events = watcher(api, config).default_backoff().modify(drop_unread);
        let mut events = reflector(writer, events).boxed();
        tasks.spawn_endless(format!("reflector of {what}"), async move {
            let mut failures = WatchFailures::default();
            while let Some(event) = events.next().await {
                if let Some(error) = failures.take_in(&event) {
                    tracing::warn!(error, "cannot follow the host's {what}; trying again");
                }
            }
        });
        Self(reader)
    }

    /// Whether all objects are known.
    pub fn ready(&self) -> bool {
        self.0.wait_until_ready().now_or_never().is_some_and(|r| r.is_ok())
    }

    /// The objects that are known now.
    pub fn known(&self) -> &Store<PartialObjectMeta<K>> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::{Request, Response};
    use k8s_openapi::api::core::v1::Node;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_hosts_objects_are_listed_in_short_pages() {
        let (asked, mut all) = tokio::sync::mpsc::channel(1);
        let service = service_fn(move |request: Request<Body>| {
            let _ = asked.try_send(request.uri().to_string());
            std::future::pending::<Result<Response<Body>, std::convert::Infallible>>()
        });
        let (api, tasks) = (Api::all(Client::new(service, "default")), ProgramTasks::new(Default::default()));
        let _reflector = Reflector::<Node>::start("nodes", api, &tasks);
        let first = all.recv().await.unwrap();
        assert!(first.contains("limit=50"), "{first}");
    }

    /// A kubelet may give its node 256 KiB of annotations.
    #[test]
    fn of_the_metadata_of_the_hosts_objects_annotations_owners_and_managed_fields_are_dropped() {
        let owner = json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"});
        let metadata = json!({
            "name": "n", "labels": {"zone": "a"}, "deletionTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"a": "b"}, "ownerReferences": [owner], "managedFields": [{"manager": "m"}],
        });
        let mut object: PartialObjectMeta<Node> =
            serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        drop_unread(&mut object);
        let kept = serde_json::to_value(&object.metadata).unwrap();
        assert_eq!(
            kept.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["deletionTimestamp", "labels", "name"]
        );
    }
}
