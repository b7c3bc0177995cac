//! The interceptor's side of a turn: finds the Deployment of the pod, enters the turn into a table, and waits there until
//! a decision ends it.

use std::collections::BTreeMap;
use std::sync::Arc;

use drydock_api::eviction_request::interceptors::SURGE;
use drydock_interceptor_runtime::{EvictionTurn, InterceptorRuntime, TurnEnd};
use drydock_runtime::cache::bounded;
use drydock_runtime::queue::WorkQueue;
use drydock_runtime::{Cacheable, ControllerContext, ObjectKey};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::workloads::{DeploymentOf, Workloads};

/// What turns are served with. Clones share it.
#[derive(Clone)]
pub struct TurnServer {
    /// Clients and caches.
    pub context: ControllerContext,
    /// Deployments and what leads to them.
    pub workloads: Workloads,
    /// Where the turns wait.
    pub table: TurnTable,
    /// The Deployments that are to be decided.
    pub queue: WorkQueue<ObjectKey>,
}

impl TurnServer {
    /// Serves turns until shutdown.
    pub async fn run(self) {
        let stop = self.context.tasks.shutdown().clone();
        let runtime = InterceptorRuntime::new(bounded(self.context.client.clone()), SURGE);
        let act = move |turn| {
            let server = self.clone();
            async move { server.serve(turn).await }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = runtime.run(act) => {}
        }
    }

    /// Waits until a decision ends the turn. An error has it called again.
    async fn serve(&self, turn: EvictionTurn) -> Result<TurnEnd, &'static str> {
        let namespace = turn.request().namespace();
        let pod = self.context.caches.pods.by_uid(turn.pod_uid());
        let Some(pod) = pod.filter(|pod| pod.namespace == namespace) else {
            return Err("the pod is not in the cache yet");
        };
        let deployment = match self.workloads.deployment_of(&pod) {
            DeploymentOf::Known(deployment) => deployment.key(),
            DeploymentOf::None => return Ok(TurnEnd::Declined("no Deployment controls the pod".to_owned())),
            DeploymentOf::NotCached => return Err("the pod's Deployment is not in the cache yet"),
        };
        let begun = turn.request().interceptor(SURGE).and_then(|entry| entry.start_time);
        let began = begun.unwrap_or_else(|| self.context.clock.now());
        // Decided again when the place is given up too: the request may be over.
        let _leaves = QueuedOnDrop { queue: self.queue.clone(), deployment: deployment.clone() };
        let mut place = self.table.enter(deployment.clone(), turn, began);
        self.queue.add(deployment);
        place.ended().await.ok_or("another turn has begun for the pod")
    }
}

struct QueuedOnDrop {
    queue: WorkQueue<ObjectKey>,
    deployment: ObjectKey,
}

impl Drop for QueuedOnDrop {
    fn drop(&mut self) {
        self.queue.add(self.deployment.clone());
    }
}

/// The turns that are open. Clones share them.
#[derive(Clone, Default)]
pub struct TurnTable(Arc<Mutex<BTreeMap<ObjectKey, PodTurns>>>);

/// By UID of the pod.
type PodTurns = BTreeMap<String, TableTurn>;

/// A turn in the table.
#[derive(Clone)]
pub struct TableTurn {
    /// The turn itself.
    pub turn: EvictionTurn,
    /// When it began.
    pub began: Timestamp,
    end: watch::Sender<Option<TurnEnd>>,
}

impl TableTurn {
    /// Whether no decision has ended it yet.
    pub fn is_waiting(&self) -> bool {
        self.end.borrow().is_none()
    }
}

/// A place in the table; dropped, it is given up.
pub struct TurnPlace {
    table: TurnTable,
    deployment: ObjectKey,
    pod: String,
    request: String,
    ended: watch::Receiver<Option<TurnEnd>>,
}

impl TurnTable {
    /// Enters a turn for a pod of a Deployment.
    pub fn enter(&self, deployment: ObjectKey, turn: EvictionTurn, began: Timestamp) -> TurnPlace {
        let (end, ended) = watch::channel(None);
        let (pod, request) = (turn.pod_uid().to_owned(), turn.request().metadata.uid.clone());
        let entry = TableTurn { turn, began, end };
        self.0.lock().entry(deployment.clone()).or_default().insert(pod.clone(), entry);
        TurnPlace { table: self.clone(), deployment, pod, request, ended }
    }

    /// The turns for pods of a Deployment, by UID of the pod.
    pub fn of(&self, deployment: &ObjectKey) -> BTreeMap<String, TableTurn> {
        self.0.lock().get(deployment).cloned().unwrap_or_default()
    }

    /// The Deployments of a namespace with open turns.
    pub fn deployments(&self, namespace: &str) -> Vec<ObjectKey> {
        self.0.lock().keys().filter(|key| *key.namespace == *namespace).cloned().collect()
    }

    /// Ends the turn for a pod, if it is open and has not ended.
    pub fn end(&self, deployment: &ObjectKey, pod: &str, end: TurnEnd) {
        if let Some(entry) = self.0.lock().get(deployment).and_then(|turns| turns.get(pod)) {
            entry.end.send_if_modified(|ended| {
                let is_first = ended.is_none();
                ended.get_or_insert(end);
                is_first
            });
        }
    }
}

impl TurnPlace {
    /// Waits until a decision ends the turn.
    pub async fn ended(&mut self) -> Option<TurnEnd> {
        // The sender lives in the table; it is gone only if a new turn for the pod has taken its place.
        self.ended.wait_for(Option::is_some).await.ok()?.clone()
    }
}

impl Drop for TurnPlace {
    fn drop(&mut self) {
        let mut table = self.table.0.lock();
        let Some(turns) = table.get_mut(&self.deployment) else { return };
        // A request that was made anew may have taken the place.
        if turns.get(&self.pod).is_some_and(|entry| entry.turn.request().metadata.uid == self.request) {
            turns.remove(&self.pod);
        }
        if turns.is_empty() {
            table.remove(&self.deployment);
        }
    }
}
