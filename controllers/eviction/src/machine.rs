//! Decides what is to be done about an EvictionRequest, from the request, its pod, and the time.
//!
//! ```text
//!  new ──valid──▶ target[0] active ──turn over──▶ target[1] active ──▶ ...
//!   │                   │                               │
//!   │ pod missing,      │ pod gone or terminal ─────────┴──▶ Evicted ──┐
//!   │ in a group        │ no requester, deleted ────────┴──▶ Canceled ─┴─▶ removed, in time
//!   └──▶ Canceled
//! ```
//!
//! A request that was deleted and is kept by a finalizer is ended all the same: the owner of the finalizer
//! waits for the end.

use std::time::Duration;

use drydock_api::eviction_request::interceptors::{
    MAX_POD_INTERCEPTORS, PodProperties, is_default, select_interceptors,
};
use drydock_api::eviction_request::pod_labels;
use drydock_api::eviction_request::transitions::{
    active_deadline, index_of, interception_ends, may_advance, next_interceptor, successor,
};
use drydock_api::eviction_request::{
    EarlierTurns, EvictionRequest, EvictionRequestStatus, Interceptor, InterceptorStatus, PodInfo,
};
use drydock_api::time::{format_seconds, truncate_to_micros, truncate_to_seconds};
use drydock_runtime::{Pod, events::reasons};
use jiff::Timestamp;

use crate::decision::{Config, RequestDecision, TargetPod, Warning};
use crate::ending::{self, TerminalCondition, retire_active};

/// Most wrong entries of a pod's annotations that get an event: there may be thousands.
const MAX_WARNINGS: usize = 20;

/// Returns the decision about a request.
pub fn step(
    request: &EvictionRequest,
    target: TargetPod<'_>,
    now: Timestamp,
    config: &Config,
) -> RequestDecision {
    let mut decision = if request.is_finished() {
        ending::after_the_end(request, now, config)
    } else if request.status.target_interceptors.is_empty() {
        begin(request, target, now, config)
    } else {
        go_on(request, target, now, config)
    };
    if let TargetPod::Present(pod) = target
        && !request.is_finished()
        && !decision.ends
    {
        decision.labels = pod_labels::changes(request, &pod.labels);
    }
    if !decision.confirm && !decision.delete {
        decision.status = observed(request, decision.status.take());
    }
    decision
}

/// Returns the status with the request's generation as the observed one, if it differs from the present
/// status.
fn observed(
    request: &EvictionRequest,
    status: Option<EvictionRequestStatus>,
) -> Option<EvictionRequestStatus> {
    let mut status = status.unwrap_or_else(|| request.status.clone());
    status.observed_generation = status.observed_generation.max(request.metadata.generation);
    (status != request.status).then_some(status)
}

/// Validates a new request, and begins the first turn.
fn begin(
    request: &EvictionRequest,
    target: TargetPod<'_>,
    now: Timestamp,
    config: &Config,
) -> RequestDecision {
    let name = pod_name(request);
    if request.spec.requesters.is_empty() {
        return end(request, &TerminalCondition::no_requesters(), now);
    }
    match target {
        TargetPod::NotCached => RequestDecision { confirm: true, ..RequestDecision::default() },
        TargetPod::Absent => end(request, &TerminalCondition::not_found(name), now),
        TargetPod::Replaced(uid) => {
            let asked = request.spec.target.pod.as_ref().map_or("", |pod| pod.uid.as_str());
            end(request, &TerminalCondition::replaced(name, asked, uid), now)
        }
        TargetPod::Present(pod) if pod.is_terminal() => {
            end(request, &TerminalCondition::terminated(name), now)
        }
        TargetPod::Present(_) if request.is_being_deleted() => {
            end(request, &TerminalCondition::request_deleted(), now)
        }
        TargetPod::Present(pod) if pod.in_group => end(request, &TerminalCondition::in_group(name), now),
        // The list of interceptors depends on it, and is chosen once. The answer of the host changes the cached pod, which
        // wakes us.
        TargetPod::Present(pod) if pod.is_undecided() => RequestDecision::default(),
        TargetPod::Present(pod) => first_turn(request, pod, now, config),
    }
}

fn first_turn(request: &EvictionRequest, pod: &Pod, now: Timestamp, config: &Config) -> RequestDecision {
    let earlier = request.status.earlier_turns.as_ref();
    let had_turns = earlier.map_or(&[][..], |earlier| earlier.interceptors.as_slice());
    let selection = select_interceptors(&pod_properties(pod, had_turns), &config.allowed);
    let mut status = request.status.clone();
    status.interception_deadline = interception_deadline(request, config);
    let over = status.interception_deadline.filter(|end| *end <= now);
    let has_time = |name: &String| over.is_none() || is_default(name);
    let (targets, late): (Vec<_>, Vec<_>) = selection.targets.into_iter().partition(has_time);
    if targets.iter().all(|name| is_default(name)) {
        status.interception_deadline = None;
    }
    let named = |name: &String| Interceptor { name: name.clone() };
    status.target_interceptors = targets.iter().map(named).collect();
    let blank = |name: &String| InterceptorStatus { name: name.clone(), ..Default::default() };
    status.interceptors = targets.iter().map(blank).collect();
    status.active_interceptors = targets.first().cloned().into_iter().collect();
    status.activation_time = Some(truncate_to_micros(now));
    status.pod_info = Some(pod_info(pod));
    let ignored = |message| Warning { reason: reasons::INVALID_INTERCEPTOR, message };
    let left_out = left_out(pod).into_iter();
    let warnings = left_out.chain(selection.warnings).take(MAX_WARNINGS).map(ignored);
    let had = earlier.filter(|earlier| !earlier.interceptors.is_empty());
    let no_time = over.and_then(|end| no_time_left(&late, targets.first()?, end));
    let warnings = had.map(no_second_turn).into_iter().chain(no_time).chain(warnings).collect();
    RequestDecision { status: Some(status), warnings, ..RequestDecision::default() }
}

/// The warning that interceptors get no turn, because the time of all was over before.
fn no_time_left(names: &[String], next: &str, end: Timestamp) -> Option<Warning> {
    let message = format!(
        "{} had no turn: the time of the pod's own interceptors (--max-interception) was over at {}. The turn is {next}'s",
        names.join(", "),
        format_seconds(end)
    );
    (!names.is_empty()).then_some(Warning { reason: reasons::INTERCEPTOR_TIMED_OUT, message })
}

/// The warning that interceptors have had their turns before.
fn no_second_turn(earlier: &EarlierTurns) -> Warning {
    let message = format!(
        "{} had a turn in an earlier EvictionRequest for the pod, which others ended during the drain: no other turn follows",
        earlier.interceptors.join(", ")
    );
    Warning { reason: reasons::INTERCEPTOR_SKIPPED, message }
}

/// When the turns of the pod's own interceptors are over: counted from the creation of the request, which no tenant can
/// set, less what earlier requests took. None if they have no bound.
fn interception_deadline(request: &EvictionRequest, config: &Config) -> Option<Timestamp> {
    let (max, began) = (config.max_interception?, request.metadata.creation_timestamp?);
    let used = request.status.earlier_turns.as_ref().map_or(0, |earlier| earlier.seconds);
    let left = max.saturating_sub(Duration::from_secs(u64::try_from(used).unwrap_or_default()));
    Some(truncate_to_seconds(began.checked_add(left).unwrap_or(Timestamp::MAX)))
}

/// The warning about annotations that the cache does not keep, because there are too many.
fn left_out(pod: &Pod) -> Option<String> {
    let count = pod.annotations_left_out;
    (count > 0).then(|| {
        format!(
            "{count} annotations about interceptors are ignored, because they have mistakes or the lowest priorities: a pod may have \
             at most {MAX_POD_INTERCEPTORS} interceptors"
        )
    })
}

fn pod_info(pod: &Pod) -> PodInfo {
    PodInfo {
        node_name: pod.node_name.clone(),
        priority: pod.priority,
        pod_type: pod.pod_type().as_str().to_owned(),
    }
}

/// The properties of a pod on which its list of interceptors depends.
fn pod_properties<'a>(pod: &'a Pod, had_turns: &'a [String]) -> PodProperties<'a> {
    let responders = pod.responders.iter().flatten();
    PodProperties {
        eviction_interceptors: pod.interceptors.iter().flatten().map(String::as_str).collect(),
        eviction_responders: responders.map(|r| (r.name.as_str(), i64::from(r.priority))).collect(),
        annotations: Some(&pod.annotations),
        of_daemon_set: pod.is_daemon_set_pod(),
        mirror: pod.is_mirror(),
        had_turns,
    }
}

/// Ends a request whose pod is gone, that nobody wants any more or that is being deleted; else gives the next
/// turn when it is due.
fn go_on(
    request: &EvictionRequest,
    target: TargetPod<'_>,
    now: Timestamp,
    config: &Config,
) -> RequestDecision {
    let name = pod_name(request);
    let pod = match target {
        TargetPod::NotCached => return RequestDecision { confirm: true, ..RequestDecision::default() },
        TargetPod::Absent | TargetPod::Replaced(_) => {
            return end(request, &TerminalCondition::deleted(name), now);
        }
        TargetPod::Present(pod) if pod.is_terminal() => {
            return end(request, &TerminalCondition::terminated(name), now);
        }
        TargetPod::Present(pod) => pod,
    };
    if request.spec.requesters.is_empty() {
        return end(request, &TerminalCondition::no_requesters(), now);
    }
    if request.is_being_deleted() {
        return end(request, &TerminalCondition::request_deleted(), now);
    }
    let bounded = with_present_bound(request, config);
    let present = bounded.as_ref().unwrap_or(request);
    match (turn_over_at(present, pod, config), &bounded) {
        // The bound goes along: where an API server of an earlier version drops the field, the turn passes on all the same.
        (Some(due), _) if due <= now && may_take_turn(request, config, now) => {
            next_turn(request, present.status.interception_deadline, now)
        }
        (wake, Some(bounded)) => RequestDecision {
            status: Some(bounded.status.clone()),
            wake: wake.filter(|wake| *wake > now),
            ..RequestDecision::default()
        },
        (wake, None) => RequestDecision { wake, ..RequestDecision::default() },
    }
}

/// The request with the bound that the flag sets now, if one of the pod's own interceptors is active under another one: an
/// admin may set a bound for the drain that takes too long.
fn with_present_bound(request: &EvictionRequest, config: &Config) -> Option<EvictionRequest> {
    let is_own = request.active_interceptor().is_some_and(|active| !is_default(active));
    let end = interception_deadline(request, config);
    let is_other = is_own && end != request.status.interception_deadline;
    is_other.then(|| {
        let mut bounded = request.clone();
        bounded.status.interception_deadline = end;
        bounded
    })
}

/// When the active interceptor's turn is over: once it has completed or been silent too long, but not while the pod's
/// own grace period runs. None if no interceptor comes after it.
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

/// Gives the next turn. `bound` is the present one, which the status may not have yet.
fn next_turn(request: &EvictionRequest, bound: Option<Timestamp>, now: Timestamp) -> RequestDecision {
    let mut status = request.status.clone();
    status.interception_deadline = bound;
    let next = successor(&request.status, now).map(str::to_owned);
    retire_active(&mut status);
    let to = next.as_deref().unwrap_or_default();
    let left = left_without_turn(&request.status, to);
    let over = interception_ends(&request.status);
    let warning = timed_out(request, &left, to, now).or_else(|| no_time_left(&left, to, over?));
    let warnings = warning.into_iter().collect();
    status.active_interceptors = next.into_iter().collect();
    status.activation_time = Some(truncate_to_micros(now));
    RequestDecision { status: Some(status), warnings, ..RequestDecision::default() }
}

/// The interceptors between the active one and the next, which get no turn.
fn left_without_turn(status: &EvictionRequestStatus, next: &str) -> Vec<String> {
    let active = status.active_interceptors.first().and_then(|active| index_of(status, active));
    let later = status.target_interceptors.iter().skip(active.map_or(usize::MAX, |at| at + 1));
    later.map(|target| target.name.clone()).take_while(|name| name != next).collect()
}

/// The warning that the active interceptor loses its turn, if it has not completed it, with those that are left out.
fn timed_out(request: &EvictionRequest, left: &[String], next: &str, now: Timestamp) -> Option<Warning> {
    let active = request.active_interceptor_status().filter(|active| active.completion_time.is_none())?;
    let said = match (active.heartbeat_time, request.status.activation_time) {
        (Some(last), _) => format!("has not reported since {}", format_seconds(last)),
        (None, Some(turn)) => format!("has never reported; its turn began at {}", format_seconds(turn)),
        (None, None) => "has never reported".to_owned(),
    };
    let said = match interception_ends(&request.status).filter(|end| *end <= now) {
        Some(end) => format!(
            "has not completed its turn: the time of the pod's own interceptors (--max-interception) was over at {}",
            format_seconds(end)
        ),
        None => said,
    };
    let with = if left.is_empty() { String::new() } else { format!(" with {}", left.join(", ")) };
    let message = format!("{} {said}. It is passed over{with}, and the turn is {next}'s", active.name);
    Some(Warning { reason: reasons::INTERCEPTOR_TIMED_OUT, message })
}

/// Sets a terminal condition; no interceptor stays active.
fn end(request: &EvictionRequest, ending: &TerminalCondition, now: Timestamp) -> RequestDecision {
    let mut status = request.status.clone();
    retire_active(&mut status);
    ending::set(&mut status, ending, request.metadata.generation, now);
    RequestDecision { status: Some(status), ends: true, ..RequestDecision::default() }
}

fn pod_name(request: &EvictionRequest) -> &str {
    request.spec.target.pod.as_ref().map(|p| p.name.as_str()).unwrap_or_default()
}

#[cfg(test)]
#[path = "machine_end_tests.rs"]
mod end_tests;
#[cfg(test)]
#[path = "machine_property_tests.rs"]
mod properties;
#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "machine_turn_tests.rs"]
mod turns;
