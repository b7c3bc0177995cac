//! An interceptor, as an application owner would write it: it takes up the request before its pod leaves, says how far
//! it is while it (only in name) writes a checkpoint, and deletes the pod itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Result};
use drydock_api::eviction_request::InterceptorStatus;
use drydock_interceptor_runtime::{EvictionTurn, InterceptorRuntime, TurnEnd};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, Preconditions};
use kube::core::Status;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::workload::NAMESPACE;

/// The interceptor's name in requests, which the pods' annotation carries.
pub const NAME: &str = "checkpoint.demo.example.com";
/// Its user name on the host.
pub const USER: &str = "demo-interceptor";

/// How long the first one takes: heartbeats may not be closer than 60 seconds (KEP-4563).
pub const LONG: Duration = Duration::from_secs(61);
/// How soon the deletion of a pod is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// What the API server accepted from the interceptor for one request.
#[derive(Clone, Debug, Default)]
pub struct AcceptedReport {
    /// The heartbeats, as they stood in its answers.
    pub heartbeats: BTreeSet<Timestamp>,
    /// Whether the turn is over: it accepted the completion, or had ended the request before because the pod was gone.
    pub over: bool,
}

/// Reports by request, which is the pod's UID.
type Reports = Arc<Mutex<BTreeMap<String, AcceptedReport>>>;

/// The running interceptor; it ends when it is dropped.
pub struct PlaygroundInterceptor {
    _tasks: JoinSet<()>,
    reports: Reports,
}

impl PlaygroundInterceptor {
    /// Starts to serve the namespace's requests.
    pub fn start(client: Client) -> PlaygroundInterceptor {
        let reports = Reports::default();
        // The first has much to save, and is still at it when the next heartbeat is due.
        let (noted, is_first) = (reports.clone(), AtomicBool::new(true));
        let act = move |turn: EvictionTurn| {
            let name = turn.request().metadata.name.clone();
            tokio::spawn(note(noted.clone(), name, turn.accepted()));
            checkpoint(turn, is_first.swap(false, Ordering::Relaxed))
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(InterceptorRuntime::new(client, NAME).in_namespace(NAMESPACE).run(act));
        PlaygroundInterceptor { _tasks: tasks, reports }
    }

    /// What was accepted so far.
    pub fn reports(&self) -> BTreeMap<String, AcceptedReport> {
        lock(&self.reports).clone()
    }
}

/// Notes what is accepted until the turn is over.
async fn note(reports: Reports, name: String, mut accepted: watch::Receiver<InterceptorStatus>) {
    loop {
        let heartbeat = accepted.borrow_and_update().heartbeat_time;
        lock(&reports).entry(name.clone()).or_default().heartbeats.extend(heartbeat);
        if accepted.changed().await.is_err() {
            break;
        }
    }
    lock(&reports).entry(name).or_default().over = true;
}

/// Begins, sends a second heartbeat if it takes long, and deletes the pod.
async fn checkpoint(turn: EvictionTurn, is_long: bool) -> Result<TurnEnd> {
    turn.set_message("checkpointing");
    let mut accepted = turn.accepted();
    let begun = accepted.wait_for(|entry| entry.heartbeat_time.is_some()).await?.heartbeat_time;
    if is_long {
        sleep(LONG).await;
        turn.set_message("still checkpointing");
        accepted.wait_for(|entry| entry.heartbeat_time > begun).await.map(drop)?;
    }
    // Servers may be away for long. Meanwhile the turn stays ours, as no other worker takes it.
    while delete_pod(&turn).await.is_err() {
        sleep(RETRY).await;
    }
    Ok(TurnEnd::Done("checkpointed".to_owned()))
}

async fn delete_pod(turn: &EvictionTurn) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(turn.client(), turn.namespace());
    let same = Preconditions { uid: Some(turn.pod_uid().to_owned()), resource_version: None };
    let delete = DeleteParams { preconditions: Some(same), ..DeleteParams::default() };
    match pods.delete(turn.pod_name(), &delete).await {
        Err(kube::Error::Api(status)) if is_gone(&status) => Ok(()),
        other => other.map(drop).context("deleting the pod"),
    }
}

/// Whether the pod is gone, or there is another of its name already. A 404 without a name comes from a server that does
/// not know the API for a moment.
fn is_gone(status: &Status) -> bool {
    let is_named = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
    status.code == 409 || (status.code == 404 && is_named)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
