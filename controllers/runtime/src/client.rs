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
    // Retries belong to the queues, which know what an answer means: a 429 of an eviction is an answer, and after a 504
    // a write may have been made. They decide anew, on what stands there then; each write is bound to the UID or the
    // resourceVersion that it was decided on. kube sends a request again by itself after 429, 503 and 504.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;
    use kube::api::PostParams;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers every request in the same way, and counts them.
    async fn host(answer: &'static str) -> (u16, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<AtomicUsize>::default();
        let counted = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // To the end of the object that is sent.
                let mut request = vec![0; 1 << 16];
                while !request.contains(&b'}') {
                    assert!(stream.read(&mut request).await.unwrap() > 0);
                }
                counted.fetch_add(1, SeqCst);
                let head = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
            }
        });
        (port, requests)
    }

    /// Sent again, a create that had been made would be told that somebody else had made it.
    #[tokio::test]
    async fn a_write_of_unknown_outcome_is_sent_once() {
        for answer in ["429 Too Many Requests", "503 Service Unavailable", "504 Gateway Timeout"] {
            let (port, requests) = host(answer).await;
            let file = std::env::temp_dir().join(format!("drydock-client-{}-{port}", std::process::id()));
            let text = format!(
                "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: \
                 c}}}}], clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}], users: [{{name: c, user: \
                 {{}}}}]}}"
            );
            std::fs::write(&file, text).unwrap();
            let config = load_config(Some(&file)).await;
            std::fs::remove_file(&file).unwrap();
            let maps: Api<ConfigMap> = Api::namespaced(build(config.unwrap(), None).unwrap(), "ns");
            let made = maps.create(&PostParams::default(), &ConfigMap::default()).await;
            assert!(made.is_err(), "{answer}");
            assert_eq!(requests.load(SeqCst), 1, "{answer}");
        }
    }
}
