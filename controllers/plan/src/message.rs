//! drainMessage, in the seed's words.

use crate::advance::group_of;
use crate::board::{Board, Drain, Node};

/// How a maintenance stands on a node, compared with the node's targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The maintenance is further along than the node.
    Ahead,
    /// The node is further along than the maintenance.
    Behind,
    /// Neither.
    Level,
}

/// What the messages of one planning are made from, each worked out once.
pub(crate) struct Messages<'a> {
    pub(crate) board: &'a Board,
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
        let other = |d: &&Drain| d.age != drain.age;
        match standing(drain, node) {
            Standing::Ahead => told("limited by ", lowest(self.board, node, other)),
            Standing::Behind => told("fast-forwarded by older ", older(self.board, drain, node)),
            Standing::Level => "Evacuating".to_owned(),
        }
    }
}

pub(crate) fn standing(drain: &Drain, node: &Node) -> Standing {
    let keys = drain.plan.iter().flat_map(|t| [(t.pod_type, t.selector), (t.pod_type, None)]);
    let pairs: Vec<_> = keys.map(|key| (drain.reach.get(key), node.targets.get(key))).collect();
    if pairs.iter().any(|(own, shown)| own > shown) {
        Standing::Ahead
    } else if pairs.iter().any(|(own, shown)| own < shown) {
        Standing::Behind
    } else {
        Standing::Level
    }
}

/// The older maintenance that a node's progress is laid to: the one with the lowest cursor.
pub(crate) fn older<'a>(board: &'a Board, drain: &Drain, node: &'a Node) -> Option<&'a Drain> {
    lowest(board, node, |d| d.age < drain.age)
}

fn lowest<'a>(board: &'a Board, node: &'a Node, of: impl FnMut(&&'a Drain) -> bool) -> Option<&'a Drain> {
    board.drains_of(node).filter(of).min_by_key(|d| (d.rank(), d.age))
}

fn told(how: &str, who: Option<&Drain>) -> String {
    who.map_or_else(|| "Evacuating".to_owned(), |d| format!("Evacuating ({how}{})", d.name))
}

/// Nothing is targeted here: where it is, at the nearest, or that nothing is left anywhere.
fn idle(board: &Board, id: usize, first_busy: &[Option<usize>]) -> String {
    let Some(drain) = board.drains.get(id) else { return String::new() };
    if board.nodes_of(drain).all(|n| n.classes.is_empty()) {
        return "Drained".to_owned();
    }
    let busy = |id: usize| board.nodes.get((*first_busy.get(id)?)?);
    if let Some(node) = busy(id) {
        return format!("Waiting for node {}.", node.name);
    }
    let near = group_of(board, id, &mut vec![false; board.drains.len()]);
    let found = near.iter().find_map(|id| Some((busy(*id)?, board.drains.get(*id)?)));
    found.map(|(node, d)| format!("Waiting for node {} ({}).", node.name, d.name)).unwrap_or_default()
}
