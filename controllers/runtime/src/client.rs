//! The client: one for the host and for the kinds that it proxies to us.

use std::path::Path;
use std::time::Duration;

use http::HeaderValue;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio_util::sync::CancellationToken;
use tower::util::MapRequestLayer;
use tracing::{info, warn};

use crate::error::with_causes;
use crate::lease::LeaseHandle;

/// Carries the lease's epoch with every write: our API server refuses a writer whose term is over, however late its
/// write comes. A host does not know it.
pub const EPOCH_HEADER: &str = "drydock-lease-epoch";

/// Why no client could be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig could not be used.
    #[error("--kubeconfig {path}")]
    Kubeconfig {
        /// Path as given.
        path: String,
        /// What is wrong with it.
        source: Box<kube::config::KubeconfigError>,
    },
    /// Neither a kubeconfig nor an in-cluster configuration.
    #[error("no --kubeconfig, and no configuration found in the environment")]
    Infer(#[source] Box<kube::config::InferConfigError>),
    /// The client could not be built from the configuration.
    #[error("cannot build a client")]
    Build(#[source] Box<kube::Error>),
}

/// Reads the configuration: the given kubeconfig, or what a pod finds around itself.
pub async fn load_config(kubeconfig: Option<&Path>) -> Result<Config, ClientError> {
    let mut config = match kubeconfig {
        Some(path) => from_file(path).await?,
        None => Config::infer().await.map_err(|e| ClientError::Infer(Box::new(e)))?,
    };
    // Retries belong to the queues, which know what an answer means: a 429 of an eviction is an answer.
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(10));
    Ok(config)
}

async fn from_file(path: &Path) -> Result<Config, ClientError> {
    let wrap =
        |source| ClientError::Kubeconfig { path: path.display().to_string(), source: Box::new(source) };
    let kubeconfig = Kubeconfig::read_from(path).map_err(wrap)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(wrap)
}

/// Builds a client without any request rate of its own. With a lease, each write carries its epoch.
pub fn build(config: Config, lease: Option<LeaseHandle>) -> Result<Client, ClientError> {
    let builder = ClientBuilder::try_from(config).map_err(|e| ClientError::Build(Box::new(e)))?;
    let stamp = MapRequestLayer::new(move |mut request: http::Request<kube::client::Body>| {
        let epoch = lease.as_ref().and_then(LeaseHandle::epoch);
        if let Some(epoch) = epoch.filter(|_| request.method() != http::Method::GET) {
            request.headers_mut().insert(EPOCH_HEADER, HeaderValue::from(epoch));
        }
        request
    });
    Ok(builder.with_layer(&stamp).build())
}

/// Waits until the API server answers; says so in the log. `false` if stopped before.
pub async fn wait_for_server(client: &Client, stop: &CancellationToken) -> bool {
    let mut delay = Duration::from_millis(250);
    loop {
        let answer = tokio::select! {
            () = stop.cancelled() => return false,
            answer = tokio::time::timeout(Duration::from_secs(10), client.apiserver_version()) => answer,
        };
        match answer {
            Ok(Ok(version)) => {
                info!(version = version.git_version, "API server answers");
                return true;
            }
            Ok(Err(error)) => {
                warn!(error = with_causes(&error), retry_in = ?delay, "waiting for the API server")
            }
            Err(_) => warn!(retry_in = ?delay, "waiting for the API server: no answer in time"),
        }
        tokio::select! {
            () = stop.cancelled() => return false,
            () = tokio::time::sleep(delay) => {}
        }
        delay = (delay * 2).min(Duration::from_secs(10));
    }
}
