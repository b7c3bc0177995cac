//! What is to be done about an EvictionRequest, from what it says, what is known of its pod, and the time.
//!
//! ```text
//!  new ──valid──▶ target[0] active ──turn over──▶ target[1] active ──▶ ...
//!   │                   │                               │
//!   │ pod missing,      │ pod gone or terminal ─────────┴──▶ Evicted ──┐
//!   │ in a group        │ no requester, deleted ────────┴──▶ Canceled ─┴─▶ removed, in time
//!   └──▶ Canceled
//! ```
//!
//! A request that was deleted and is kept by a finalizer is ended all the same: whoever holds it waits for the end.

use std::collections::BTreeMap;
use std::time::Duration;

use drydock_api::eviction_request::interceptors::{AllowedNames, PodProperties, select_interceptors};
use drydock_api::eviction_request::transitions::{
    DEFAULT_HEARTBEAT_DEADLINE, active_deadline, may_advance, next_interceptor,
};
use drydock_api::eviction_request::{
    EvictionRequest, EvictionRequestStatus, Interceptor, InterceptorStatus, PodInfo,
};
use drydock_api::time::{format_seconds, truncate_to_micros};
use drydock_runtime::{Pod, events::reasons};
use jiff::Timestamp;

use crate::cleanup;
use crate::conditions::{self, Verdict};
use crate::labels;

/// Most entries of a pod's list that are told of: its annotations may hold thousands that are wrong.
const MAX_WARNINGS: usize = 20;

/// What the decisions depend on besides.
#[derive(Clone, Debug)]
pub struct Config {
    /// How long an interceptor may be silent; the same as the API server's.
    pub heartbeat_deadline: Duration,
    /// How long finished requests are kept for requesters that do not withdraw; none keeps them.
    pub retention: Option<Duration>,
    /// How long canceled requests are kept: those that nobody wants any more, and those that failed validation.
    pub canceled_grace: Duration,
    /// How many finished requests of a namespace are kept; the oldest beyond are removed at once.
    pub max_finished: usize,
    /// Names under k8s.io that may intercept.
    pub allowed: AllowedNames,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            heartbeat_deadline: DEFAULT_HEARTBEAT_DEADLINE,
            retention: Some(Duration::from_secs(24 * 3600)),
            canceled_grace: Duration::from_secs(5 * 60),
            max_finished: 5_000,
            allowed: AllowedNames::default(),
        }
    }
}

/// What is known of the target pod, by its name and UID.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// It is there.
    Present(&'a Pod),
    /// The cache does not have it, or has another pod under its name. The cache may lag.
    NotCached,
    /// The API server says that it is not there.
    Absent,
    /// The API server says that another pod has its name, of this UID.
    Replaced(&'a str),
}

/// What is to be done. Nothing at all is the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The status to write, if it is to change.
    pub status: Option<EvictionRequestStatus>,
    /// The labels to apply, all of the pod's, if one of them is to change.
    pub labels: Option<BTreeMap<String, String>>,
    /// When to look again, if nothing changes before.
    pub wake: Option<Timestamp>,
    /// Whether the status to write ends the request.
    pub ends: bool,
    /// Whether the request is to be deleted.
    pub delete: bool,
    /// Whether the API server is to be asked for the pod before anything is decided.
    pub confirm: bool,
    /// What the pod's owner is told once the status is written; one Warning event each.
    pub warnings: Vec<Warning>,
}

/// A Warning event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its reason.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// Decides.
pub fn step(request: &EvictionRequest, target: Target<'_>, now: Timestamp, config: &Config) -> Decision {
    let mut decision = if request.is_finished() {
        cleanup::after_the_end(request, now, config)
    } else if request.status.target_interceptors.is_empty() {
        begin(request, target, now, config)
    } else {
        go_on(request, target, now, config)
    };
    if let Target::Present(pod) = target
        && !request.is_finished()
        && !decision.ends
    {
        decision.labels = labels::to_apply(request, &pod.labels);
    }
    if !decision.confirm && !decision.delete {
        decision.status = observed(request, decision.status.take());
    }
    decision
}

/// The status with the generation observed, if it differs from the present one.
fn observed(
    request: &EvictionRequest,
    status: Option<EvictionRequestStatus>,
) -> Option<EvictionRequestStatus> {
    let mut status = status.unwrap_or_else(|| request.status.clone());
    status.observed_generation = status.observed_generation.max(request.metadata.generation);
    (status != request.status).then_some(status)
}

/// Validation, and the first turn.
fn begin(request: &EvictionRequest, target: Target<'_>, now: Timestamp, config: &Config) -> Decision {
    let name = pod_name(request);
    if request.spec.requesters.is_empty() {
        return end(request, &Verdict::no_requesters(), now);
    }
    match target {
        Target::NotCached => Decision { confirm: true, ..Decision::default() },
        Target::Absent => end(request, &Verdict::not_found(name), now),
        Target::Replaced(uid) => {
            let asked = request.spec.target.pod.as_ref().map_or("", |pod| pod.uid.as_str());
            end(request, &Verdict::replaced(name, asked, uid), now)
        }
        Target::Present(pod) if pod.is_terminal() => end(request, &Verdict::terminated(name), now),
        Target::Present(_) if request.is_being_deleted() => end(request, &Verdict::request_deleted(), now),
        Target::Present(pod) if pod.in_group => end(request, &Verdict::in_group(name), now),
        Target::Present(pod) => first_turn(request, pod, now, config),
    }
}

fn first_turn(request: &EvictionRequest, pod: &Pod, now: Timestamp, config: &Config) -> Decision {
    let selection = select_interceptors(&facts(pod), &config.allowed);
    let mut status = request.status.clone();
    let named = |name: &String| Interceptor { name: name.clone() };
    status.target_interceptors = selection.targets.iter().map(named).collect();
    let blank = |name: &String| InterceptorStatus { name: name.clone(), ..Default::default() };
    status.interceptors = selection.targets.iter().map(blank).collect();
    status.active_interceptors = selection.targets.first().cloned().into_iter().collect();
    status.activation_time = Some(truncate_to_micros(now));
    status.pod_info = Some(pod_info(pod));
    let ignored = |message| Warning { reason: reasons::INVALID_INTERCEPTOR, message };
    let warnings = selection.warnings.into_iter().take(MAX_WARNINGS).map(ignored).collect();
    Decision { status: Some(status), warnings, ..Decision::default() }
}

fn pod_info(pod: &Pod) -> PodInfo {
    PodInfo {
        node_name: pod.node_name.clone(),
        priority: pod.priority,
        pod_type: pod.pod_type().as_str().to_owned(),
    }
}

/// What the list of interceptors depends on.
fn facts(pod: &Pod) -> PodProperties<'_> {
    let responders = pod.responders.iter().flatten();
    PodProperties {
        eviction_interceptors: pod.interceptors.iter().flatten().map(String::as_str).collect(),
        eviction_responders: responders.map(|r| (r.name.as_str(), i64::from(r.priority))).collect(),
        annotations: Some(&pod.annotations),
        of_daemon_set: pod.is_daemon_set_pod(),
        mirror: pod.is_mirror(),
    }
}

/// The end of the pod, the end of the wish, or the next turn.
fn go_on(request: &EvictionRequest, target: Target<'_>, now: Timestamp, config: &Config) -> Decision {
    let name = pod_name(request);
    let pod = match target {
        Target::NotCached => return Decision { confirm: true, ..Decision::default() },
        Target::Absent | Target::Replaced(_) => return end(request, &Verdict::deleted(name), now),
        Target::Present(pod) if pod.is_terminal() => return end(request, &Verdict::terminated(name), now),
        Target::Present(pod) => pod,
    };
    if request.spec.requesters.is_empty() {
        return end(request, &Verdict::no_requesters(), now);
    }
    if request.is_being_deleted() {
        return end(request, &Verdict::request_deleted(), now);
    }
    match turn_over_at(request, pod, config) {
        Some(due) if due <= now && may_take_turn(request, config, now) => next_turn(request, now),
        wake => Decision { wake, ..Decision::default() },
    }
}

/// When the active interceptor's turn is over: once it has completed or been silent too long, but not while the pod's
/// own grace period runs. None if nobody comes after it.
fn turn_over_at(request: &EvictionRequest, pod: &Pod, config: &Config) -> Option<Timestamp> {
    next_interceptor(&request.status)?;
    let due = match request.active_interceptor() {
        None => Timestamp::MIN,
        Some(_) => {
            let completed = request.active_interceptor_status().and_then(|a| a.completion_time);
            let deadline = active_deadline(request, config.heartbeat_deadline);
            completed.or(deadline)?
        }
    };
    Some(pod.deletion_timestamp.map_or(due, |grace_ends| due.max(grace_ends)))
}

fn may_take_turn(request: &EvictionRequest, config: &Config, now: Timestamp) -> bool {
    request.active_interceptor().is_none() || may_advance(request, config.heartbeat_deadline, now)
}

fn next_turn(request: &EvictionRequest, now: Timestamp) -> Decision {
    let mut status = request.status.clone();
    let next = next_interceptor(&request.status).map(str::to_owned);
    retire_active(&mut status);
    status.active_interceptors = next.into_iter().collect();
    status.activation_time = Some(truncate_to_micros(now));
    let warnings = timed_out(request).into_iter().collect();
    Decision { status: Some(status), warnings, ..Decision::default() }
}

/// What is told when the active interceptor loses its turn, if it has not completed it.
fn timed_out(request: &EvictionRequest) -> Option<Warning> {
    let active = request.active_interceptor_status().filter(|active| active.completion_time.is_none())?;
    let said = match (active.heartbeat_time, request.status.activation_time) {
        (Some(last), _) => format!("has not reported since {}", format_seconds(last)),
        (None, Some(turn)) => format!("has never reported; its turn began at {}", format_seconds(turn)),
        (None, None) => "has never reported".to_owned(),
    };
    let next = next_interceptor(&request.status).unwrap_or_default();
    let message = format!("{} {said}. It is passed over, and the turn is {next}'s", active.name);
    Some(Warning { reason: reasons::INTERCEPTOR_TIMED_OUT, message })
}

/// A terminal condition; nobody is active any more.
fn end(request: &EvictionRequest, verdict: &Verdict, now: Timestamp) -> Decision {
    let mut status = request.status.clone();
    retire_active(&mut status);
    conditions::set(&mut status, verdict, request.metadata.generation, now);
    Decision { status: Some(status), ends: true, ..Decision::default() }
}

/// Nobody is active any more; whoever was had a turn.
pub(crate) fn retire_active(status: &mut EvictionRequestStatus) {
    for active in std::mem::take(&mut status.active_interceptors) {
        if !status.processed_interceptors.contains(&active) {
            status.processed_interceptors.push(active);
        }
    }
}

fn pod_name(request: &EvictionRequest) -> &str {
    request.spec.target.pod.as_ref().map(|p| p.name.as_str()).unwrap_or_default()
}

#[cfg(test)]
#[path = "machine_end_tests.rs"]
mod end_tests;
#[cfg(test)]
#[path = "machine_properties.rs"]
mod properties;
#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
