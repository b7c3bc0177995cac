//! Why pods are left: `kubectl describe` shows conditions first, and this is where people look.

use drydock_api::node_maintenance::blocker::{
    ADMISSION_WEBHOOK, FINALIZER, INTERCEPTOR, POD_DISRUPTION_BUDGET, TERMINATING, WORKLOAD_POD,
    WORKLOAD_RETURNS,
};
use drydock_api::node_maintenance::{Blocker, PodType};
use drydock_api::time::format_seconds;

use super::Status;
use crate::blockers::Most;
use crate::words::{are, counted};

impl Status<'_, '_> {
    /// What blocks most, since when and what to do; else what it waits for on a node of another maintenance. It changes with
    /// what it tells of, and never because time passes.
    pub(super) fn answer(&self, last: PodType) -> Option<String> {
        self.blocked(last).or_else(|| self.waits_elsewhere())
    }

    fn blocked(&self, last: PodType) -> Option<String> {
        let nodes = self.view.nodes_of(self.i).iter().map(|node| node.name.as_str());
        let Most { all, of_reason, oldest, node } = self.memory.blocked.most(nodes, last)?;
        let todo = todo(&oldest.reason).map_or_else(String::new, |todo| format!(". {todo}"));
        let oldest_is = told(oldest, node);
        Some(format!(
            "{all} of them {} blocked, {of_reason} by {}: {oldest_is}{todo}",
            are(all),
            oldest.reason
        ))
    }

    fn waits_elsewhere(&self) -> Option<String> {
        let node = self.planned()?.waits_for.as_deref()?;
        let what = match self.memory.blocked.oldest(node) {
            Some(blocker) => format!("{}: {}", blocker.reason, told(blocker, node)),
            None => {
                let count = self.view.pods_on(node).iter().filter(|pod| pod.is_terminating()).count();
                format!("{} {} terminating there", counted(count, "pod", "pods"), are(count))
            }
        };
        Some(format!("They wait for node {node}, which another maintenance drains; {what}"))
    }
}

/// The blocker that has blocked for the longest time, in words. These may be those of the pod's owner: none of them is to look
/// like a command of ours.
fn told(blocker: &Blocker, node: &str) -> String {
    let since = blocker.since_time.map_or_else(String::new, |at| format!(" since {}", format_seconds(at)));
    let message = blocker.message.trim_end_matches('.').replace('`', "'");
    let pod = &blocker.pod;
    format!("pod {}/{} on node {node}{since}: {message}", pod.namespace, pod.name)
}

/// What people can do about a cause, where its message does not say it.
fn todo(reason: &str) -> Option<&'static str> {
    Some(match reason {
        POD_DISRUPTION_BUDGET => {
            "Let more pods of the budget become ready, or change the budget; the eviction is tried again at once"
        }
        ADMISSION_WEBHOOK => "Ask whoever runs the webhook or policy; the eviction is tried again",
        INTERCEPTOR => "Ask the owner of the pod; an interceptor that stays silent is passed over",
        TERMINATING => "See what keeps its containers from ending",
        FINALIZER => "Ask whoever set the finalizer to remove it",
        WORKLOAD_POD => "Drain its workload by the means of whoever runs it",
        WORKLOAD_RETURNS => "Keep the workload from tolerating that the node is cordoned",
        _ => return None,
    })
}
