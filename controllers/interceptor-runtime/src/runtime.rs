//! Watches requests, and serves each of the interceptor's turns for as long as it lasts.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use futures::StreamExt;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_objects};
use tokio::task::{AbortHandle, JoinSet};
use tracing::{info, warn};

use crate::entry::is_turn_of;
use crate::requests::{RequestClient, resource};
use crate::serve::{Act, TurnTask};
use crate::turn::{EvictionTurn, TurnEnd};

/// Most requests of a page of the list. A page is in memory as a whole, and tenants make requests of 200 KiB, of labels that take
/// several times as much when they are read.
const PAGE_SIZE: u32 = 50;

/// An interceptor that is to run. Only one process may run it at a time: two would act on each pod.
pub struct InterceptorRuntime {
    client: Client,
    name: String,
    namespace: Option<String>,
    config: watcher::Config,
    pub(crate) clock: fn() -> Timestamp,
}

impl InterceptorRuntime {
    /// An interceptor of all namespaces. `name` is the one in the pods' annotation
    /// `interceptor.evictionrequest.coordination.k8s.io/priority_NAME`.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        let config = watcher::Config::default().page_size(PAGE_SIZE);
        Self { client, name: name.into(), namespace: None, config, clock: Timestamp::now }
    }

    /// Serves one namespace alone; the rights are needed only there.
    #[must_use]
    pub fn in_namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// Watches only requests with these labels, which are those of the pods, for example `app=ledger`.
    #[must_use]
    pub fn with_labels(self, selector: &str) -> Self {
        Self { config: self.config.labels(selector), ..self }
    }

    /// Calls `act` once for each turn, and reports for it: the start, a heartbeat every 3 minutes while it runs, what it
    /// says, and the end. It does not return; dropped, it stops, and a next run resumes the open turns.
    ///
    /// - When a turn ends otherwise (the requesters withdraw, the pod is gone, another ends the turn, or the interceptor
    ///   was passed over), the future is dropped.
    /// - After an error or a panic `act` is called again, with pauses of one second up to a minute. From the first
    ///   failure on there are no heartbeats: an interceptor that only fails is passed over after 20 minutes.
    /// - The future must not block its thread, and should limit its own time: while it runs, the pod waits for it.
    pub async fn run<Work, Failure>(self, act: impl Fn(EvictionTurn) -> Work + Send + Sync + 'static)
    where
        Work: Future<Output = Result<TurnEnd, Failure>> + Send + 'static,
        Failure: Display,
    {
        let act: Act = Arc::new(move |turn| {
            let work = act(turn);
            Box::pin(async { work.await.map_err(|failure| failure.to_string()) })
        });
        let api: Api<DynamicObject> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource()),
            None => Api::all_with(self.client.clone(), &resource()),
        };
        let requests = RequestClient::new(self.client, self.name, self.clock).into();
        let mut turns = OpenTurns { requests, act, tasks: JoinSet::new(), open: HashMap::new() };
        let mut events = watch_objects(api, self.config).default_backoff().boxed();
        let mut listed = HashSet::new();
        loop {
            tokio::select! {
                Some(ended) = turns.tasks.join_next() => turns.ended(ended.ok()),
                Some(event) = events.next() => match event {
                    Ok(event) => turns.see(event, &mut listed),
                    Err(error) => warn!("watching eviction requests: {error}; it goes on"),
                },
            }
        }
    }
}

/// Namespace and name of a request.
pub(crate) type RequestKey = (String, String);

/// The turns that are being served.
struct OpenTurns {
    requests: Arc<RequestClient>,
    act: Act,
    /// Each returns the key and the UID of its request.
    tasks: JoinSet<(RequestKey, String)>,
    open: HashMap<RequestKey, OpenTurn>,
}

/// The task that serves a turn.
struct OpenTurn {
    /// UID of the request.
    uid: String,
    task: AbortHandle,
}

impl OpenTurns {
    /// Sees an event of the watch. `listed` has the keys of the list that is under way.
    fn see(&mut self, event: Event<DynamicObject>, listed: &mut HashSet<RequestKey>) {
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => {
                if let Some(request) = read(&object) {
                    listed.insert(key_of(&request));
                    self.update(&request);
                }
            }
            Event::Apply(object) => {
                if let Some(request) = read(&object) {
                    self.update(&request);
                }
            }
            Event::Delete(object) => self.retain(|key| !is_key_of(key, &object)),
            Event::InitDone => self.retain(|key| listed.contains(key)),
        }
    }

    fn update(&mut self, request: &EvictionRequest) {
        let (key, uid) = (key_of(request), &request.metadata.uid);
        let is_open = self.open.get(&key).is_some_and(|open| open.uid == *uid);
        let is_ours = is_turn_of(request, &self.requests.interceptor);
        if is_open == is_ours {
            return;
        }
        self.retain(|other| *other != key);
        if is_ours {
            let turn = TurnTask::new(self.requests.clone(), self.act.clone(), key.clone());
            let ended = (key.clone(), uid.clone());
            let task = self.tasks.spawn(async {
                turn.serve().await;
                ended
            });
            self.open.insert(key, OpenTurn { uid: uid.clone(), task });
        }
    }

    /// Ends the turns that are not kept, and drops what acts in them.
    fn retain(&mut self, keeps: impl Fn(&RequestKey) -> bool) {
        self.open.retain(|key, open| {
            let kept = keeps(key);
            if !kept {
                info!("the turn in {}/{} is over", key.0, key.1);
                open.task.abort();
            }
            kept
        });
    }

    /// A task has ended. None is one that was aborted.
    fn ended(&mut self, ended: Option<(RequestKey, String)>) {
        let Some((key, uid)) = ended else { return };
        if self.open.get(&key).is_some_and(|open| open.uid == uid) {
            self.open.remove(&key);
        }
    }
}

fn read(object: &DynamicObject) -> Option<EvictionRequest> {
    let read = serde_json::to_value(object).and_then(serde_json::from_value);
    read.inspect_err(|error| warn!("an eviction request that cannot be read: {error}")).ok()
}

fn key_of(request: &EvictionRequest) -> RequestKey {
    (request.metadata.namespace.clone(), request.metadata.name.clone())
}

fn is_key_of(key: &RequestKey, object: &DynamicObject) -> bool {
    let meta = &object.metadata;
    (Some(&key.0), Some(&key.1)) == (meta.namespace.as_ref(), meta.name.as_ref())
}

#[cfg(test)]
#[path = "runtime_tests.rs"]
mod tests;
