//! The conditions Drained and WorkloadsDrained: people power nodes off on them.

use std::collections::{BTreeMap, HashSet};

use drydock_api::metav1::{Condition, find_condition, is_condition_true};
use drydock_api::node_maintenance::{
    Blocker, DRAINED, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceStage,
    NodeMaintenanceStatus, PodType, WORKLOADS_DRAINED,
};
use drydock_api::text::{are, counted};
use drydock_api::time::format_seconds;
use drydock_runtime::events::Severity;
use drydock_runtime::events::reasons::{NODE_LABELS_UNKNOWN, STATUS_TOO_LARGE};
use drydock_runtime::guide::advice;
use jiff::Timestamp;

use super::StatusBuilder;
use crate::actions::EventDraft;
use crate::nodes::awaiting_cordon;
use crate::nodes::conditions::{ConfirmedEmpty, of_type_suffix};
use crate::nodes::gone_tally::GoneNodesTally;
use crate::status::fit::Fitted;

const CANCELED: &str = "The maintenance was completed before all pods had left";

/// A condition that says whether pods are left: [`DRAINED`], up to the last type of the maintenance, or
/// [`WORKLOADS_DRAINED`], of type Default alone.
#[derive(Clone, Copy)]
struct EmptinessCondition {
    type_: &'static str,
    last: PodType,
}

impl EmptinessCondition {
    fn of(maintenance: &NodeMaintenance) -> [Self; 2] {
        let drained = Self { type_: DRAINED, last: maintenance.spec.last_pod_type };
        [drained, Self { type_: WORKLOADS_DRAINED, last: PodType::Default }]
    }
}

impl StatusBuilder<'_, '_> {
    /// The two conditions. They are absent before Drain; one that is True when the maintenance moves to
    /// Complete stays True.
    pub(super) fn drained(&self, fitted: &Fitted) -> Vec<Condition> {
        let each = EmptinessCondition::of(self.maintenance).into_iter();
        each.filter_map(|asked| self.emptied(asked, fitted)).collect()
    }

    fn emptied(&self, asked: EmptinessCondition, fitted: &Fitted) -> Option<Condition> {
        let (stage, old) =
            (self.maintenance.spec.stage, find_condition(&self.maintenance.status.conditions, asked.type_));
        let (is, reason, message) = match stage {
            NodeMaintenanceStage::Drain => self.draining(asked, fitted),
            NodeMaintenanceStage::Complete => {
                let (old, generation) = (old?, self.maintenance.metadata.generation);
                if old.is_true() {
                    // kubectl wait ignores a condition whose observedGeneration is not the present
                    // generation.
                    return Some(Condition { observed_generation: generation, ..old.clone() });
                }
                (
                    false,
                    "Canceled",
                    if old.reason == "Canceled" { old.message.clone() } else { CANCELED.to_owned() },
                )
            }
            _ => return None,
        };
        Some(self.condition(asked.type_, is, reason, message))
    }

    fn draining(&self, asked: EmptinessCondition, fitted: &Fitted) -> (bool, &'static str, String) {
        let (nodes, which) = (self.view.nodes_of(self.i), of_type_suffix(asked.last));
        let left: Vec<usize> =
            nodes.iter().map(|n| self.view.pods_up_to(&n.name, asked.last).len()).collect();
        let (pods, busy) = (left.iter().sum::<usize>(), left.iter().filter(|l| **l > 0).count());
        if let Some(message) =
            too_large_message(fitted, nodes.len()).filter(|_| pods > 0 || fitted.left_out > 0)
        {
            return (false, STATUS_TOO_LARGE, message);
        }
        if let Some(message) = self.undecided() {
            return (false, NODE_LABELS_UNKNOWN, message);
        }
        if let Some(condition) = self.without_nodes(asked) {
            return condition;
        }
        let open: Vec<&str> = nodes.iter().filter(|n| !n.unschedulable).map(|n| n.name.as_str()).collect();
        let total = nodes.len();
        if let Some(first) = open.first() {
            let why = open
                .iter()
                .find_map(|node| awaiting_cordon::why(self.view, self.sources.uncordon_conflicts, node));
            let (among, evictions) = match why {
                Some(why) => (format!(". {why}. "), "Evictions"),
                None => (format!(", {first} among them; "), "evictions"),
            };
            let message = format!(
                "{} of {} {} not cordoned yet{among}{evictions} of {} pods wait for that ({}{which} {} left)",
                open.len(),
                counted(total, "node", "nodes"),
                are(open.len()),
                if open.len() == 1 { "its" } else { "their" },
                counted(pods, "pod", "pods"),
                are(pods)
            );
            return (false, "Draining", message);
        }
        if pods > 0 {
            let message = format!(
                "{}{which} {} left on {busy} of {}",
                counted(pods, "pod", "pods"),
                are(pods),
                counted(total, "node", "nodes")
            );
            let parts = [Some(message), self.answer(asked.last), self.ways_out(asked.last)];
            return (false, "Draining", parts.into_iter().flatten().collect::<Vec<_>>().join(". "));
        }
        let selected =
            if total == 1 { "selected node".to_owned() } else { format!("{total} selected nodes") };
        (true, "AllPodsTerminated", format!("All pods{which} have left the {selected}"))
    }

    /// The message if it is not known of nodes whether they are selected.
    fn undecided(&self) -> Option<String> {
        let nodes = self.view.undecided_of(self.i);
        let first = nodes.first()?;
        Some(format!(
            "It is not known whether {} {} selected, {first} among them: they have more labels than are kept. Remove labels from \
             them, or select nodes by metadata.name or by a label in node-restriction.kubernetes.io",
            counted(nodes.len(), "node", "nodes"),
            are(nodes.len())
        ))
    }

    /// The condition if nodes have gone that were not drained, or if no node is selected; none otherwise.
    fn without_nodes(&self, asked: EmptinessCondition) -> Option<(bool, &'static str, String)> {
        let is_empty = self.view.nodes_of(self.i).is_empty();
        let tally = self.sources.gone.of(self.maintenance, asked.last);
        let gone = tally.map(GoneNodesTally::counts).unwrap_or_default();
        if gone.undrained > 0 {
            let example = match tally.and_then(GoneNodesTally::example) {
                Some((node, 0)) => format!(", {node} among them"),
                Some((node, pods)) => format!(", {node} with {} among them", counted(pods, "pod", "pods")),
                None => String::new(),
            };
            let reason = if is_empty { "NoNodesSelected" } else { "Draining" };
            let message = format!(
                "{} left the cluster undrained{example}. Wait until they are back, or change the node \
                 selector so that it does not select them",
                counted(gone.undrained, "node", "nodes")
            );
            return Some((false, reason, message));
        }
        if !is_empty {
            return None;
        }
        if gone.drained > 0 && self.were_all_drained(asked) {
            let which = of_type_suffix(asked.last);
            let message = match gone.drained {
                1 => format!("The node left the cluster after all pods{which} had left it"),
                nodes => format!("All {nodes} nodes left the cluster after all pods{which} had left them"),
            };
            return Some((true, "AllPodsTerminated", message));
        }
        Some((false, "NoNodesSelected", "The node selector selects no node".to_owned()))
    }

    /// Whether the nodes that are no longer selected were drained: the condition was True, or none of them is
    /// still in the cluster.
    fn were_all_drained(&self, asked: EmptinessCondition) -> bool {
        let status = &self.maintenance.status;
        let Some(old) = find_condition(&status.conditions, asked.type_) else { return false };
        let is_there = |s: &NodeMaintenanceNodeStatus| self.view.world.nodes.contains_key(&s.node_ref.name);
        old.is_true() || (old.reason != "NoNodesSelected" && !status.node_statuses.iter().any(is_there))
    }
}

/// The message if something does not fit into the status without which pods are not asked to leave.
fn too_large_message(fitted: &Fitted, nodes: usize) -> Option<String> {
    let advice = if fitted.all_are_full {
        "delete node maintenances that are complete: the statuses of all have no more room together"
    } else {
        "select fewer nodes, and drain the others in further maintenances"
    };
    match fitted {
        Fitted { held: true, .. } => Some(format!(
            "No further pods are asked to leave: the next drain targets of {} do not fit into the status. Use \
             fewer or shorter pod selectors in the drain plan, or {advice}",
            counted(nodes, "node", "nodes")
        )),
        Fitted { left_out: 0, .. } => None,
        Fitted { left_out, .. } => {
            let do_not = if *left_out == 1 { "does not" } else { "do not" };
            Some(format!(
                "{left_out} of the {nodes} selected nodes {do_not} fit into the status, and {} not drained: {advice}",
                are(*left_out)
            ))
        }
    }
}

/// The event that the drain cannot go on, or end, until somebody changes something: what it needs does not fit into the status any
/// more, or labels of nodes are not known.
pub(super) fn stuck(maintenance: &NodeMaintenance, status: &NodeMaintenanceStatus) -> Option<EventDraft> {
    [STATUS_TOO_LARGE, NODE_LABELS_UNKNOWN].into_iter().find_map(|reason| {
        let says = |status: &NodeMaintenanceStatus| {
            find_condition(&status.conditions, DRAINED).filter(|drained| drained.reason == reason).cloned()
        };
        let message = says(status).filter(|_| says(&maintenance.status).is_none())?.message;
        Some(EventDraft::of(maintenance, Severity::Warning, reason, message))
    })
}

/// Nodes that a live read must confirm to be empty, because Drained or WorkloadsDrained turns True, or is
/// True and the node has joined; each with the type up to which to confirm it. Nodes with a fresh live read
/// are left out.
pub(super) fn to_confirm(
    maintenance: &NodeMaintenance,
    status: &NodeMaintenanceStatus,
    emptied: &ConfirmedEmpty,
    now: Timestamp,
) -> BTreeMap<String, PodType> {
    let mut confirm = BTreeMap::new();
    if maintenance.spec.stage != NodeMaintenanceStage::Drain {
        return confirm;
    }
    let old = &maintenance.status;
    let known: HashSet<&str> = old.node_statuses.iter().map(|s| s.node_ref.name.as_str()).collect();
    let each = EmptinessCondition::of(maintenance).into_iter();
    for EmptinessCondition { type_, last } in
        each.filter(|asked| is_condition_true(&status.conditions, asked.type_))
    {
        let was = is_condition_true(&old.conditions, type_);
        let confirmed = |node: &str| emptied.is_fresh(node, last, now) || (was && known.contains(node));
        let names = status.node_statuses.iter().map(|s| s.node_ref.name.as_str());
        for node in names.filter(|name| !confirmed(name)) {
            let up_to = confirm.entry(node.to_owned()).or_insert(last);
            *up_to = last.max(*up_to);
        }
    }
    confirm
}

impl StatusBuilder<'_, '_> {
    /// Says why pods are left: people look here first, as `kubectl describe` shows conditions before nodes.
    /// It names what blocks most, since when and what to do; else what it waits for on a node of another
    /// maintenance. It changes with what it names, and never because time passes.
    pub(super) fn answer(&self, last: PodType) -> Option<String> {
        self.blocked(last).or_else(|| self.waits_elsewhere())
    }

    fn blocked(&self, last: PodType) -> Option<String> {
        let nodes = self.view.nodes_of(self.i).iter().map(|node| node.name.as_str());
        let (all, most) = self.sources.blockers.most(nodes, last)?;
        let blocker = &most.oldest.blocker;
        // A command stands at the end, where people copy it.
        let advice =
            advice(&blocker.reason, most.oldest.words.key.state).filter(|_| !most.oldest.has_command());
        let advice = advice.map_or_else(String::new, |advice| format!(". {advice}"));
        Some(format!(
            "{all} of them {} blocked, {} by {}: {}{advice}",
            are(all),
            most.pods,
            blocker.reason,
            described(blocker, most.node)
        ))
    }

    fn waits_elsewhere(&self) -> Option<String> {
        let node = self.planned()?.waits_for.as_deref()?;
        let what = match self.sources.blockers.oldest(node) {
            Some(blocker) => format!("{}: {}", blocker.reason, described(blocker, node)),
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

/// A blocker in words.
fn described(blocker: &Blocker, node: &str) -> String {
    let since = blocker.since_time.map_or_else(String::new, |at| format!(" since {}", format_seconds(at)));
    let Blocker { pod, message, .. } = blocker;
    format!("pod {}/{} on node {node}{since}: {message}", pod.namespace, pod.name)
}
