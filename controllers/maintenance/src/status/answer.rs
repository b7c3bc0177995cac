//! Why pods are left: `kubectl describe` shows conditions first, and this is where people look.

use drydock_api::node_maintenance::{Blocker, PodType};
use drydock_api::text::{are, counted};
use drydock_api::time::format_seconds;
use drydock_runtime::guide::todo;

use super::StatusBuilder;

impl StatusBuilder<'_, '_> {
    /// What blocks most, since when and what to do; else what it waits for on a node of another maintenance. It changes with
    /// what it tells of, and never because time passes.
    pub(super) fn answer(&self, last: PodType) -> Option<String> {
        self.blocked(last).or_else(|| self.waits_elsewhere())
    }

    fn blocked(&self, last: PodType) -> Option<String> {
        let nodes = self.view.nodes_of(self.i).iter().map(|node| node.name.as_str());
        let (all, most) = self.sources.blockers.most(nodes, last)?;
        let blocker = &most.oldest.blocker;
        // A command stands at the end, where people copy it.
        let todo = todo(&blocker.reason, most.oldest.words.key.state).filter(|_| !most.oldest.has_command());
        let todo = todo.map_or_else(String::new, |todo| format!(". {todo}"));
        Some(format!(
            "{all} of them {} blocked, {} by {}: {}{todo}",
            are(all),
            most.pods,
            blocker.reason,
            told(blocker, most.node)
        ))
    }

    fn waits_elsewhere(&self) -> Option<String> {
        let node = self.planned()?.waits_for.as_deref()?;
        let what = match self.sources.blockers.oldest(node) {
            Some(blocker) => format!("{}: {}", blocker.reason, told(blocker, node)),
            None => self.left_there(node),
        };
        Some(format!("They wait for node {node}, which another maintenance drains; {what}"))
    }

    /// How many pods terminate on a node that nothing blocks, or else how many are left there.
    fn left_there(&self, node: &str) -> String {
        let pods = self.view.pods_on(node);
        let (count, what) = match pods.iter().filter(|pod| pod.is_terminating()).count() {
            0 => (pods.len(), "left"),
            terminating => (terminating, "terminating"),
        };
        format!("{} {} {what} there", counted(count, "pod", "pods"), are(count))
    }
}

/// The blocker that has blocked for the longest time, in words.
fn told(blocker: &Blocker, node: &str) -> String {
    let since = blocker.since_time.map_or_else(String::new, |at| format!(" since {}", format_seconds(at)));
    let Blocker { pod, message, .. } = blocker;
    format!("pod {}/{} on node {node}{since}: {message}", pod.namespace, pod.name)
}
