//! An application's interceptor, as an application owner would write it: it is asked before its pod goes, says
//! that it works, checkpoints (which is imaginary), deletes the pod itself, and says that it is done.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use drydock_api::eviction_request::EvictionRequest;
use futures::StreamExt;
use jiff::{Timestamp, Unit};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use tokio::task::JoinHandle;

use super::verdict::Finding;
use super::workload::NAMESPACE;

/// The interceptor's name in requests, which the pods' annotation carries.
pub const NAME: &str = "checkpoint.demo.example.com";

/// The running interceptor; it ends when it is dropped.
pub struct Interceptor {
    task: JoinHandle<()>,
    done: Arc<Mutex<BTreeSet<String>>>,
    failed: Arc<Mutex<Vec<String>>>,
}

impl Interceptor {
    /// Starts to watch the namespace's requests.
    pub fn start(client: Client) -> Interceptor {
        let (done, failed) =
            (Arc::<Mutex<BTreeSet<String>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let task = tokio::spawn(watch(client, done.clone(), failed.clone()));
        Interceptor { task, done, failed }
    }

    /// It was asked at least once, and never failed.
    pub fn verdict(&self) -> Vec<Finding> {
        let done = lock(&self.done).len();
        let failed = lock(&self.failed).join("; ");
        vec![Finding::new(
            done > 0 && failed.is_empty(),
            format!("interceptor {NAME}: moved {done} pods itself {failed}"),
        )]
    }
}

impl Drop for Interceptor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The resource of both the interceptor and whoever else reads requests.
pub fn eviction_requests() -> ApiResource {
    let kind = GroupVersionKind::gvk(drydock_api::GROUP, drydock_api::VERSION, "EvictionRequest");
    ApiResource::from_gvk_with_plural(&kind, drydock_api::eviction_request::RESOURCE)
}

async fn watch(client: Client, done: Arc<Mutex<BTreeSet<String>>>, failed: Arc<Mutex<Vec<String>>>) {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &eviction_requests());
    let events = watcher::watcher(api.clone(), watcher::Config::default()).default_backoff();
    let mut objects = events.applied_objects().boxed();
    while let Some(object) = objects.next().await {
        let request = match object.map_err(anyhow::Error::from).and_then(read) {
            Ok(request) => request,
            Err(error) => {
                eprintln!("interceptor: {error:#}");
                continue;
            }
        };
        if !is_asked(&request) || !lock(&done).insert(request.metadata.name.clone()) {
            continue;
        }
        if let Err(error) = serve(&client, &api, &request).await {
            lock(&failed).push(format!("{}: {error:#}", request.metadata.name));
        }
    }
}

fn read(object: DynamicObject) -> Result<EvictionRequest> {
    Ok(serde_json::from_value(serde_json::to_value(object)?)?)
}

fn is_asked(request: &EvictionRequest) -> bool {
    let started = request.interceptor(NAME).is_some_and(|entry| entry.start_time.is_some());
    request.active_interceptor() == Some(NAME) && !started && !request.is_finished()
}

async fn serve(client: &Client, api: &Api<DynamicObject>, request: &EvictionRequest) -> Result<()> {
    let began = now()?;
    report(api, request, json!({"startTime": began, "heartbeatTime": began, "message": "checkpointing"}))
        .await?;
    let target = request.spec.target.pod.as_ref().context("a request without a pod")?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let same = Preconditions { uid: Some(target.uid.clone()), resource_version: None };
    let delete = DeleteParams { preconditions: Some(same), ..DeleteParams::default() };
    pods.delete(&target.name, &delete).await.context("deleting the pod")?;
    // The pod is terminating: the request is still ours until its object is gone.
    let entry = json!({
        "startTime": began, "heartbeatTime": began, "completionTime": now()?, "message": "checkpointed",
    });
    report(api, request, entry).await
}

/// An entry is atomic: the whole of it is sent, and taken over from whoever initialised it.
async fn report(
    api: &Api<DynamicObject>,
    request: &EvictionRequest,
    mut entry: serde_json::Value,
) -> Result<()> {
    entry["name"] = NAME.into();
    let status = json!({
        "apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest",
        "metadata": {"name": request.metadata.name, "namespace": NAMESPACE},
        "status": {"interceptors": [entry]},
    });
    let params = PatchParams::apply(NAME).force();
    api.patch_status(&request.metadata.name, &params, &Patch::Apply(&status)).await.context("reporting")?;
    Ok(())
}

fn now() -> Result<Timestamp> {
    Ok(Timestamp::now()
        .round(jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor))?)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
