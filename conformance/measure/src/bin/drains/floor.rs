//! The floor of what our programs cost: a process that makes the requests of a drain by Drydock, for each pod those that
//! our controllers make for a plain pod, and decides nothing. It also watches pods and requests, as they must. Of what it
//! reads it keeps the metadata alone.
//!
//! ```text
//!   for each pod   apply the request, write its first turn, evict the pod; and when it is gone: write the end, delete
//! ```

mod requests;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use drydock_serving::host;
use drydock_testkit::drydock::{Drydock, MANAGER};
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::{eviction_request, eviction_request_resource};
use drydock_testkit::wait::retry;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DeleteParams, ListParams, Object, Patch, PatchParams, Preconditions};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::eviction_loop::{evict, evict_all};
use super::workload::{DRAINED, DrainedPod, NAMESPACE};
use requests::{end, first_turn, node};

/// The name of the process.
pub const PROCESS: &str = "floor";
/// Who asks for the evictions.
const REQUESTER: &str = "floor.example.com";
/// Requests that are ended at a time.
const ENDS: usize = 64;
/// How long it may take to start.
const LIMIT: Duration = Duration::from_secs(300);
/// What the process says when it watches, and when it has evicted all pods.
const SAYS: [&str; 2] = ["watching", "evicted"];

/// An object of which no more than the metadata is kept.
type WatchedObject = Object<IgnoredAny, IgnoredAny>;

/// Starts the process, beside our API server, as the user that our controller manager is, and waits until it watches.
pub async fn start(drydock: &Drydock) -> Result<()> {
    let (host, server) = drydock.kubeconfigs_of(MANAGER)?;
    let program = std::env::current_exe().context("this program does not know where it is")?;
    let path = |path: &Path| path.display().to_string();
    let arguments = ["floor".into(), "--host".into(), path(&host), "--server".into(), path(&server)];
    drydock.host.processes.start(PROCESS, &program, &arguments)?;
    said(&drydock.host, SAYS[0], LIMIT).await
}

/// Lets the process drain the nodes, and waits until it has evicted all pods.
pub async fn drain(host: &TestHost, limit: Duration) -> Result<()> {
    let pid =
        host.processes.pid(PROCESS).and_then(|pid| rustix::process::Pid::from_raw(i32::try_from(pid).ok()?));
    rustix::process::kill_process(pid.context("the floor does not run")?, rustix::process::Signal::USR1)?;
    said(host, SAYS[1], limit).await
}

async fn said(host: &TestHost, what: &str, limit: Duration) -> Result<()> {
    let late = || format!("the floor is not {what} within {limit:?}");
    retry(limit, late, async || {
        if host.processes.has_ended(PROCESS) {
            bail!("the floor has ended: {}", host.processes.log_tail(PROCESS));
        }
        Ok(std::fs::read_to_string(host.log(PROCESS))?.contains(what))
    })
    .await
}

/// What the process is started with.
#[derive(clap::Args)]
pub struct FloorArguments {
    /// Kubeconfig of the host
    #[arg(long)]
    host: PathBuf,
    /// Kubeconfig of our API server
    #[arg(long)]
    server: PathBuf,
}

impl FloorArguments {
    /// Drains the nodes when it is sent SIGUSR1, and stays: the CPU time of a process that has ended cannot be read.
    pub async fn run(&self) -> Result<ExitCode> {
        // As our controllers reach both.
        let host = host::client("--host", Some(&self.host)).await?;
        let server = host::client("--server", Some(&self.server)).await?;
        let mut begin = signal(SignalKind::user_defined1())?;
        let pods = drained_pods(&host).await?;
        let gone = watch_pods(&host, pods.keys().cloned().collect()).await;
        let requests = Api::namespaced_with(server, NAMESPACE, &eviction_request_resource());
        watch_requests(&requests).await;
        println!("{}", SAYS[0]);
        begin.recv().await;
        Floor { host, requests, pods, written: Mutex::default() }.drain(gone).await?;
        std::future::pending().await
    }
}

struct Floor {
    host: Client,
    requests: Api<WatchedObject>,
    /// The pods to drain, by UID.
    pods: HashMap<String, Pod>,
    /// The requests as they were last written, by the UID of the pod.
    written: Mutex<HashMap<String, WatchedObject>>,
}

impl Floor {
    async fn drain(&self, gone: mpsc::Receiver<String>) -> Result<()> {
        let drained: Vec<DrainedPod> = self.pods.values().map(DrainedPod::read).collect::<Result<_>>()?;
        let evicted = async {
            evict_all(&drained, async |pod| {
                if !self.written.lock().contains_key(&pod.uid) {
                    self.ask(&self.pods[&pod.uid])
                        .await
                        .with_context(|| format!("asking for {}", pod.name))?;
                }
                evict(&self.host, pod).await
            })
            .await?;
            println!("{}", SAYS[1]);
            anyhow::Ok(())
        };
        let gone = futures::stream::unfold(gone, |mut gone| async { Some((gone.recv().await?, gone)) });
        let ended = gone.map(anyhow::Ok).try_for_each_concurrent(ENDS, async |uid| self.end(&uid).await);
        tokio::try_join!(evicted, ended).map(drop)
    }

    /// Creates a request, and writes its first turn.
    async fn ask(&self, pod: &Pod) -> Result<()> {
        let uid = pod.uid().context("a pod without a UID")?;
        let mut request = eviction_request(&pod.name_any(), &uid, REQUESTER);
        request["metadata"]["labels"] = json!(pod.labels());
        let params = PatchParams::apply(REQUESTER).force();
        let request = self.requests.patch(&uid, &params, &Patch::Apply(request)).await?;
        let turn = first_turn(pod, request.metadata.generation);
        self.write_status(&uid, &request, turn).await.map(drop)
    }

    /// Ends the request of a pod that is gone.
    async fn end(&self, uid: &str) -> Result<()> {
        let request = self.written.lock().get(uid).cloned();
        let request = request.with_context(|| format!("{uid} has gone and was not asked for"))?;
        let request = self.write_status(uid, &request, end(request.metadata.generation)).await?;
        let as_seen = Preconditions { uid: request.uid(), resource_version: request.resource_version() };
        self.requests.delete(uid, &DeleteParams::default().preconditions(as_seen)).await?;
        Ok(())
    }

    async fn write_status(&self, uid: &str, request: &WatchedObject, status: Value) -> Result<WatchedObject> {
        let metadata = json!({"uid": request.uid(), "resourceVersion": request.resource_version()});
        let patch = Patch::Merge(json!({"metadata": metadata, "status": status}));
        let written = self.requests.patch_status(uid, &PatchParams::default(), &patch).await?;
        self.written.lock().insert(uid.to_owned(), written.clone());
        Ok(written)
    }
}

async fn drained_pods(host: &Client) -> Result<HashMap<String, Pod>> {
    let pods: Api<Pod> = Api::namespaced(host.clone(), NAMESPACE);
    let pods = pods.list(&ListParams::default()).await?.items.into_iter();
    Ok(pods.filter(|pod| node(pod).starts_with(DRAINED)).filter_map(|pod| Some((pod.uid()?, pod))).collect())
}

/// Watches the pods, and returns the UIDs of those of `drained` that go.
async fn watch_pods(host: &Client, mut drained: HashSet<String>) -> mpsc::Receiver<String> {
    let pods = Api::namespaced_with(host.clone(), NAMESPACE, &ApiResource::erase::<Pod>(&()));
    // Each is sent once, so that there is room for all.
    let (send, gone) = mpsc::channel(drained.len().max(1));
    let mut listed = HashSet::new();
    watch(&pods, move |event| match event {
        Event::Init => listed.clear(),
        Event::InitApply(pod) => listed.extend(pod.uid()),
        Event::InitDone => {
            let missing: Vec<String> = drained.difference(&listed).cloned().collect();
            missing.into_iter().filter(|uid| drained.remove(uid)).for_each(|uid| drop(send.try_send(uid)));
        }
        Event::Delete(pod) => {
            pod.uid().filter(|uid| drained.remove(uid)).into_iter().for_each(|uid| drop(send.try_send(uid)));
        }
        Event::Apply(_) => {}
    })
    .await;
    gone
}

async fn watch_requests(requests: &Api<WatchedObject>) {
    watch(requests, drop).await;
}

/// Reads the events of all objects in a task of its own; returns when it has read those that are there.
async fn watch(of: &Api<WatchedObject>, mut see: impl FnMut(Event<WatchedObject>) + Send + 'static) {
    let events = watcher(of.clone(), watcher::Config::default()).default_backoff();
    let (send, listed) = tokio::sync::oneshot::channel();
    let mut send = Some(send);
    tokio::spawn(async move {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    eprintln!("the watch goes on after an error: {error}");
                    continue;
                }
            };
            let is_listed = matches!(event, Event::InitDone);
            see(event);
            if is_listed && let Some(send) = send.take() {
                let _ = send.send(());
            }
        }
    });
    let _ = listed.await;
}
