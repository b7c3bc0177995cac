//! Ways in which a tenant might keep a pod on a node that is drained, without a blocker that names it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use drydock_api::eviction_request::interceptor_annotations;
use drydock_api::time::format_seconds;
use drydock_testkit::finding::Finding;
use drydock_testkit::kinds::eviction_request;
use drydock_testkit::wait::{LIMIT, retry};
use http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::eviction_requests::{Findings, REQUESTER, until};
use crate::attack::Attack;
use crate::client::{UserConnection, UserRequest, UserResponse};
use crate::context::AttackContext;
use crate::setup::Pods;
use crate::setup::cluster::{PATIENT, has_condition, maintenance, pod};

const FINALIZER: &str = "veto.example.com/stay";
/// An interceptor that never reports, after [`PATIENT`].
pub(super) const SECOND: &str = "second.example.com";
/// How often a request for another pod is made for each pod.
const SQUATS: usize = 200;
/// The pod of these requests, which does not exist.
const NOWHERE: &str = "nowhere";
/// How often a pod is put on a node again at most.
const TIMES: usize = 10;
/// A request for another pod is replaced at once, and after 5 minutes, and later and later: in each of these there is one at most.
const BACKOFF: Duration = Duration::from_secs(300);
/// The requester of maintenances, whose name anybody may write.
const MAINTENANCE: &str = "nodemaintenance.k8s.io";

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("finalizer-veto", "a maintenance's requests, deleted and held by a finalizer", |f| {
            Box::pin(finalizer_veto(f))
        }),
        Attack::new("squatted-uids", "requests named as the drain's own would be, for another pod", |f| {
            Box::pin(squatted_uids(f))
        }),
        Attack::new("endless-turn", "an interceptor that reports on time, and never ends", |f| {
            Box::pin(endless_turn(f))
        }),
        Attack::new("borrowed-words", "an interceptor that says a budget of others keeps its pod", |f| {
            Box::pin(borrowed_words(f))
        }),
        Attack::new(
            "endless-pods",
            "pods without a controller, put on a drained node again and again",
            |f| Box::pin(endless_pods(f)),
        ),
    ]
}

/// Both controllers ignored a request that is being deleted: no blocker named it, and it was never ended.
async fn finalizer_veto(context: AttackContext) -> Findings {
    // There is a turn in the next request too, even if the first interceptor has had its own.
    let annotations = json!({turn_of(PATIENT): "1000/controller", turn_of(SECOND): "10/controller"});
    let pods = drained_with(&context, &annotations).await?;
    let connection = context.connect().await?;
    for (_, uid) in &pods {
        let path = context.tenant.request(uid);
        let hold = json!({"metadata": {"finalizers": [FINALIZER]}});
        connection.done(&UserRequest::merge(format!("{path}?fieldManager=vetoer"), &hold)).await?;
        context.note(&connection.ask_again(&UserRequest::delete(&path)).await);
    }
    let blocker = context.setup.blocker(&context.tenant.namespace, "Finalizer", &[FINALIZER, "vetoer"]).await;
    let (_, first) = pods.first().context("no pod")?;
    let ended = until(&context, first, is_canceled).await;
    let joined = json!({"spec": {"requesters": [{"name": REQUESTER}]}});
    let joined = connection.ask_again(&UserRequest::merge(context.tenant.request(first), &joined)).await?;
    let held = connection.done(&UserRequest::get(context.tenant.request(first))).await?;
    let release = json!({"metadata": {"finalizers": null}});
    context.note(&connection.ask_again(&UserRequest::merge(context.tenant.request(first), &release)).await);
    let replaced = until(&context, first, |request| {
        request["metadata"]["uid"] != held["metadata"]["uid"]
            && !request["status"]["activeInterceptors"].is_null()
    });
    let replaced = replaced.await;
    Ok(vec![
        Finding::new(blocker.is_ok(), format!("a blocker that names the finalizer: {}", whether(&blocker))),
        Finding::new(ended.is_ok(), format!("the end of a request that is held: {}", whether(&ended))),
        Finding::new(
            joined.code == StatusCode::UNPROCESSABLE_ENTITY,
            format!("a requester of a request that is being deleted: {}", joined.summary()),
        ),
        Finding::new(replaced.is_ok(), format!("another request, when it is gone: {}", whether(&replaced))),
    ])
}

/// The controllers replaced such a request as soon as it was canceled, as fast as the tenant made it again, and no
/// blocker named it.
async fn squatted_uids(context: AttackContext) -> Findings {
    let pods = pods_to_drain(&context, 10).await?;
    let (pod, first) = pods.first().context("no pod")?;
    let (last_pod, last) = pods.last().context("no pod")?;
    let squatter = Squatter { connection: context.connect().await?, context: &context };
    let squat_all = async || {
        for (_, uid) in &pods {
            squatter.squat(uid).await;
        }
    };
    // The first are there before the drain begins, and each is made again as soon as its name is free. Until the drain is
    // known, nothing holds the controllers back: a request of a maintenance that does not drain the node is withdrawn.
    squat_all().await;
    context.setup.drain(&context.tenant.namespace, &context.tenant.namespace).await?;
    let late = || "the drain does not begin".to_owned();
    retry(LIMIT, late, async || {
        squat_all().await;
        is_begun(&context).await
    })
    .await?;
    let (began, before) = (Instant::now(), context.counted("201"));
    for _ in 1..SQUATS {
        squat_all().await;
    }
    // The tenant does not stop before the blocker is there: the controllers may come to the first requests later than that.
    // They may also have been faster than the tenant at every name: the last pod's is taken from the drain's own request.
    let taken = Cell::new(0);
    let squats_on = async {
        loop {
            squat_all().await;
            if matches!(squatter.delete_if_for(last_pod, last).await, Ok(true)) {
                taken.update(|taken| taken + 1);
                squatter.squat(last).await;
            }
        }
    };
    let blocker = tokio::select! {
        blocker = context.setup.blocker(&context.tenant.namespace, "WrongTarget", &[NOWHERE, "squatter"]) => blocker,
        never = squats_on => never,
    };
    let in_time = usize::try_from(began.elapsed().as_secs() / BACKOFF.as_secs())?;
    let (made, of_a_name) = (context.counted("201") - before, 3 + in_time);
    let most = pods.len() * of_a_name + taken.get().min(of_a_name);
    for (_, uid) in &pods {
        // Only the tenant's requests are deleted: the drain would miss its own, and make it again with backoff.
        squatter.delete_if_for(NOWHERE, uid).await?;
    }
    let asked =
        until(&context, first, |request| request["spec"]["target"]["pod"]["name"] == json!(pod)).await;
    Ok(vec![
        Finding::new(
            blocker.is_ok(),
            format!("a blocker that names who made the request: {}", whether(&blocker)),
        ),
        Finding::new(made <= most, format!("{made} requests for another pod, more than {most}")),
        Finding::new(
            asked.is_ok(),
            format!("the pod's own request, when its name is free: {}", whether(&asked)),
        ),
    ])
}

/// Whether the drain of the tenant's node has begun.
async fn is_begun(context: &AttackContext) -> Result<bool> {
    let found = context.setup.done(&UserRequest::get(maintenance(&context.tenant.namespace))).await?;
    Ok(!found["status"]["nodeStatuses"][0].is_null())
}

/// A tenant who makes requests for a pod that does not exist, under the names that those of others' pods must have.
struct Squatter<'a> {
    context: &'a AttackContext,
    connection: UserConnection,
}

impl Squatter<'_> {
    async fn squat(&self, uid: &str) {
        let path = format!("{}?fieldManager=squatter", self.context.tenant.requests());
        let squat = UserRequest::post(path, &eviction_request(NOWHERE, uid, MAINTENANCE));
        self.context.note(&self.connection.ask_again(&squat).await);
    }

    /// Deletes the request of this name if it is for this pod; returns whether this call deleted it.
    async fn delete_if_for(&self, pod: &str, uid: &str) -> Result<bool> {
        let path = self.context.tenant.request(uid);
        let held = self.connection.ask_again(&UserRequest::get(&path)).await?.json();
        if held["spec"]["target"]["pod"]["name"] != pod {
            return Ok(false);
        }
        // Another may have taken its place.
        let only_this = json!({"preconditions": {"uid": held["metadata"]["uid"]}}).to_string();
        let delete = UserRequest::body(Method::DELETE, &path, "application/json", only_this);
        let deleted = self.connection.ask_again(&delete).await;
        self.context.note(&deleted);
        Ok(deleted?.code.is_success())
    }
}

/// Heartbeats keep a turn for as long as they come (KEP-4563), and no blocker said what the drain waits for.
async fn endless_turn(context: AttackContext) -> Findings {
    let pods = drained(&context).await?;
    let late = |now: Timestamp| json!({"message": "nearly there", "expectedFinishTime": format_seconds(now + SignedDuration::from_secs(3))});
    for (_, uid) in &pods {
        report(&context, uid, late).await?;
    }
    let words = [PATIENT, "nearly there", "expected to finish"];
    let blocker = context.setup.blocker(&context.tenant.namespace, "Interceptor", &words).await;
    Ok(vec![
        Finding::new(context.counted("200") == pods.len(), "the interceptor could not report".to_owned()),
        Finding::new(blocker.is_ok(), format!("a blocker that names the interceptor: {}", whether(&blocker))),
    ])
}

/// The maintenance reported the interceptor's words as if a budget blocked, which misled the admin.
async fn borrowed_words(context: AttackContext) -> Findings {
    let pods = drained(&context).await?;
    let lie = "PodDisruptionBudget kube-system/coredns allows 0 disruptions";
    let blocked = json!({"reason": "PodDisruptionBudget", "name": "coredns", "state": "NeverAllows"});
    for (_, uid) in &pods {
        report(&context, uid, |_| json!({"message": lie, "blocked": blocked})).await?;
    }
    let words = format!("{PATIENT} says: \"{lie}\"");
    let blocker = context.setup.blocker(&context.tenant.namespace, "Interceptor", &[&words]).await;
    let maintenance = context.setup.done(&UserRequest::get(maintenance(&context.tenant.namespace))).await?;
    let blockers = maintenance["status"]["nodeStatuses"][0]["blockers"].as_array();
    let believed = blockers.into_iter().flatten().any(|b| b["reason"] == "PodDisruptionBudget");
    Ok(vec![
        Finding::new(context.counted("200") == pods.len(), "the interceptor could not report".to_owned()),
        Finding::new(
            blocker.is_ok(),
            format!("a blocker that says whose words these are: {}", whether(&blocker)),
        ),
        Finding::new(!believed, "a blocker says that a budget keeps the pod".to_owned()),
    ])
}

/// Each pod was a new one, and was evicted as fast as it came: the drain never ended, and nothing reported why.
async fn endless_pods(context: AttackContext) -> Findings {
    let name = &context.tenant.namespace;
    context.setup.node(name).await?;
    context.setup.drain(name, name).await?;
    let is_drained = async || {
        Ok(has_condition(&context.setup.done(&UserRequest::get(maintenance(name))).await?, "Drained"))
    };
    retry(LIMIT, || "an empty node is not drained".to_owned(), is_drained).await?;
    let connection = context.connect_through_host().await?;
    let words = [name.as_str(), "again and again in namespace"];
    let mut has_blocker = false;
    for at in 0..TIMES {
        let pod_name = format!("again-{at}");
        let pod = pod(&pod_name, name, &json!({}));
        context.note(&connection.ask_again(&UserRequest::post(context.tenant.pods(), &pod)).await);
        let pod = UserRequest::get(format!("{}/{pod_name}", context.tenant.pods()));
        // The blocker is there while the pod is held back, which is twice as long each time.
        let is_next = async || {
            has_blocker = context.setup.has_blocker(name, "WorkloadReturns", &words).await?;
            Ok(has_blocker || connection.ask_again(&pod).await?.code == StatusCode::NOT_FOUND)
        };
        retry(LIMIT, || format!("{pod_name} stays without a blocker"), is_next).await?;
        if has_blocker {
            break;
        }
    }
    let ended = retry(LIMIT, || "not drained".to_owned(), is_drained).await;
    Ok(vec![
        Finding::new(has_blocker, format!("no blocker names the namespace after {TIMES} pods")),
        Finding::new(ended.is_ok(), format!("the end of the drain, when no more come: {}", whether(&ended))),
    ])
}

/// The tenant's interceptor reports this of a pod when it has its turn. It must be taken within 10 s of its own time, or is
/// reported again.
pub(super) async fn report(
    context: &AttackContext,
    uid: &str,
    said: impl Fn(Timestamp) -> Value,
) -> Result<()> {
    until(context, uid, |request| request["status"]["activeInterceptors"] == json!([PATIENT])).await?;
    let mut entry =
        context.setup.done(&UserRequest::get(context.tenant.request(uid))).await?["status"]["interceptors"]
            [0]
        .take();
    let connection = context.connect().await?;
    let path = format!("{}/status?fieldManager=patient&force=true", context.tenant.request(uid));
    let is_answered = async || {
        let now = Timestamp::now();
        entry["startTime"] = json!(format_seconds(now));
        entry["heartbeatTime"] = entry["startTime"].clone();
        for (key, value) in said(now).as_object().into_iter().flatten() {
            entry[key] = value.clone();
        }
        let object = json!({"apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest",
                            "metadata": {"name": uid}, "status": {"interceptors": [entry]}});
        let answer = connection.ask(&UserRequest::apply(&path, object.to_string())).await;
        let is_to_be_made_anew = |answer: &UserResponse| {
            let is_past = String::from_utf8_lossy(&answer.body).contains("must be the present time");
            is_past || [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&answer.code)
        };
        if answer.as_ref().is_ok_and(is_to_be_made_anew) {
            return Ok(false);
        }
        context.note(&answer);
        Ok(true)
    };
    retry(LIMIT, || format!("{uid}: no report is taken"), is_answered).await
}

fn whether(came: &Result<()>) -> String {
    came.as_ref().map_or_else(|error| format!("{error:#}"), |()| "it came".to_owned())
}

fn is_canceled(request: &Value) -> bool {
    has_condition(request, "Canceled") && request["status"]["activeInterceptors"].is_null()
}

/// Pods of the tenant on a node of their own, which has the tenant's name.
async fn pods_to_drain(context: &AttackContext, count: usize) -> Result<Pods> {
    let name = &context.tenant.namespace;
    context.setup.node(name).await?;
    context.setup.pods(&context.tenant, name, count, true).await
}

/// The annotation that gives an interceptor a turn.
pub(super) fn turn_of(interceptor: &str) -> String {
    format!("{}priority_{interceptor}", interceptor_annotations::PREFIX)
}

/// The same, which a maintenance has asked to leave.
async fn drained(context: &AttackContext) -> Result<Pods> {
    drained_with(context, &json!({turn_of(PATIENT): "1000/controller"})).await
}

/// The same with these annotations.
pub(super) async fn drained_with(context: &AttackContext, annotations: &Value) -> Result<Pods> {
    let name = &context.tenant.namespace;
    context.setup.node(name).await?;
    let count = context.pick(10, 100);
    let pods = context.setup.annotated_pods(&context.tenant, name, count, annotations).await?;
    context.setup.drain(name, name).await?;
    for (_, uid) in &pods {
        until(context, uid, |request| !request["status"]["activeInterceptors"].is_null()).await?;
    }
    Ok(pods)
}
