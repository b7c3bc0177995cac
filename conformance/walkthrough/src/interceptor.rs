//! An interceptor, as an application owner would write it: it takes up the request before its pod leaves, sends
//! heartbeats while it (only in name) writes a checkpoint, deletes the pod itself, and reports that it is done.
//!
//! It reads the request and the pod before each step, so that a step may be repeated: after a server was killed it is
//! unknown whether the last step was carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use drydock_api::eviction_request::{EvictionRequest, InterceptorStatus};
use futures::StreamExt;
use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::workload::NAMESPACE;

/// The interceptor's name in requests, which the pods' annotation carries.
pub const NAME: &str = "checkpoint.demo.example.com";
/// Its user name on the host.
pub const USER: &str = "demo-interceptor";

/// Heartbeats may not be closer (KEP-4563).
const HEARTBEAT: SignedDuration = SignedDuration::from_secs(60);
/// How soon a failed step is retried. It is retried for as long as the request is ours, as no other worker takes it.
const RETRY: Duration = Duration::from_millis(500);
/// How long a step may take; longer means that the answer to one of its requests was lost.
const STEP: Duration = Duration::from_secs(60);
/// Failures that go on for so long are printed.
const TOLD_AFTER: Duration = Duration::from_secs(120);

/// What the API server accepted from the interceptor for one request.
#[derive(Clone, Debug, Default)]
pub struct AcceptedReport {
    /// The heartbeats, as they stood in its answers.
    pub heartbeats: BTreeSet<Timestamp>,
    /// Whether it accepted the completion, or had ended the request before because the pod was gone.
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
    /// Starts to watch the namespace's requests.
    pub fn start(client: Client) -> PlaygroundInterceptor {
        let reports = Reports::default();
        let worker = Worker { client, reports: reports.clone() };
        let mut tasks = JoinSet::new();
        tasks.spawn(worker.watch());
        PlaygroundInterceptor { _tasks: tasks, reports }
    }

    /// What was accepted so far.
    pub fn reports(&self) -> BTreeMap<String, AcceptedReport> {
        lock(&self.reports).clone()
    }
}

/// The resource of requests.
pub fn eviction_requests() -> ApiResource {
    let kind = GroupVersionKind::gvk(drydock_api::GROUP, drydock_api::VERSION, "EvictionRequest");
    ApiResource::from_gvk_with_plural(&kind, drydock_api::eviction_request::RESOURCE)
}

#[derive(Clone)]
struct Worker {
    client: Client,
    reports: Reports,
}

/// What comes after a step.
enum NextAction {
    Step,
    Wait(Duration),
    Nothing,
}

impl Worker {
    async fn watch(self) {
        let events = watcher::watcher(self.requests(), watcher::Config::default()).default_backoff();
        let mut objects = events.applied_objects().boxed();
        let mut serving = JoinSet::<String>::new();
        let mut served = ServedRequests::default();
        // The first has much to save, and is still at it when the next heartbeat is due.
        let mut beats = 2;
        loop {
            let due = tokio::select! {
                Some(Ok(name)) = serving.join_next() => served.ended(&name).then_some(name),
                object = objects.next() => {
                    let Some(object) = object else { return };
                    // An error here means that a server is away: the watch goes on when it is back.
                    let request = object.map_err(anyhow::Error::from).and_then(read).ok().filter(is_ours);
                    request.map(|request| request.metadata.name).filter(|name| served.seen(name))
                }
            };
            if let Some(name) = due {
                serving.spawn(self.clone().serve(name, std::mem::replace(&mut beats, 1)));
            }
        }
    }

    /// Serves a request until it is no longer ours, and returns its name.
    async fn serve(self, name: String, beats: usize) -> String {
        let mut failing: Option<Instant> = None;
        loop {
            let step = tokio::time::timeout(STEP, self.step(&name, beats)).await;
            let pause = match step.context("no answer in time").flatten() {
                Ok(NextAction::Nothing) => return name,
                Ok(next) => {
                    failing = None;
                    if let NextAction::Wait(pause) = next { pause } else { Duration::ZERO }
                }
                Err(error) => {
                    if failing.get_or_insert_with(Instant::now).elapsed() > TOLD_AFTER {
                        eprintln!("interceptor: {name} fails for {TOLD_AFTER:?}, going on: {error:#}");
                        failing = None;
                    }
                    RETRY
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn step(&self, name: &str, beats: usize) -> Result<NextAction> {
        let request = match self.requests().get(name).await {
            Err(error) if is_gone(&error) => None,
            found => Some(read(found?)?),
        };
        let Some(request) = request.filter(is_ours) else {
            lock(&self.reports).entry(name.to_owned()).or_default().over = true;
            return Ok(NextAction::Nothing);
        };
        let mut entry = request.interceptor(NAME).cloned().unwrap_or_default();
        let now = now()?;
        let Some(beat) = entry.heartbeat_time else {
            (entry.start_time, entry.heartbeat_time) = (Some(now), Some(now));
            return self.report(&request, entry, "checkpointing").await;
        };
        if self.note(name, &entry) < beats {
            let due = beat.checked_add(HEARTBEAT)?;
            if now < due {
                return Ok(NextAction::Wait(Duration::try_from(due.duration_since(now))?));
            }
            entry.heartbeat_time = Some(now);
            return self.report(&request, entry, "still checkpointing").await;
        }
        self.delete_pod(&request).await?;
        // The pod is terminating: the request is ours until its object is gone.
        entry.completion_time = Some(now);
        self.report(&request, entry, "checkpointed").await
    }

    async fn delete_pod(&self, request: &EvictionRequest) -> Result<()> {
        let target = request.spec.target.pod.as_ref().context("a request without a pod")?;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let same = Preconditions { uid: Some(target.uid.clone()), resource_version: None };
        let delete = DeleteParams { preconditions: Some(same), ..DeleteParams::default() };
        match pods.delete(&target.name, &delete).await {
            Err(error) if is_gone(&error) => Ok(()),
            // Another of the same name already.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            other => other.map(drop).context("deleting the pod"),
        }
    }

    /// An entry is atomic: the whole of it is sent, and taken over from its first manager.
    async fn report(
        &self,
        request: &EvictionRequest,
        mut entry: InterceptorStatus,
        message: &str,
    ) -> Result<NextAction> {
        (entry.name, entry.message) = (NAME.to_owned(), message.to_owned());
        let name = &request.metadata.name;
        let status = json!({
            "apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest",
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": request.metadata.uid},
            "status": {"interceptors": [entry]},
        });
        let params = PatchParams::apply(NAME).force();
        let written = self.requests().patch_status(name, &params, &Patch::Apply(&status)).await?;
        let written = read(written)?;
        let Some(entry) = written.interceptor(NAME) else { bail!("the answer has no entry of ours") };
        self.note(name, entry);
        Ok(NextAction::Step)
    }

    /// Notes the heartbeats in an answer of the server; returns how many it has accepted.
    fn note(&self, name: &str, entry: &InterceptorStatus) -> usize {
        let mut reports = lock(&self.reports);
        let report = reports.entry(name.to_owned()).or_default();
        report.heartbeats.extend(entry.heartbeat_time);
        report.heartbeats.len()
    }

    fn requests(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), NAMESPACE, &eviction_requests())
    }
}

/// Requests that are being served. One whose event comes meanwhile is served once more afterwards: it may have been
/// created anew under its name after the last step read it.
#[derive(Default)]
struct ServedRequests(BTreeMap<String, bool>);

impl ServedRequests {
    /// A request that is ours was seen; whether it is to be served now.
    fn seen(&mut self, name: &str) -> bool {
        self.0.insert(name.to_owned(), self.0.contains_key(name)).is_none()
    }

    /// A request was served; whether it is to be served again.
    fn ended(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some_and(|again| again && self.seen(name))
    }
}

/// Whether an answer says that this object is gone. A 404 without a name comes from a server that does not know the API
/// for a moment.
fn is_gone(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    status.code == 404 && status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

fn read(object: DynamicObject) -> Result<EvictionRequest> {
    Ok(serde_json::from_value(serde_json::to_value(object)?)?)
}

fn is_ours(request: &EvictionRequest) -> bool {
    let completed = request.interceptor(NAME).is_some_and(|entry| entry.completion_time.is_some());
    request.active_interceptor() == Some(NAME) && !completed && !request.is_finished()
}

fn now() -> Result<Timestamp> {
    Ok(Timestamp::now().round(TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Floor))?)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::Value;

    use super::*;

    /// A cluster with one request, which is the interceptor's, and one pod.
    struct Cluster {
        request: Value,
        pod: bool,
        /// The answers before the cluster is well again; none is an answer that never comes.
        unwell: Vec<Option<(u16, &'static str)>>,
    }

    impl Cluster {
        fn answer(&mut self, method: &str, body: &Value) -> Option<(u16, String)> {
            if let Some(answer) = self.unwell.pop() {
                return answer.map(|(code, text)| (code, text.to_owned()));
            }
            let said = match method {
                "DELETE" => {
                    self.pod = false;
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})
                }
                "PATCH" => {
                    self.request["status"]["interceptors"] = body["status"]["interceptors"].clone();
                    self.request.clone()
                }
                _ => self.request.clone(),
            };
            Some((200, said.to_string()))
        }
    }

    /// Serves the request of a cluster that is unwell at first, and returns what it said of it in the end.
    async fn served(unwell: Vec<Option<(u16, &'static str)>>) -> AcceptedReport {
        let request = json!({
            "apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest",
            "metadata": {"name": "uid", "namespace": NAMESPACE, "uid": "own"},
            "spec": {"target": {"pod": {"name": "p", "uid": "uid"}}},
            "status": {"activeInterceptors": [NAME], "interceptors": [{"name": NAME, "message": ""}]},
        });
        let cluster = Arc::new(Mutex::new(Cluster { request, pod: true, unwell }));
        let asked = cluster.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let asked = asked.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
                let answer = lock(&asked).answer(parts.method.as_str(), &body);
                let Some((code, text)) = answer else { return std::future::pending().await };
                let mut response = Response::new(Body::from(text.into_bytes()));
                *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
                Ok::<_, kube::Error>(response)
            }
        });
        let reports = Reports::default();
        let worker = Worker { client: Client::new(service, NAMESPACE), reports: reports.clone() };
        let served = tokio::time::timeout(24 * STEP, worker.serve("uid".to_owned(), 1)).await;
        assert_eq!(served.unwrap(), "uid");
        let cluster = lock(&cluster);
        let entry = &cluster.request["status"]["interceptors"][0];
        assert!(!cluster.pod && entry["completionTime"].is_string(), "{entry}");
        lock(&reports).get("uid").cloned().unwrap()
    }

    /// So answers an aggregator that has just started, to every path of an API that it does not know yet.
    #[tokio::test(start_paused = true)]
    async fn an_api_that_is_not_known_yet_does_not_mean_that_the_request_is_gone() {
        let report = served(vec![Some((404, "404 page not found")); 3]).await;
        assert!(report.over && report.heartbeats.len() == 1);
        // Others answer so in JSON, without a name.
        let unnamed = r#"{"kind":"Status","status":"Failure","reason":"NotFound","details":{},"code":404}"#;
        assert!(served(vec![Some((404, unnamed)); 3]).await.over);
    }

    /// An event that came after the last step had looked, and before the watch knew that it was over, was
    /// dropped: a request that was made again in between was never served.
    #[test]
    fn what_is_seen_while_a_request_is_served_is_looked_at_when_that_ends() {
        let mut served = ServedRequests::default();
        assert!(served.seen("r"));
        assert!(!served.seen("r") && !served.seen("r"), "it is served");
        assert!(served.ended("r"), "it was seen meanwhile");
        assert!(!served.seen("r"), "it is served again");
        assert!(served.ended("r"));
        assert!(!served.ended("r"), "nothing is new");
        assert!(served.seen("r"));
    }

    /// It gave up after two minutes, which pass while the aggregator waits twice for an answer in vain. The request
    /// was then not served before its heartbeat deadline of twenty minutes.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_away_for_long_is_waited_for() {
        assert!(served(vec![Some((503, "shutting down")); 600]).await.over);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_lost_is_asked_for_again() {
        assert!(served(vec![None, Some((200, "{")), None]).await.over);
    }
}
