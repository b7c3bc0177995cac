//! Writes drainMessage in the words of KEP-4212, and finds the maintenance that limits or fast-forwards
//! another one.

use std::collections::HashSet;

use drydock_api::node_maintenance::PodType;

use crate::catalog::Tier;
use crate::planned_maintenance::PlannedMaintenance;
use crate::planning::{PlannedNode, Planning};

/// What the messages of one planning are made from; each part is calculated once.
pub(crate) struct Messages<'a> {
    planning: &'a Planning,
    /// By node: the first pod type that is to leave it.
    first: Vec<Option<PodType>>,
    /// By maintenance, then by the last pod type that counts (an index into [`PodType::ALL`]): its first busy
    /// node.
    busy: Vec<[Option<usize>; PodType::ALL.len()]>,
    /// By maintenance: its message for nodes without targeted pods.
    idle: Vec<Idle>,
}

/// The message of a maintenance for its nodes without targeted pods.
#[derive(Debug, Default)]
struct Idle {
    message: String,
    /// The node of another maintenance for which it waits.
    elsewhere: Option<usize>,
}

impl<'a> Messages<'a> {
    pub(crate) fn new(planning: &'a Planning) -> Self {
        let first = planning.nodes.iter().map(|n| planning.first_targeted(n)).collect();
        let mut messages = Self { planning, first, busy: Vec::new(), idle: Vec::new() };
        messages.busy = planning.maintenances.iter().map(|planned| messages.busy_nodes(planned)).collect();
        messages.idle = (0..planning.maintenances.len()).map(|id| messages.of_idle(id)).collect();
        messages
    }

    /// Whether pods of a type up to `last` are to leave a node.
    fn is_busy(&self, node: usize, last: PodType) -> bool {
        self.first.get(node).copied().flatten().is_some_and(|first| first <= last)
    }

    fn busy_nodes(&self, planned: &PlannedMaintenance) -> [Option<usize>; PodType::ALL.len()] {
        PodType::ALL.map(|last| planned.nodes.iter().copied().find(|node| self.is_busy(*node, last)))
    }

    /// The first node of a maintenance that pods of a type up to `last` are to leave.
    fn first_busy(&self, id: usize, last: PodType) -> Option<usize> {
        let place = PodType::ALL.iter().rposition(|known| *known <= last)?;
        self.busy.get(id).and_then(|nodes| *nodes.get(place)?)
    }

    /// The node of another maintenance for which this one waits.
    pub(crate) fn waits_for(&self, id: usize) -> Option<&str> {
        let node = self.idle.get(id)?.elsewhere?;
        self.planning.nodes.get(node).map(|node| node.name.as_str())
    }

    /// The message of a maintenance for a node.
    pub(crate) fn message(
        &self,
        id: usize,
        planned: &PlannedMaintenance,
        at: usize,
        node: &PlannedNode,
    ) -> String {
        if !self.is_busy(at, planned.last_pod_type) {
            return self.idle.get(id).map(|idle| idle.message.clone()).unwrap_or_default();
        }
        if let Some(other) = limited_by(self.planning, planned, node) {
            return format!("Evacuating (limited by {})", other.name);
        }
        match fast_forwarded_by(self.planning, planned, node) {
            Some(Some(other)) if other.age < planned.age => {
                format!("Evacuating (fast-forwarded by older {})", other.name)
            }
            Some(Some(other)) => format!("Evacuating (fast-forwarded by {})", other.name),
            Some(None) => "Evacuating (fast-forwarded)".to_owned(),
            None => "Evacuating".to_owned(),
        }
    }

    /// The message for nodes where nothing is targeted: it names the node that the maintenance waits for, or
    /// says that nothing is left on any of its nodes.
    fn of_idle(&self, id: usize) -> Idle {
        let said = |message: String, elsewhere| Idle { message, elsewhere };
        let Some(planned) = self.planning.maintenances.get(id) else { return Idle::default() };
        let is_left = |node: &PlannedNode| node.classes.keys().any(|class| planned.drains(class.pod_type));
        if !self.planning.nodes_of(planned).any(is_left) {
            return said("Drained".to_owned(), None);
        }
        let name = |node: usize| self.planning.nodes.get(node).map_or("", |node| node.name.as_str());
        let own = planned.last_pod_type;
        if let Some(node) = self.first_busy(id, own) {
            return said(format!("Waiting for node {}.", name(node)), None);
        }
        // Through others, it may wait for pods of types that it does not drain itself.
        let seen = self.nearest(id, |other| own.min(other.last_pod_type));
        let found = seen.or_else(|| self.nearest(id, |other| other.last_pod_type));
        found
            .map(|(node, other)| {
                said(format!("Waiting for node {} ({}).", name(node), other.name), Some(node))
            })
            .unwrap_or_default()
    }

    /// Returns the nearest maintenance, by hops over shared nodes, with a node that pods of a type up to
    /// `last` are to leave, and its first such node. Of several it is the one whose node sorts first, then
    /// the oldest. Each maintenance and each node is visited once.
    fn nearest(
        &self,
        id: usize,
        last: impl Fn(&PlannedMaintenance) -> PodType,
    ) -> Option<(usize, &'a PlannedMaintenance)> {
        let planning = self.planning;
        let (mut seen, mut seen_nodes) = (HashSet::from([id]), HashSet::new());
        let mut hop = vec![id];
        while !hop.is_empty() {
            let of_hop = hop.iter().filter_map(|id| Some((*id, planning.maintenances.get(*id)?)));
            let busy = of_hop
                .clone()
                .filter_map(|(id, planned)| Some((self.first_busy(id, last(planned))?, planned)));
            if let Some(found) = busy.min_by_key(|(node, planned)| (*node, planned.age)) {
                return Some(found);
            }
            let shared =
                of_hop.flat_map(|(_, planned)| &planned.nodes).filter(|node| seen_nodes.insert(**node));
            let further =
                shared.filter_map(|node| planning.nodes.get(*node)).flat_map(|node| &node.maintenances);
            hop = further.copied().filter(|id| seen.insert(*id)).collect();
        }
        None
    }
}

/// Returns the maintenance that keeps the node from a target that `planned` has reached: of several, the one
/// with the lowest cursor, then the oldest.
fn limited_by<'a>(
    planning: &'a Planning,
    planned: &PlannedMaintenance,
    node: &'a PlannedNode,
) -> Option<&'a PlannedMaintenance> {
    let hidden: Vec<Tier> =
        planned.reached.tiers().filter(|tier| !node.targets.includes(tier, &planning.catalog)).collect();
    let lacks = |other: &&PlannedMaintenance| {
        let spoken = hidden.iter().filter(|tier| other.drains(tier.pod_type));
        spoken.into_iter().any(|tier| !other.reached.includes(tier, &planning.catalog))
    };
    lowest(planning.maintenances_on(node).filter(lacks))
}

/// If the node has a target that `planned` has not reached, returns the maintenance that has reached it,
/// chosen as in `limited_by`; the inner option is none if that maintenance has left the node.
pub(crate) fn fast_forwarded_by<'a>(
    planning: &'a Planning,
    planned: &PlannedMaintenance,
    node: &'a PlannedNode,
) -> Option<Option<&'a PlannedMaintenance>> {
    let spoken = node.targets.tiers().filter(|target| planned.drains(target.pod_type));
    let ahead: Vec<Tier> =
        spoken.filter(|target| !planned.reached.includes(target, &planning.catalog)).collect();
    let has = |other: &&PlannedMaintenance| {
        ahead.iter().any(|target| other.reached.includes(target, &planning.catalog))
    };
    (!ahead.is_empty()).then(|| lowest(planning.maintenances_on(node).filter(has)))
}

fn lowest<'a>(maintenances: impl Iterator<Item = &'a PlannedMaintenance>) -> Option<&'a PlannedMaintenance> {
    maintenances.min_by_key(|d| (d.rank(), d.age))
}
