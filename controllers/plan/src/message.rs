//! drainMessage, in the words of KEP-4212; and whom a maintenance is held up or fast-forwarded by.

use crate::board::{Board, Node};
use crate::catalog::Tier;
use crate::drain::Drain;

/// What the messages of one planning are made from, each worked out once.
pub(crate) struct Messages<'a> {
    board: &'a Board,
    /// Targeted pods, by node.
    targeted: Vec<usize>,
    /// What is said of nodes without targeted pods, by maintenance.
    idle: Vec<String>,
}

impl<'a> Messages<'a> {
    pub(crate) fn new(board: &'a Board) -> Self {
        let targeted: Vec<usize> = board.nodes.iter().map(|n| board.targeted_left(n)).collect();
        let busy =
            |d: &Drain| d.nodes.iter().copied().find(|n| targeted.get(*n).is_some_and(|count| *count > 0));
        let first_busy: Vec<Option<usize>> = board.drains.iter().map(busy).collect();
        let idle = (0..board.drains.len()).map(|id| idle(board, id, &first_busy)).collect();
        Self { board, targeted, idle }
    }

    /// Targeted pods on a node.
    pub(crate) fn targeted(&self, node: usize) -> usize {
        self.targeted.get(node).copied().unwrap_or_default()
    }

    /// The message of a maintenance for a node.
    pub(crate) fn message(&self, id: usize, drain: &Drain, at: usize, node: &Node) -> String {
        if self.targeted(at) == 0 {
            return self.idle.get(id).cloned().unwrap_or_default();
        }
        if let Some(other) = limited_by(self.board, drain, node) {
            return format!("Evacuating (limited by {})", other.name);
        }
        match fast_forwarded_by(self.board, drain, node) {
            Some(Some(other)) if other.age < drain.age => {
                format!("Evacuating (fast-forwarded by older {})", other.name)
            }
            Some(Some(other)) => format!("Evacuating (fast-forwarded by {})", other.name),
            Some(None) => "Evacuating (fast-forwarded)".to_owned(),
            None => "Evacuating".to_owned(),
        }
    }
}

/// The maintenance that keeps a node from a target that this one has reached: of several the one with the lowest cursor,
/// then the oldest.
fn limited_by<'a>(board: &'a Board, drain: &Drain, node: &'a Node) -> Option<&'a Drain> {
    let hidden: Vec<Tier> =
        drain.reach.tiers().filter(|tier| !node.targets.includes(tier, &board.catalog)).collect();
    let lacks = |other: &&Drain| hidden.iter().any(|tier| !other.reach.includes(tier, &board.catalog));
    lowest(board.drains_of(node).filter(lacks))
}

/// Whether a node shows a target that the maintenance has not reached; and the maintenance that has, chosen likewise. None
/// has if that one has left.
pub(crate) fn fast_forwarded_by<'a>(
    board: &'a Board,
    drain: &Drain,
    node: &'a Node,
) -> Option<Option<&'a Drain>> {
    let ahead: Vec<Tier> =
        node.targets.tiers().filter(|target| !drain.reach.includes(target, &board.catalog)).collect();
    let has = |other: &&Drain| ahead.iter().any(|target| other.reach.includes(target, &board.catalog));
    (!ahead.is_empty()).then(|| lowest(board.drains_of(node).filter(has)))
}

fn lowest<'a>(drains: impl Iterator<Item = &'a Drain>) -> Option<&'a Drain> {
    drains.min_by_key(|d| (d.rank(), d.age))
}

/// Nothing is targeted here: where it is, or that nothing is left anywhere.
fn idle(board: &Board, id: usize, first_busy: &[Option<usize>]) -> String {
    let Some(drain) = board.drains.get(id) else { return String::new() };
    if board.nodes_of(drain).all(|n| n.classes.is_empty()) {
        return "Drained".to_owned();
    }
    let busy = |id: usize| first_busy.get(id).copied().flatten();
    let name = |node: usize| board.nodes.get(node).map_or("", |node| node.name.as_str());
    if let Some(node) = busy(id) {
        return format!("Waiting for node {}.", name(node));
    }
    let found = nearest(board, id, &busy);
    found
        .map(|(node, other)| format!("Waiting for node {} ({}).", name(node), other.name))
        .unwrap_or_default()
}

/// The nearest maintenance with targeted pods, by hops over shared nodes, and its first node that has some. Of several the
/// one whose node has the least name, then the oldest.
fn nearest<'a>(
    board: &'a Board,
    id: usize,
    busy: &impl Fn(usize) -> Option<usize>,
) -> Option<(usize, &'a Drain)> {
    let mut seen = vec![id];
    let mut hop = vec![id];
    while !hop.is_empty() {
        let of_hop = hop.iter().filter_map(|id| Some((busy(*id)?, board.drains.get(*id)?)));
        if let Some(found) = of_hop.min_by_key(|(node, drain)| (*node, drain.age)) {
            return Some(found);
        }
        let shared = hop.iter().filter_map(|id| board.drains.get(*id)).flat_map(|d| board.nodes_of(d));
        let mut further: Vec<usize> = shared.flat_map(|node| node.drains.iter().copied()).collect();
        further.sort_unstable();
        further.dedup();
        further.retain(|id| !seen.contains(id));
        seen.extend(&further);
        hop = further;
    }
    None
}
