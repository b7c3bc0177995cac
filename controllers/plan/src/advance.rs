//! Cursors run to their fixed point.

use crate::board::{Board, Node};
use crate::catalog::Class;
use crate::contradiction::{self, Forced};
use crate::drain::Drain;

/// Moves every cursor as far as it may go. Returns those that went on because plans contradict each other. Ends, because
/// each round moves a cursor and plans are finite.
pub(crate) fn run(board: &mut Board) -> Vec<Forced> {
    let mut all_forced = Vec::new();
    board.raise_targets();
    loop {
        let progress = Progress::of(board);
        let next: Vec<usize> =
            (0..board.drains.len()).filter(|id| progress.may_advance(board, *id)).collect();
        if !next.is_empty() {
            board.step(&next);
            continue;
        }
        let Some(forced) = contradiction::find(board, &progress) else { return all_forced };
        board.step(&[forced.drain]);
        all_forced.push(forced);
    }
}

/// What the rules ask of each maintenance, at one moment.
pub(crate) struct Progress {
    /// No targeted pod is left on any of its nodes.
    finished: Vec<bool>,
    /// No pod that it has reached is left on any of its nodes.
    done: Vec<bool>,
}

impl Progress {
    fn of(board: &Board) -> Self {
        let is_busy = |node: &Node| node.classes.keys().any(|class| board.targets(node, class));
        let busy: Vec<bool> = board.nodes.iter().map(is_busy).collect();
        let finished = |drain: &Drain| drain.nodes.iter().all(|n| busy.get(*n) == Some(&false));
        let done = |drain: &Drain| {
            let reached = |class: &Class| drain.reach.covers(class);
            !board.nodes_of(drain).any(|node| node.classes.keys().any(reached))
        };
        Self {
            finished: board.drains.iter().map(finished).collect(),
            done: board.drains.iter().map(done).collect(),
        }
    }

    /// Whether a maintenance and all that share a node with it are finished, and it has another entry.
    pub(crate) fn is_free(&self, board: &Board, id: usize) -> bool {
        let Some(drain) = board.drains.get(id).filter(|drain| !drain.at_end()) else { return false };
        let is_finished = |id: &usize| self.finished.get(*id) == Some(&true);
        !drain.nodes.is_empty() && board.nodes_of(drain).all(|node| node.drains.iter().all(is_finished))
    }

    fn may_advance(&self, board: &Board, id: usize) -> bool {
        self.done.get(id) == Some(&true) && self.is_free(board, id)
    }
}
