//! Finds the cause that keeps a pod.

use drydock_api::reasons::{FINALIZER, NO_SCHEDULABLE_NODE, WRONG_TARGET};
use drydock_runtime::Pod;

use super::cause::BlockCause;
use super::interceptor::{after_others, no_agent, why_refused, why_slow};
use super::request::{why_failed, why_invalid, why_returned};
use super::request::{why_held, why_wrong_target};
use super::terminating::{overdue_termination, unreachable};
use crate::actions::MaintenanceDecision;
use crate::nodes::cordon::UncordonConflicts;
use crate::requests::failures::{RequestFailures, targets_another_pod};
use crate::requests::returns::PodReturns;
use crate::world::{STAYS_OWN, WorldView};

/// The memories that explain why pods are still there.
pub(crate) struct CauseContext<'m> {
    pub(crate) failures: &'m RequestFailures,
    pub(crate) returns: &'m PodReturns,
    pub(crate) uncordon_conflicts: &'m UncordonConflicts,
}

/// Why a pod that is to leave does not, if anything explains it. The causes are tried in order and the first that
/// applies is returned, because those after it do not apply yet, or no longer.
pub(super) fn why(
    view: &WorldView<'_>,
    pod: &Pod,
    known: &CauseContext<'_>,
    decision: &mut MaintenanceDecision,
) -> Option<BlockCause> {
    let CauseContext { failures, returns, .. } = known;
    if let Some(ends) = pod.deletion_timestamp {
        return unreachable(view, pod).or_else(|| overdue_termination(view, pod, ends, decision));
    }
    if view.stays(&pod.uid) {
        return Some(BlockCause::new(NO_SCHEDULABLE_NODE, STAYS_OWN));
    }
    let request = view.world.request(pod);
    // A pod that is asked to leave already is kept by something else.
    if !request.is_some_and(|request| request.is_wanted())
        && let Some(why) = why_returned(returns, pod, view.now)
    {
        return Some(why);
    }
    if let Some(message) = request.and_then(|request| why_held(request)) {
        let first = request.and_then(|request| request.metadata.finalizers.first());
        return Some(BlockCause::new(FINALIZER, message).of(first.cloned().unwrap_or_default()));
    }
    if let Some(request) = request.filter(|request| targets_another_pod(request, pod)) {
        let later = failures.of(pod).map(|failure| failure.again).filter(|at| view.now < *at);
        return Some(BlockCause::new(WRONG_TARGET, why_wrong_target(request, later)));
    }
    let failed = request.and_then(|request| request.validation_failure());
    if let Some(failed) = failed {
        return Some(why_invalid(pod, &failed.message));
    }
    if let Some(failure) = failures.of(pod).filter(|failure| failure.is_shown(view.now)) {
        return Some(why_failed(pod, failure));
    }
    let request = request?;
    let why = why_refused(request).or_else(|| no_agent(view, pod, request));
    let mut why = why.or_else(|| why_slow(view, request, decision))?;
    if let Some(asked) = failures.asked_again(pod, Some(request)) {
        why = why.with_note(asked.words());
    }
    Some(after_others(request, why))
}
