//! Which cause keeps a pod, of all that may.

use drydock_api::node_maintenance::blocker::{
    FINALIZER, NO_SCHEDULABLE_NODE, OTHER, REQUEST_WITHDRAWN, WORKLOAD_POD, WRONG_TARGET,
};
use drydock_runtime::Pod;

use super::interceptor::{after_others, no_agent, why_refused, why_slow};
use super::request::{why_astray, why_held};
use super::terminating::{slow_to_die, unreachable};
use crate::actions::Decision;
use crate::nodes::cordon::Flips;
use crate::requests::failures::{Cause, Failures, is_astray};
use crate::requests::returns::Returns;
use crate::world::{View, own};

/// What is remembered beside it that explains why pods are there.
pub(crate) struct Known<'m> {
    pub(crate) failures: &'m Failures,
    pub(crate) returns: &'m Returns,
    pub(crate) flips: &'m Flips,
}

/// Why a pod does not leave.
pub(crate) struct Why {
    pub(crate) reason: &'static str,
    /// The name of who or what it is that blocks, where others may take its place.
    pub(crate) about: String,
    pub(crate) message: String,
    /// The command that helps, behind the message.
    pub(crate) command: Option<String>,
}

impl Why {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, about: String::new(), message: message.into(), command: None }
    }

    /// The same, of somebody of this name.
    pub(crate) fn of(self, about: impl Into<String>) -> Self {
        Self { about: about.into(), ..self }
    }
}

/// Why a pod that is to leave does not, if anything explains it. The first cause is told: what the ones below it say is not
/// true yet, or not any more.
pub(super) fn why(view: &View<'_>, pod: &Pod, known: &Known<'_>, decision: &mut Decision) -> Option<Why> {
    let Known { failures, returns, .. } = known;
    if let Some(ends) = pod.deletion_timestamp {
        return unreachable(view, pod).or_else(|| slow_to_die(view, pod, ends, decision));
    }
    if view.stays(&pod.uid) {
        return Some(Why::new(NO_SCHEDULABLE_NODE, own::WHY));
    }
    let request = view.world.request(pod);
    // One that is asked to leave already is kept by something else.
    if !request.is_some_and(|request| request.is_wanted())
        && let Some(why) = returns.why(pod, view.now)
    {
        return Some(why);
    }
    if let Some(message) = request.and_then(|request| why_held(request)) {
        return Some(Why::new(FINALIZER, message));
    }
    if let Some(request) = request.filter(|request| is_astray(request, pod)) {
        let later = failures.of(pod).map(|failure| failure.again).filter(|at| view.now < *at);
        return Some(Why::new(WRONG_TARGET, why_astray(request, later)));
    }
    let failed = request.and_then(|request| request.validation_failure());
    if let Some(message) = failed.map(|failed| failed.message.as_str()) {
        return Some(why_failed(pod, Cause::Validation, message));
    }
    if let Some(failure) = failures.of(pod).filter(|failure| failure.is_shown(view.now)) {
        return Some(why_failed(pod, failure.cause, &failure.message));
    }
    let request = request?;
    let why = why_refused(request).or_else(|| no_agent(view, pod, request));
    let mut why = why.or_else(|| why_slow(view, request, decision))?;
    if let Some(asked) = failures.asked_again(pod, Some(request)) {
        why.message.push_str(&format!("; {}", asked.words()));
    }
    Some(after_others(request, why))
}

/// The last request came to nothing.
fn why_failed(pod: &Pod, cause: Cause, message: &str) -> Why {
    let reason = match cause {
        Cause::Withdrawn | Cause::Deleted => REQUEST_WITHDRAWN,
        Cause::Validation if pod.in_group => WORKLOAD_POD,
        Cause::Validation | Cause::Evicted => OTHER,
        Cause::Astray => WRONG_TARGET,
    };
    Why::new(reason, message)
}
