//! Which cause keeps a pod, of all that may.

use drydock_api::node_maintenance::blocker::{FINALIZER, NO_SCHEDULABLE_NODE, WRONG_TARGET};
use drydock_runtime::Pod;
use drydock_runtime::guide::heading;

use super::interceptor::{after_others, no_agent, why_refused, why_slow};
use super::owner::ForOwner;
use super::request::{why_failed, why_invalid, why_returned};
use super::request::{why_held, why_wrong_target};
use super::terminating::{slow_to_die, unreachable};
use super::text::BlockerText;
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

/// Why a pod does not leave.
pub(crate) struct BlockCause {
    pub(crate) reason: &'static str,
    /// The name of who or what it is that blocks, where others may take its place.
    pub(crate) about: String,
    /// Of a budget: one of [`STATES`](drydock_api::eviction_request::blocked::STATES), or empty.
    pub(crate) state: &'static str,
    /// Whether it is worth an event. Of a budget that lets other evictions go it is not.
    pub(crate) is_due: bool,
    /// The event for the pod's owner.
    pub(crate) for_owner: Option<ForOwner>,
    /// The message.
    pub(crate) text: BlockerText,
}

impl BlockCause {
    pub(crate) fn new(reason: &'static str, words: impl Into<String>) -> Self {
        let text =
            BlockerText { words: words.into(), heading: heading(reason, ""), ..BlockerText::default() };
        Self { reason, about: String::new(), state: "", is_due: true, for_owner: None, text }
    }

    /// The same, of somebody of this name.
    pub(crate) fn of(self, about: impl Into<String>) -> Self {
        Self { about: about.into(), ..self }
    }

    /// The same, with an event for the pod's owner.
    pub(super) fn for_owner(self, cause: ForOwner) -> Self {
        Self { for_owner: Some(cause), ..self }
    }

    /// The same, in this state of a budget.
    pub(super) fn in_state(mut self, state: &'static str) -> Self {
        self.text.heading = heading(self.reason, state);
        Self { state, ..self }
    }

    /// The same, with what somebody says whom we do not believe.
    pub(super) fn quoting(mut self, words: &str) -> Self {
        self.text.quoted = Some(words.to_owned());
        self
    }

    /// The same, with an addition that is never cut: of bounded length.
    pub(super) fn with_note(mut self, note: String) -> Self {
        self.text.events.push(note);
        self
    }

    /// The same, with the command that helps, and when.
    pub(super) fn with_command(mut self, when: &'static str, command: String) -> Self {
        self.text.command = Some((when, command));
        self
    }
}

/// Why a pod that is to leave does not, if anything explains it. The first cause wins: what the ones below it say is not
/// true yet, or not any more.
pub(super) fn why(
    view: &WorldView<'_>,
    pod: &Pod,
    known: &CauseContext<'_>,
    decision: &mut MaintenanceDecision,
) -> Option<BlockCause> {
    let CauseContext { failures, returns, .. } = known;
    if let Some(ends) = pod.deletion_timestamp {
        return unreachable(view, pod).or_else(|| slow_to_die(view, pod, ends, decision));
    }
    if view.stays(&pod.uid) {
        return Some(BlockCause::new(NO_SCHEDULABLE_NODE, STAYS_OWN));
    }
    let request = view.world.request(pod);
    // One that is asked to leave already is kept by something else.
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
