//! The messages of progress reports.

use drydock_api::eviction_request::Blocked;
use drydock_api::reasons::{ADMISSION_WEBHOOK, DAEMON_SET_RETURNS, NODE_UPDATE_REFUSED, OTHER};
use drydock_api::text::{quoted, times as in_words};
use drydock_api::time::format_seconds;
use drydock_runtime::Pod;
use jiff::Timestamp;

use super::state::PendingTaint;
use super::taint::TAINT;
use crate::imperative::eviction_result::{self, EvictionResult, named_webhook};
use crate::report::{self, ProgressReport};

/// Reports a terminating pod, in KEP-4212's words, and what keeps it if it is overdue. `why` names the
/// maintenances that cover the pod.
pub(super) fn terminating(pod: &Pod, why: &str, now: Timestamp) -> ProgressReport {
    let owner = owner(pod);
    let because = if why.is_empty() { String::new() } else { format!(" due to node maintenance ({why})") };
    report::terminating(pod, &format!("{owner} is terminating the pod{because}."), now)
}

/// Reports that the pod waits for the taint that keeps its DaemonSet away, and why the node does not have it.
pub(super) fn awaits_taint(pod: &Pod, pending: &PendingTaint) -> ProgressReport {
    let (node, owner) = (&pod.node_name, owner(pod));
    let (reason, why) = match pending {
        PendingTaint { refused: Some(words), .. } => {
            (NODE_UPDATE_REFUSED, format!("The taint cannot be set: {}", quoted(words)))
        }
        PendingTaint { taken: Some((times, began)), .. } => (
            OTHER,
            format!(
                "Others have taken it away {} since {}; it is set again, later each time. Whoever manages the \
                 node's taints should leave this one alone.",
                in_words(*times),
                format_seconds(*began)
            ),
        ),
        PendingTaint { since, .. } => {
            (OTHER, format!("It was requested at {} and the node does not show it.", format_seconds(*since)))
        }
    };
    let message = format!(
        "Waiting for the taint {TAINT} on node {node}: without it DaemonSet {owner} would put the pod back. {why}"
    );
    let blocked = Blocked { reason: reason.to_owned(), name: node.clone(), ..Default::default() };
    ProgressReport { message, blocked: Some(blocked), ..ProgressReport::default() }
}

/// Reports that the host refuses the deletion; none if the reason passes by itself.
pub(super) fn refused(error: &kube::Error) -> Option<ProgressReport> {
    let (reason, name, words) = match eviction_result::from_error(error) {
        EvictionResult::Admission(words) => (ADMISSION_WEBHOOK, named_webhook(&words).to_owned(), words),
        EvictionResult::Refused(words) => (OTHER, String::new(), words),
        _ => return None,
    };
    let blocked = Blocked { reason: reason.to_owned(), name, ..Default::default() };
    Some(ProgressReport {
        message: format!("The pod cannot be deleted: {words}"),
        blocked: Some(blocked),
        ..ProgressReport::default()
    })
}

/// Reports that the DaemonSet has put its pod back, and that the next deletion waits. None for a pod that
/// does not tolerate our taint: the taint stops its DaemonSet.
pub(super) fn returned(pod: &Pod, times: u32) -> Option<ProgressReport> {
    let in_a_row = if times == 1 { String::new() } else { format!(", {} in a row", in_words(times)) };
    let message = format!(
        "DaemonSet {} has put a new pod on the node after its pod was deleted{in_a_row}: it tolerates the \
         taint {TAINT}. It is deleted again, later each time; a nodeAffinity or a narrower toleration of the DaemonSet \
         ends this.",
        owner(pod)
    );
    let blocked =
        Blocked { reason: DAEMON_SET_RETURNS.to_owned(), name: owner(pod).to_owned(), ..Default::default() };
    pod.tolerates_drain_taint.then(|| ProgressReport {
        message,
        blocked: Some(blocked),
        ..ProgressReport::default()
    })
}

/// Name of the DaemonSet.
fn owner(pod: &Pod) -> &str {
    pod.controller.as_ref().map_or("", |owner| owner.name.as_str())
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
