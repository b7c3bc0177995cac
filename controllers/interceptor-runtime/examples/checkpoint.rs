//! Lets the pod of a Job write a checkpoint before it is evicted: `checkpoint NAMESPACE`.
//!
//! It asks by an annotation of the pod, which the container reads through a downward API volume. The container, or a
//! program beside it, answers by two annotations: how far it is, and that it is done.
use anyhow::{Context, Result};
use drydock_interceptor_runtime::{EvictionTurn, InterceptorRuntime, TurnEnd};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;

const REQUESTED: &str = "checkpoint.example.com/requested";
const PROGRESS: &str = "checkpoint.example.com/progress";
const DONE: &str = "checkpoint.example.com/done";

async fn checkpoint(turn: EvictionTurn) -> Result<TurnEnd> {
    let pods: Api<Pod> = Api::namespaced(turn.client(), turn.namespace());
    // With the UID, another pod of the same name is not changed.
    let ask = json!({"metadata": {"uid": turn.pod_uid(), "annotations": {REQUESTED: "true"}}});
    pods.patch(turn.pod_name(), &PatchParams::default(), &Patch::Merge(ask)).await?;
    turn.set_message("waiting for the pod to write a checkpoint");
    let mut versions = watcher::watch_object(pods, turn.pod_name()).default_backoff().boxed();
    while let Some(pod) = versions.next().await {
        // An error here means that a server is away: the watch goes on when it is back.
        let Ok(pod) = pod else { continue };
        let Some(pod) = pod.filter(|pod| pod.metadata.uid.as_deref() == Some(turn.pod_uid())) else {
            return Ok(TurnEnd::Done("the pod is gone".to_owned()));
        };
        let told = pod.metadata.annotations.unwrap_or_default();
        if told.contains_key(DONE) {
            return Ok(TurnEnd::Done("checkpoint written".to_owned()));
        }
        if let Some(progress) = told.get(PROGRESS) {
            turn.set_message(progress);
        }
    }
    Ok(TurnEnd::Declined("the watch of the pod has ended".to_owned()))
}

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let namespace = std::env::args().nth(1).context("which namespace?")?;
    let interceptor = InterceptorRuntime::new(kube::Client::try_default().await?, "checkpoint.example.com");
    interceptor.in_namespace(namespace).run(checkpoint).await;
    Ok(())
}
