//! Pods that do not leave, and why: from their requests, what their interceptors say, and the pods themselves.

mod cause;
mod interceptor;
mod owner;
mod request;
mod shown;
mod terminating;
mod text;
mod why;

use std::collections::{BTreeMap, HashMap};

use drydock_api::node_maintenance::{Blocker, MAX_BLOCKERS, PodReference, PodType};
use drydock_api::reasons::NODE_UPDATE_REFUSED;
use drydock_api::text::number;
use drydock_api::time::truncate_to_seconds;
use drydock_runtime::Pod;
use drydock_runtime::guide::may_stay;
use jiff::Timestamp;

use crate::actions::MaintenanceDecision;
use crate::nodes::awaiting_cordon;
use crate::world::WorldView;

pub(crate) use cause::BlockCause;
use owner::Owners;
use shown::{ShownBlocker, show};
pub(crate) use why::CauseContext;
use why::why;

/// The blockers of all nodes, and since when each blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blockers {
    /// By node, the longest blocked first.
    nodes: HashMap<String, Vec<ShownBlocker>>,
    /// Publishes events for the owners of the pods.
    owners: Owners,
    /// Since when nothing explains why pods are there, by UID.
    unexplained: HashMap<String, Timestamp>,
}

/// Pods that one cause keeps.
pub(crate) struct BlockedPods<'b> {
    /// How many.
    pub(crate) pods: usize,
    /// The one that is blocked for the longest time.
    pub(crate) oldest: &'b ShownBlocker,
    /// The node of that one.
    pub(crate) node: &'b str,
    /// Whether one of them is worth an event.
    pub(crate) is_due: bool,
}

/// The blockers shown before, by node and UID of the pod; the UID is empty if the node itself blocks.
type ShownBefore<'b> = HashMap<(&'b str, &'b str), &'b ShownBlocker>;

impl Blockers {
    /// Finds what blocks at this moment.
    pub(crate) fn update(
        &mut self,
        view: &WorldView<'_>,
        known: &CauseContext<'_>,
        decision: &mut MaintenanceDecision,
    ) {
        self.recall(view);
        let nodes = std::mem::take(&mut self.nodes);
        let mut before = ShownBefore::new();
        for (node, shown) in &nodes {
            before.extend(shown.iter().map(|shown| ((node.as_str(), shown.blocker.pod.uid.as_str()), shown)));
        }
        let mut silent = HashMap::new();
        for (node, pods) in view.counted.iter().filter(|(node, _)| view.is_draining(node)) {
            let mut blockers = Vec::new();
            for pod in pods.iter().filter(|p| view.planned.targeted.contains(p.uid.as_str())) {
                let why = why(view, pod, known, decision).or_else(|| {
                    let since = self.unexplained_since(view, pod);
                    silent.insert(pod.uid.clone(), since);
                    interceptor::unexplained(view, pod, since, decision)
                });
                let Some(why) = why else { continue };
                let before = before.get(&(*node, &*pod.uid)).copied();
                self.owners.publish(view, pod, &why, before, decision);
                let shown = show(view, before, reference(pod), why, decision);
                blockers.push(ShownBlocker { pod_type: pod.pod_type(), ..shown });
            }
            blockers.sort_by(|a, b| a.order().cmp(&b.order()));
            // This one comes first, because it keeps every pod.
            if let Some(message) = awaiting_cordon::why(view, known.uncordon_conflicts, node) {
                let why = BlockCause::new(NODE_UPDATE_REFUSED, message);
                let before = before.get(&(*node, "")).copied();
                blockers.insert(0, show(view, before, PodReference::default(), why, decision));
            }
            self.nodes.insert((*node).to_owned(), blockers);
        }
        self.unexplained = silent;
        self.owners.end_check();
    }

    /// The blockers on a node of pods up to a type, and how many there are. Returned are those that have
    /// blocked for the longest time, at most ten and at most `share`. `ways_out` ends the message of a
    /// blocker that may stay forever.
    pub(crate) fn of_node(
        &self,
        node: &str,
        last: PodType,
        share: usize,
        ways_out: &str,
    ) -> (Vec<Blocker>, i32) {
        let all = self.nodes.get(node).into_iter().flatten().filter(|shown| shown.pod_type <= last);
        let shown = all.clone().take(MAX_BLOCKERS.min(share)).map(|shown| match &shown.blocker {
            blocker if may_stay(&blocker.reason) => {
                Blocker { message: shown.words.text.message(Some(ways_out)), ..blocker.clone() }
            }
            blocker => blocker.clone(),
        });
        (shown.collect(), number(all.count()))
    }

    /// Whether a pod up to a type on a node has a blocker that may stay forever.
    pub(crate) fn may_stay(&self, node: &str, last: PodType) -> bool {
        let mut all = self.nodes.get(node).into_iter().flatten();
        all.any(|shown| shown.pod_type <= last && may_stay(&shown.blocker.reason))
    }

    /// How many pods up to a type are blocked on these nodes, and the reason that keeps most of them, if anything does.
    pub(crate) fn most<'b>(
        &'b self,
        nodes: impl Iterator<Item = &'b str>,
        last: PodType,
    ) -> Option<(usize, BlockedPods<'b>)> {
        let by_reason = self.grouped(nodes, last, |shown| shown.blocker.reason.as_str());
        let all = by_reason.values().map(|group| group.pods).sum();
        let order =
            |group: &BlockedPods<'_>| (group.pods, std::cmp::Reverse(group.oldest.blocker.since_time));
        Some((all, by_reason.into_values().max_by_key(order)?))
    }

    /// The pods up to a type that are blocked on these nodes, by the reason and the name of what blocks.
    pub(crate) fn by_cause<'b>(
        &'b self,
        nodes: impl Iterator<Item = &'b str>,
        last: PodType,
    ) -> BTreeMap<(&'b str, &'b str), BlockedPods<'b>> {
        self.grouped(nodes, last, |shown| (shown.blocker.reason.as_str(), shown.words.key.about.as_str()))
    }

    fn grouped<'b, K: Ord>(
        &'b self,
        nodes: impl Iterator<Item = &'b str>,
        last: PodType,
        key: impl Fn(&'b ShownBlocker) -> K,
    ) -> BTreeMap<K, BlockedPods<'b>> {
        let mut groups = BTreeMap::new();
        for node in nodes {
            for shown in self.nodes.get(node).into_iter().flatten().filter(|shown| shown.is_pod_up_to(last)) {
                let new = BlockedPods { pods: 0, oldest: shown, node, is_due: false };
                let group = groups.entry(key(shown)).or_insert(new);
                group.pods += 1;
                group.is_due |= shown.is_due;
                if shown.blocker.since_time < group.oldest.blocker.since_time {
                    (group.oldest, group.node) = (shown, node);
                }
            }
        }
        groups
    }

    /// What has kept a pod on a node for the longest time.
    pub(crate) fn oldest(&self, node: &str) -> Option<&Blocker> {
        let mut all = self.nodes.get(node).into_iter().flatten();
        all.find(|shown| shown.is_pod_up_to(PodType::Static)).map(|shown| &shown.blocker)
    }

    /// How many blockers of pods up to a type there are on a node, by reason.
    pub(crate) fn by_reason(&self, node: &str, last: PodType) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for shown in self.nodes.get(node).into_iter().flatten().filter(|shown| shown.pod_type <= last) {
            *counts.entry(shown.blocker.reason.as_str()).or_default() += 1;
        }
        counts
    }

    /// After a restart, restores from the statuses since when each blocker blocks.
    fn recall(&mut self, view: &WorldView<'_>) {
        if !self.nodes.is_empty() {
            return;
        }
        let statuses = view.world.maintenances.iter().flat_map(|m| &m.status.node_statuses);
        for status in statuses {
            let known = self.nodes.entry(status.node_ref.name.clone()).or_default();
            known.extend(status.blockers.iter().map(ShownBlocker::from_status));
        }
    }

    /// Since when a pod that may be asked to leave is there without a known reason. After a restart that is
    /// the start of the interceptor's turn, or now if there was none.
    fn unexplained_since(&self, view: &WorldView<'_>, pod: &Pod) -> Timestamp {
        if !view.may_ask_on(&pod.node_name) {
            return view.now;
        }
        let turn = || view.world.request(pod).and_then(|request| request.status.activation_time);
        let known = self.unexplained.get(&pod.uid).copied().or_else(turn);
        known.map_or(view.now, |at| truncate_to_seconds(at).min(view.now))
    }
}

fn reference(pod: &Pod) -> PodReference {
    PodReference { namespace: pod.namespace.clone(), name: pod.name.clone(), uid: pod.uid.clone() }
}
