//! A whole server from options and kinds (k8s.io/apiserver pkg/server, GenericAPIServer):
//!
//! ```no_run
//! # use drydock_machinery::strategy::Strategy;
//! # use drydock_server::generic::{Options, Server};
//! # async fn main_of(options: Options, strategy: impl Strategy) -> anyhow::Result<()> {
//! let mut server = Server::build(options).await?;
//! server.install(strategy.into_kind(), Vec::new());
//! server.run().await
//! # }
//! ```
//!
//! A kind and these lines are an aggregated API. What else a deployment needs (admission, reflectors) is built from
//! the server's parts between `build` and `run`.

mod assemble;
mod mux;
mod options;
mod run;
mod trust;

use std::path::Path;
use std::sync::Arc;

use drydock_machinery::kind::Kind;
use drydock_machinery::versions::Versions;
use drydock_serving::auth::authn::{HostConfigSource, TokenReviewer};
use drydock_serving::auth::authz::Authorizer;
use drydock_serving::auth::review::ReviewLimiter;
use drydock_serving::health::HealthCheck;
use drydock_serving::tasks::ProgramTasks;
use drydock_serving::{host, serve, tls};
use drydock_storage::backend::Backend;
use drydock_storage::cache::WatchCache;
use drydock_storage::location;
use drydock_storage::storage::Storage;
use kube::Client;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use mux::Mux;
pub use options::{HostFiles, Options, Trust};

pub use crate::api_group::Identity;

use crate::admission::namespace_lifecycle::NamespaceLifecycle;
use crate::admission::{Admission, HostNamespaces};
use crate::audit::{Audit, AuditMetrics};
use crate::flow_control::PriorityLevels;
use crate::grpc::Service;
use crate::handlers::Resource;
use crate::metrics::Metrics;

/// A server whose port and storage are open. It serves while it is run.
pub struct Server {
    options: Options,
    listener: TcpListener,
    tls: ServerConfig,
    trusted: HostConfigSource,
    client: Client,
    tokens: TokenReviewer,
    authorizer: Arc<Authorizer>,
    namespaces: Arc<HostNamespaces>,
    backend: Arc<dyn Backend>,
    resources: Vec<Resource>,
    /// The kinds in their storage versions, with their caches.
    caches: Vec<(Arc<dyn Kind>, Arc<WatchCache>)>,
    of_all: Vec<Arc<dyn Admission>>,
    /// Checks of /readyz.
    checks: Vec<(&'static str, HealthCheck)>,
    metrics: Metrics,
    audit: Option<Arc<Audit>>,
    service: Option<Arc<dyn Service>>,
    tasks: ProgramTasks,
}

impl Server {
    /// Opens the port, the storage, the audit log and the clients of the host. Fails if the options name something
    /// that cannot be opened.
    pub async fn build(options: Options) -> anyhow::Result<Self> {
        let tasks = ProgramTasks::new(CancellationToken::new());
        let tls = tls::server_config(options.serving.certificate(&tasks)?)?;
        let trusted = HostConfigSource::new(trust::by_options(&options.trust)?);
        let files = &options.host;
        let client = host::client("--kubeconfig", files.kubeconfig.as_deref()).await?;
        let tokens = or(&client, "--authentication-kubeconfig", files.authentication.as_deref()).await?;
        let reviews = or(&client, "--authorization-kubeconfig", files.authorization.as_deref()).await?;
        let levels = PriorityLevels::new(options.controller_users.iter().cloned());
        let controllers = levels.clone();
        let limiter = Arc::new(ReviewLimiter::new(move |user| levels.of(user).is_of_cluster()));
        let authorizer = Authorizer::new(reviews, limiter.clone())
            .asking_in_general(move |user| controllers.of(user).is_asked_in_general());
        let (mut metrics, counts) = (Metrics::new(), AuditMetrics::default());
        counts.register(metrics.registry());
        metrics.registry().register_collector(Box::new(trust::RefusedConfigs(trusted.clone())));
        let audit = Audit::open(&options.audit, counts)?;
        let backend = options.storage.open().await?;
        let listener = serve::bind(options.address).await?;
        Ok(Self {
            listener,
            tls,
            trusted,
            tokens: TokenReviewer::new(tokens, limiter).for_audiences(options.api_audiences.clone()),
            authorizer: Arc::new(authorizer),
            namespaces: Arc::new(HostNamespaces::follow(client.clone(), &tasks)),
            client,
            backend,
            resources: Vec::new(),
            caches: Vec::new(),
            of_all: Vec::new(),
            checks: Vec::new(),
            metrics,
            audit,
            service: None,
            tasks,
            options,
        })
    }

    /// A client of the host.
    pub fn host(&self) -> Client {
        self.client.clone()
    }

    /// The authorizer that asks the host.
    pub fn authorizer(&self) -> Arc<Authorizer> {
        self.authorizer.clone()
    }

    /// The host's namespaces.
    pub fn namespaces(&self) -> Arc<HostNamespaces> {
        self.namespaces.clone()
    }

    /// The tasks without which the server does not do what it should: [`Server::run`] fails when one of them ends.
    pub fn tasks(&self) -> &ProgramTasks {
        &self.tasks
    }

    /// What /metrics shows, to register metrics with.
    pub fn metrics(&mut self) -> &mut Metrics {
        &mut self.metrics
    }

    /// Group, version and plural of each kind that has been installed, once for each version of it.
    pub fn served(&self) -> Vec<(String, String, String)> {
        let names = self.resources.iter().map(|resource| resource.kind.names());
        names.map(|it| (it.group.to_owned(), it.version.to_owned(), it.plural.to_owned())).collect()
    }

    /// Adds admission for writes to every kind. It runs after the kind's own.
    pub fn admit_all(&mut self, admission: Vec<Arc<dyn Admission>>) {
        self.of_all.extend(admission);
    }

    /// Serves a kind, in one version or in several ([`Versions`]), from a storage of its own. All versions share the
    /// storage, with the quota of the storage version. Objects of a namespaced kind can be created only in namespaces
    /// that exist and are not terminating. `admission` runs after that check, and sees objects in the version of the
    /// request.
    pub fn install(&mut self, kind: impl Into<Versions>, admission: Vec<Arc<dyn Admission>>) {
        let versions = kind.into();
        let resource = self.in_storage_version(versions.storage_version().clone(), admission);
        self.resources.extend(resource.in_versions(versions));
    }

    fn in_storage_version(&mut self, kind: Arc<dyn Kind>, admission: Vec<Arc<dyn Admission>>) -> Resource {
        let cache = location::cached(&self.backend, kind.names(), kind.quota());
        self.caches.push((kind.clone(), cache.clone()));
        let mut checks: Vec<Arc<dyn Admission>> = Vec::new();
        if kind.names().namespaced {
            checks.push(Arc::new(NamespaceLifecycle::new(self.namespaces.clone())));
        }
        checks.extend(admission);
        Resource { kind, usage: cache.usage(), storage: cache, admission: checks, versions: None }
    }

    /// Returns the watch cache of an installed kind, for reads that do not go through the API. Its objects are of the
    /// storage version.
    pub fn storage(&self, group: &str, plural: &str) -> Option<Arc<dyn Storage>> {
        let is_of = |resource: &&Resource| {
            let names = resource.kind.names();
            (names.group, names.plural) == (group, plural)
        };
        // The storage version is the first.
        self.resources.iter().find(is_of).map(|resource| resource.storage.clone())
    }

    /// Serves a gRPC service on the same port, with health and reflection. Only one service can be mounted: a second
    /// call replaces the first.
    pub fn mount(&mut self, service: Arc<dyn Service>) {
        self.service = Some(service);
    }

    /// Adds a check of /readyz, which fails with the reason `why` while `holds` returns false.
    pub fn ready_when(
        &mut self,
        name: &'static str,
        why: &'static str,
        holds: impl Fn() -> bool + Send + Sync + 'static,
    ) {
        self.checks.push((name, Arc::new(move || if holds() { Ok(()) } else { Err(why.to_owned()) })));
    }
}

/// Returns a client made from `file`, or `client` if there is no file.
async fn or(client: &Client, flag: &str, file: Option<&Path>) -> anyhow::Result<Client> {
    match file {
        Some(file) => host::client(flag, Some(file)).await,
        None => Ok(client.clone()),
    }
}
