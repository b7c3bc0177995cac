//! Decides the next step for one request in the turn of imperative eviction, from the pod, its budgets, the
//! attempts so far, and the time. Pure.

use drydock_runtime::Pod;
use jiff::{SignedDuration, Timestamp};

use super::NAME;
use super::attempts::Attempts;
use super::budget_check::BudgetCheck;
use super::eviction_result::EvictionResult;
use crate::report::{self, ProgressReport};
use crate::target_pod::responsible;

/// How long a pod may take to leave before a report says that it leaves. Most pods are gone by then, and a report on
/// each of them would be most of what a drain writes. What an earlier report says of a block stands until then.
const LEAVING_REPORT_DELAY: SignedDuration = SignedDuration::from_secs(10);

/// The next step for a request: a report, an eviction, or a wait.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NextStep {
    /// The progress to report, if there is any.
    pub(crate) progress: Option<ProgressReport>,
    /// Whether the pod is leaving and nothing keeps it.
    pub(crate) is_leaving: bool,
    /// Whether to ask the host for an eviction.
    pub(crate) ask: bool,
    /// When to look again, if nothing changes before.
    pub(crate) wake: Option<Timestamp>,
}

/// Decides the next step. `pod` is none when the pod is gone or terminal.
pub(crate) fn next_step(
    pod: Option<&Pod>,
    check: &BudgetCheck,
    attempts: &Attempts,
    now: Timestamp,
) -> NextStep {
    // The eviction request controller ends the request.
    let Some(pod) = pod else { return NextStep::default() };
    // Its DaemonSet is asked for, and the answer wakes us.
    let Some(owner) = responsible(pod) else { return NextStep::default() };
    if owner != NAME {
        let what = if pod.is_mirror() { "mirror" } else { "DaemonSet" };
        let message = format!(
            "API-initiated eviction of {what} pods is not supported. {owner} stays responsible, and acts when \
             the drain targets of node {} cover the pod.",
            pod.node_name
        );
        return say(message);
    }
    if pod.is_terminating() {
        let wake = pod.overdue_at().filter(|due| *due > now);
        let progress = report::terminating(pod, "", now);
        return NextStep {
            is_leaving: progress.blocked.is_none(),
            progress: Some(progress),
            ask: false,
            wake,
        };
    }
    let is_leaving = attempts.last == Some(EvictionResult::Accepted);
    let (ask, wake) = match attempts.next(check, now) {
        Some(next) if next > now && !attempts.has_opened(check) => (false, Some(next)),
        _ => (true, None),
    };
    NextStep { progress: progress_of(attempts, check), is_leaving, ask, wake }
}

/// From when on it is reported that a pod leaves that has been leaving since `since`; none if from now on.
pub(super) fn reported_from(since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    // A time in the future was recorded before the clock was set back. Its age is unknown, and it delays nothing.
    let due = since.checked_add(LEAVING_REPORT_DELAY).ok().filter(|_| since <= now)?;
    (due > now).then_some(due)
}

fn say(message: String) -> NextStep {
    NextStep {
        progress: Some(ProgressReport { message, ..ProgressReport::default() }),
        ..NextStep::default()
    }
}

/// Reports that the eviction was accepted, or the last refusal. Lost races and throttling are not reported.
fn progress_of(attempts: &Attempts, check: &BudgetCheck) -> Option<ProgressReport> {
    if attempts.last == Some(EvictionResult::Accepted) {
        return Some(ProgressReport {
            message: "The eviction was accepted.".to_owned(),
            ..ProgressReport::default()
        });
    }
    let refused = attempts.refused.as_ref()?;
    let message = refused.message(attempts.retries, check);
    Some(ProgressReport { message, blocked: Some(refused.blocked(check)), ..ProgressReport::default() })
}

#[cfg(test)]
#[path = "next_step_tests.rs"]
mod tests;
