//! Nodes under maintenance that are still schedulable: which pods wait until they are cordoned, and why they
//! are not.
//!
//! The stage Cordon is always run first (KEP-4212, Supported Stage Transitions): a pod that is evicted
//! earlier may be scheduled to a node that is to be drained next, and be evicted again. So the pods of a
//! maintenance wait until each of its nodes is cordoned, or the first attempt has failed or takes too long,
//! so that one node does not hold up the others.

use std::collections::{HashMap, HashSet};

use drydock_api::node_maintenance::NodeMaintenanceStage;
use drydock_api::reasons::NODE_UPDATE_REFUSED;
use drydock_api::text::quoted;
use drydock_runtime::Node;
use drydock_runtime::cache::node::CORDONED_BY;
use jiff::{SignedDuration, Timestamp};

use crate::actions::MaintenanceDecision;
use crate::nodes::cordon::{UncordonConflicts, conflict_text};
use crate::world::WorldView;

/// How long the pods of other nodes wait for the first attempt to cordon a node.
const FIRST_ATTEMPT: SignedDuration = SignedDuration::from_secs(10);

/// Nodes under maintenance that are not cordoned, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct AwaitingCordon {
    /// Since when each has been there without an attempt to cordon it.
    untried: HashMap<String, Timestamp>,
    /// The words of the refusals that have had an event.
    published: HashMap<String, String>,
}

impl AwaitingCordon {
    /// Returns the nodes whose pods are not to be asked for now.
    pub(crate) fn update<'a>(
        &mut self,
        view: &WorldView<'a>,
        decision: &mut MaintenanceDecision,
    ) -> HashSet<&'a str> {
        self.publish(view, decision);
        let untried = |node: &&Node| view.is_held(&node.name) && !is_tried(view, node);
        let untried: HashMap<&str, &Node> =
            view.world.nodes.values().map(|n| &**n).filter(untried).map(|n| (n.name.as_str(), n)).collect();
        self.untried.retain(|node, _| untried.contains_key(node.as_str()));
        let mut young = HashSet::new();
        for node in untried.keys() {
            let since = *self.untried.entry((*node).to_owned()).or_insert(view.now);
            let until = since.checked_add(FIRST_ATTEMPT).unwrap_or(Timestamp::MAX);
            if view.now < until {
                decision.wake_at(until);
                young.insert(*node);
            }
        }
        let mut waiting: HashSet<&str> =
            view.world.nodes.values().filter(|n| !n.unschedulable).map(|n| n.name.as_str()).collect();
        for (maintenance, nodes) in view.world.maintenances.iter().zip(&view.selected) {
            if maintenance.spec.stage == NodeMaintenanceStage::Drain
                && nodes.iter().any(|n| young.contains(n.name.as_str()))
            {
                waiting.extend(nodes.iter().map(|n| n.name.as_str()));
            }
        }
        waiting
    }

    /// Publishes which nodes cannot be cordoned, or cannot be made schedulable again at the end, which keeps
    /// the finalizer: one event for each new refusal.
    fn publish(&mut self, view: &WorldView<'_>, decision: &mut MaintenanceDecision) {
        let refused = &view.world.refused;
        self.published.retain(|node, _| refused.contains_key(node));
        for (node, words) in refused {
            if self.published.insert(node.clone(), words.clone()).as_ref() == Some(words) {
                continue;
            }
            let what = if view.is_held(node) { "unschedulable" } else { "schedulable again" };
            let concerned = view.holders_of(node).chain(view.ending_on(node));
            let message = |who: &str| refused_text(who, what, words);
            decision.warn_node_and_maintenances(node, concerned, NODE_UPDATE_REFUSED, message);
        }
    }
}

/// Whether a node was cordoned, or an attempt to do so has failed.
fn is_tried(view: &WorldView<'_>, node: &Node) -> bool {
    node.unschedulable
        || node.annotations.contains_key(CORDONED_BY)
        || view.world.refused.contains_key(&node.name)
}

/// Why a node under maintenance is still schedulable, if that is known.
pub(crate) fn why(
    view: &WorldView<'_>,
    uncordon_conflicts: &UncordonConflicts,
    node: &str,
) -> Option<String> {
    view.world.nodes.get(node).filter(|node| !node.unschedulable && view.is_held(&node.name))?;
    let who = format!("Node {node}");
    let refused = view.world.refused.get(node).map(|words| refused_text(&who, "unschedulable", words));
    refused.or_else(|| uncordon_conflicts.since(node).map(|(times, since)| conflict_text(&who, times, since)))
}

/// The message about a node, `who`, whose update was refused.
fn refused_text(who: &str, what: &str, words: &str) -> String {
    format!("{who} cannot be made {what}: {}", quoted(words))
}
