//! A running interceptor for tests, against a host that is a function.

// Compiled for tests alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use drydock_api::eviction_request::{EvictionRequest, InterceptorStatus, LocalPodReference, Requester};
use drydock_runtime::cache::PodPhase;
use drydock_runtime::testing::{context, failure};
use drydock_runtime::{Cacheable, ControllerContext, HostCaches, Pod, PodDisruptionBudget};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, channel};

use super::{NAME, run};

/// Longest time that a test waits, by a clock that is paused: longer than the delays of a report and of an answer, and
/// shorter than the time between the heartbeats of a request.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// A call that the host got: an eviction with the pod's name, or a report with the request's name and its
/// message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HostCalls {
    Eviction(String),
    Report(String, String),
}

/// A running interceptor.
pub(super) struct RunningInterceptor {
    pub(super) context: ControllerContext,
    pub(super) asked: Receiver<HostCalls>,
}

impl RunningInterceptor {
    /// `result` returns code and body of the answer to the eviction of the pod of this name.
    pub(super) fn start(
        budgets: &[PodDisruptionBudget],
        pods: &[&str],
        result: impl Fn(&str) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let (tell, asked) = channel(4096);
        let context = context(move |method, path, body| {
            if method == "GET" {
                return live(path);
            }
            let name = path.split('/').nth_back(1).unwrap_or_default().to_owned();
            if path.contains("/eviction?") || path.ends_with("/eviction") {
                let answered = result(&name);
                let _ = tell.try_send(HostCalls::Eviction(name));
                return answered;
            }
            let message = body["status"]["interceptors"][0]["message"].as_str().unwrap_or_default();
            let _ = tell.try_send(HostCalls::Report(name.clone(), message.to_owned()));
            (200, serde_json::to_value(request(&name)).unwrap())
        });
        budgets.iter().for_each(|budget| context.caches.budgets.apply(budget.clone()));
        pods.iter().for_each(|name| context.caches.pods.apply(pod(name)));
        pods.iter().for_each(|name| context.caches.requests.apply(request_at(name, context.clock.now())));
        let HostCaches { pods, budgets, requests, maintenances, .. } = &context.caches;
        context.caches.daemon_sets.finish_list(&Default::default());
        pods.finish_list(&pods.all().iter().map(|pod| pod.key()).collect());
        budgets.finish_list(&budgets.all().iter().map(|budget| budget.key()).collect());
        requests.finish_list(&requests.all().iter().map(|request| request.key()).collect());
        maintenances.finish_list(&Default::default());
        tokio::spawn(run(context.clone()));
        Self { context, asked }
    }

    /// Waits for a call for which `is_it` holds.
    pub(super) async fn until(&mut self, is_it: impl Fn(&HostCalls) -> bool) -> HostCalls {
        let found = async {
            loop {
                let asked = self.asked.recv().await.expect("it runs");
                if is_it(&asked) {
                    return asked;
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.expect("asked in time")
    }

    /// Waits until a report says that so many evictions of this pod failed.
    pub(super) async fn until_kept(&mut self, name: &str, retries: u32) {
        let said = format!("retries: {retries}");
        self.until(
            |asked| matches!(asked, HostCalls::Report(n, message) if n == name && message.contains(&said)),
        )
        .await;
    }

    pub(super) async fn until_evicted(&mut self, name: &str) {
        self.until(|asked| *asked == HostCalls::Eviction(name.to_owned())).await;
    }
}

impl Drop for RunningInterceptor {
    fn drop(&mut self) {
        self.context.tasks.shutdown().cancel();
    }
}

/// A pod's UID is its name here.
pub(super) fn pod(name: &str) -> Pod {
    Pod {
        name: name.into(),
        namespace: "ns".into(),
        uid: name.into(),
        phase: PodPhase::Running,
        ready: true,
        ..Default::default()
    }
}

/// The host's answer to a read of a pod: a pod called `going` is terminating, which the cache does not know.
pub(super) fn live(path: &str) -> (u16, Value) {
    let name = path.split(['/', '?']).skip_while(|part| *part != "pods").nth(1).unwrap_or_default();
    let mut metadata = json!({"name": name, "namespace": "ns", "uid": name});
    if name == "going" {
        metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    (200, json!({"metadata": metadata, "spec": {}, "status": {"phase": "Running"}}))
}

/// A request on which imperative eviction has reported before.
pub(super) fn request(pod: &str) -> EvictionRequest {
    request_at(pod, Timestamp::now())
}

/// A request on which imperative eviction has reported at this time.
fn request_at(pod: &str, now: Timestamp) -> EvictionRequest {
    let mut request = unreported_request(pod);
    let entry = &mut request.status.interceptors[0];
    (entry.start_time, entry.heartbeat_time) = (Some(now), Some(now));
    request
}

pub(super) fn unreported_request(pod: &str) -> EvictionRequest {
    let mut request = EvictionRequest::named("ns", pod);
    request.metadata.uid = format!("request-{pod}");
    request.spec.target.pod = Some(LocalPodReference { name: pod.into(), uid: pod.into() });
    request.spec.requesters = vec![Requester { name: "r.example.com".into() }];
    request.status.active_interceptors = vec![NAME.into()];
    request.status.interceptors = vec![InterceptorStatus { name: NAME.into(), ..Default::default() }];
    request
}

pub(super) fn budget(name: &str, version: &str, disruptions_allowed: i32) -> PodDisruptionBudget {
    PodDisruptionBudget {
        name: name.into(),
        namespace: "ns".into(),
        resource_version: version.into(),
        selector: Some(Default::default()),
        disruptions_allowed,
        ..Default::default()
    }
}

pub(super) fn accepted() -> (u16, Value) {
    (201, json!({"kind": "Status", "status": "Success"}))
}

/// The answer about several budgets has HTTP 201, as the host sends it.
pub(super) fn several() -> (u16, Value) {
    (
        201,
        json!({"kind": "Status", "status": "Failure", "code": 500, "message":
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}),
    )
}

pub(super) fn no_disruption() -> (u16, Value) {
    let (code, mut body) = failure(429, "TooManyRequests");
    body["details"] = json!({"causes": [{"reason": "DisruptionBudget", "message": "b needs 2"}]});
    (code, body)
}

pub(super) fn denied() -> (u16, Value) {
    let (code, mut body) = failure(403, "Forbidden");
    body["message"] = json!("admission webhook \"w.example.com\" denied the request: not now");
    (code, body)
}

pub(super) fn withdrawn(pod: &str) -> EvictionRequest {
    EvictionRequest { spec: Default::default(), ..request(pod) }
}
