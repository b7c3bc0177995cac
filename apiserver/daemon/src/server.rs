//! Puts the server together and runs it until it is told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use drydock_api::eviction_request::EvictionRequestKind;
use drydock_api::eviction_request::interceptors::AllowedNames;
use drydock_api::node_maintenance::NodeMaintenanceKind;
use drydock_machinery::kind::Kind;
use drydock_server::admission::Admission;
use drydock_server::admission::namespace_lifecycle::{NamespaceLifecycle, Namespaces};
use drydock_server::api_group::{ApiGroup, Identity, Resource};
use drydock_server::authn::{Authenticator, HostConfigSource, TokenReviewer};
use drydock_server::authz::Authorizer;
use drydock_server::chain::Chain;
use drydock_server::health::{Check, Health};
use drydock_server::limits::InFlight;
use drydock_server::metrics::Metrics;
use drydock_server::serve::Patience;
use drydock_server::tls::{ServingCertificate, self_signed};
use drydock_server::{serve, tls as server_tls};
use drydock_storage::backend::Backend;
use drydock_storage::cache::Cache;
use drydock_storage::fence::Fences;
use drydock_storage::storage::Storage;
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::admission::{NodeCount, NodeDelete, PodDelete};
use crate::flags::Flags;
use crate::host::{self, HostNamespaces, HostNodes};
use crate::{store, trust};

/// Serves until SIGTERM or SIGINT.
pub async fn run(flags: Flags) -> anyhow::Result<()> {
    let certificate = Arc::new(serving_certificate(&flags)?);
    let tls = server_tls::server_config(certificate.clone())?;
    let trusted = HostConfigSource::new(trust::by_flags(&flags)?);
    let client = host::client("--kubeconfig", flags.kubeconfig.as_deref()).await?;
    let reviews = Reviews::new(&flags, &client).await?;
    let backend = store::open(&flags).await?;
    let address = flags.address();
    let listener = serve::bind(address).await?;

    let stop = CancellationToken::new();
    store::compact(&backend, stop.clone());
    let stopping = Arc::new(AtomicBool::new(false));
    let parts = Parts::follow(client.clone(), trusted.clone(), &backend, reviews, stopping.clone());
    let chain = Arc::new(parts.chain(&flags, stop.clone()));
    tokio::spawn(certificate.follow());
    tokio::spawn(trust::follow_files(trusted.clone(), flags.clone()));
    tokio::spawn(trusted.follow(client));
    announce(address, &flags);
    tokio::spawn(stop_on_signal(stopping, stop.clone(), flags.shutdown_delay_duration));
    serve::serve(listener, tls, chain, stop, Patience::default()).await;
    tracing::info!("stopped");
    Ok(())
}

/// Who answers questions about callers.
struct Reviews {
    tokens: TokenReviewer,
    authorizer: Arc<Authorizer>,
}

impl Reviews {
    async fn new(flags: &Flags, client: &Client) -> anyhow::Result<Self> {
        let authn =
            other_client("--authentication-kubeconfig", &flags.authentication_kubeconfig, client).await?;
        let authz =
            other_client("--authorization-kubeconfig", &flags.authorization_kubeconfig, client).await?;
        Ok(Self { tokens: TokenReviewer::new(authn), authorizer: Arc::new(Authorizer::new(authz)) })
    }
}

async fn other_client(flag: &str, file: &Option<PathBuf>, client: &Client) -> anyhow::Result<Client> {
    match file {
        Some(file) => host::client(flag, Some(file)).await,
        None => Ok(client.clone()),
    }
}

/// Everything that follows something outside.
struct Parts {
    trusted: HostConfigSource,
    reviews: Reviews,
    namespaces: Arc<HostNamespaces>,
    nodes: Arc<HostNodes>,
    backend: Arc<dyn Backend>,
    stopping: Arc<AtomicBool>,
}

impl Parts {
    fn follow(
        client: Client,
        trusted: HostConfigSource,
        backend: &Arc<dyn Backend>,
        reviews: Reviews,
        stopping: Arc<AtomicBool>,
    ) -> Self {
        let namespaces = Arc::new(HostNamespaces::follow(client.clone()));
        let nodes = Arc::new(HostNodes::follow(client));
        Self { trusted, reviews, namespaces, nodes, backend: backend.clone(), stopping }
    }

    fn chain(self, flags: &Flags, stop: CancellationToken) -> Chain {
        let allowed = AllowedNames::default().with(flags.allowed_interceptor_names.iter().cloned());
        let requests: Arc<dyn Kind> =
            Arc::new(EvictionRequestKind::new(flags.heartbeat_deadline).with_allowed_names(allowed));
        let maintenances: Arc<dyn Kind> = Arc::new(NodeMaintenanceKind::new());
        let request_cache = store::cached(&self.backend, requests.names());
        let maintenance_cache = store::cached(&self.backend, maintenances.names());
        let health = self.health(&[request_cache.clone(), maintenance_cache.clone()]);
        let resources = vec![
            Resource {
                kind: requests,
                storage: request_cache,
                admission: self.request_admission(flags.require_pod_delete_permission),
            },
            Resource {
                kind: maintenances,
                storage: maintenance_cache,
                admission: vec![
                    Arc::new(NodeDelete::new(self.reviews.authorizer.clone(), self.nodes.clone())),
                    Arc::new(NodeCount::new(self.nodes)),
                ],
            },
        ];
        let metrics = Metrics::new();
        let identity = Identity { title: "Drydock", version: env!("CARGO_PKG_VERSION") };
        let api = ApiGroup::new(resources)
            .with_identity(identity)
            .with_authorizer(self.reviews.authorizer.clone())
            .with_fences(Arc::new(Fences::new(self.backend.clone())))
            .with_watch_events(metrics.watch_events())
            .with_shutdown(stop);
        Chain {
            authenticator: Authenticator::new(self.trusted, Some(self.reviews.tokens), true),
            authorizer: self.reviews.authorizer,
            limits: InFlight::new(flags.max_requests_inflight, flags.max_mutating_requests_inflight),
            health,
            metrics,
            api,
            request_timeout: flags.request_timeout,
        }
    }

    fn request_admission(&self, pod_delete: bool) -> Vec<Arc<dyn Admission>> {
        let mut admission: Vec<Arc<dyn Admission>> =
            vec![Arc::new(NamespaceLifecycle::new(self.namespaces.clone()))];
        if pod_delete {
            admission.push(Arc::new(PodDelete::new(self.reviews.authorizer.clone())));
        }
        admission
    }

    fn health(&self, caches: &[Arc<Cache>]) -> Health {
        let caches = caches.to_vec();
        let (trusted, namespaces, nodes) =
            (self.trusted.clone(), self.namespaces.clone(), self.nodes.clone());
        let stopping = self.stopping.clone();
        Health::default()
            .live("ping", Arc::new(|| Ok(())))
            .ready("storage", check("a cache is not filled", move || caches.iter().all(|c| c.ready())))
            .ready("authentication-config", check("not read from the host", move || trusted.is_ready()))
            .ready("namespaces", check("not read from the host", move || namespaces.ready()))
            .ready("nodes", check("not read from the host", move || nodes.ready()))
            .ready("shutdown", check("shutting down", move || !stopping.load(Ordering::Relaxed)))
    }
}

fn check(why: &'static str, healthy: impl Fn() -> bool + Send + Sync + 'static) -> Check {
    Arc::new(move || if healthy() { Ok(()) } else { Err(why.to_owned()) })
}

fn serving_certificate(flags: &Flags) -> anyhow::Result<ServingCertificate> {
    if let (Some(certificate), Some(key)) = (&flags.tls_cert_file, &flags.tls_private_key_file) {
        return ServingCertificate::load(certificate.clone(), key.clone()).context("--tls-cert-file");
    }
    let names = served_names(flags);
    let files = self_signed::ensure(&flags.cert_dir, &names)
        .with_context(|| format!("--cert-dir: {}", flags.cert_dir.display()))?;
    tokio::spawn(self_signed::renew(flags.cert_dir.clone(), names));
    Ok(ServingCertificate::load(files.certificate, files.key)?)
}

fn served_names(flags: &Flags) -> Vec<String> {
    let mut names = flags.tls_san.clone();
    names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    names
}

fn announce(address: SocketAddr, flags: &Flags) {
    let storage = if flags.etcd_servers.is_empty() { "embedded" } else { "etcd" };
    tracing::info!(%address, storage, version = env!("CARGO_PKG_VERSION"), "drydock-apiserver serves");
}

/// Turns unready at the first signal, waits the delay, then ends everything in order.
async fn stop_on_signal(stopping: Arc<AtomicBool>, stop: CancellationToken, delay: Duration) {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return tracing::error!("signals cannot be listened to");
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("shutting down: unready, then no new connections, then what is in flight ends");
    stopping.store(true, Ordering::Relaxed);
    tokio::time::sleep(delay).await;
    stop.cancel();
}
