//! Cursors run to their fixed point.

use crate::board::{Board, Drain};

/// A contradiction was resolved: this one went on before its plan allowed, because of that older one.
pub(crate) struct Overtaken {
    pub(crate) drain: usize,
    pub(crate) older: usize,
}

/// Moves every cursor as far as it may go. Ends, because each round moves a cursor and plans are finite.
pub(crate) fn run(board: &mut Board) -> Vec<Overtaken> {
    let mut overtaken = Vec::new();
    board.raise_targets();
    loop {
        let state = State::of(board);
        let mut next: Vec<usize> =
            (0..board.drains.len()).filter(|id| state.may_advance(board, *id)).collect();
        if next.is_empty() {
            let forced = contradictions(board, &state);
            next.extend(forced.iter().map(|o| o.drain));
            overtaken.extend(forced);
        }
        if next.is_empty() {
            return overtaken;
        }
        next.into_iter().for_each(|id| board.step(id));
    }
}

/// What the rules ask of each maintenance, at one moment.
struct State {
    /// No targeted pod is left on any of its nodes.
    finished: Vec<bool>,
    /// No pod that it has reached is left on any of its nodes.
    done: Vec<bool>,
}

impl State {
    fn of(board: &Board) -> Self {
        let busy: Vec<bool> = board.nodes.iter().map(|n| board.targeted_left(n) > 0).collect();
        let finished = |drain: &Drain| drain.nodes.iter().all(|n| busy.get(*n) == Some(&false));
        let done =
            |drain: &Drain| board.nodes_of(drain).all(|n| !n.classes.keys().any(|c| drain.reach.covers(c)));
        Self {
            finished: board.drains.iter().map(finished).collect(),
            done: board.drains.iter().map(done).collect(),
        }
    }

    fn is_finished(&self, id: usize) -> bool {
        self.finished.get(id) == Some(&true)
    }

    fn may_advance(&self, board: &Board, id: usize) -> bool {
        let Some(drain) = board.drains.get(id) else { return false };
        !drain.at_end()
            && self.done.get(id) == Some(&true)
            && self.is_finished(id)
            && board.nodes_of(drain).all(|n| n.drains.iter().all(|other| self.is_finished(*other)))
    }
}

/// In each connected group in which everything is finished, pods are left and none may advance (the caller has seen
/// to that): the youngest that is not at its end, with the one that it gives way to.
fn contradictions(board: &Board, state: &State) -> Vec<Overtaken> {
    let mut found = Vec::new();
    for group in groups(board) {
        let idle = group.iter().all(|id| state.is_finished(*id));
        let drains = || group.iter().filter_map(|id| Some((*id, board.drains.get(*id)?)));
        let left = drains().any(|(_, d)| board.nodes_of(d).any(|n| !n.classes.is_empty()));
        if !idle || !left {
            continue;
        }
        let youngest = drains().filter(|(_, d)| !d.at_end()).max_by_key(|(_, d)| d.age);
        if let Some((id, drain)) = youngest {
            found.push(Overtaken { drain: id, older: older_than(board, drain, &group).unwrap_or(id) });
        }
    }
    found
}

/// The older maintenance with the lowest cursor that shares a node with this one, or else the oldest of its group.
fn older_than(board: &Board, drain: &Drain, group: &[usize]) -> Option<usize> {
    let older = |id: &usize| board.drains.get(*id).is_some_and(|d| d.age < drain.age);
    let rank = |id: &usize| board.drains.get(*id).map(|d| (d.rank(), d.age));
    let near = board.nodes_of(drain).flat_map(|n| n.drains.iter().copied()).filter(older).min_by_key(rank);
    let age = |id: &usize| board.drains.get(*id).map(|d| d.age);
    near.or_else(|| group.iter().copied().filter(older).min_by_key(age))
        .or_else(|| group.iter().copied().filter(|id| age(id) != Some(drain.age)).min_by_key(age))
}

/// Maintenances that are connected by shared nodes, directly or through others.
pub(crate) fn groups(board: &Board) -> Vec<Vec<usize>> {
    let mut seen = vec![false; board.drains.len()];
    let mut groups = Vec::new();
    for start in 0..board.drains.len() {
        let group = group_of(board, start, &mut seen);
        if !group.is_empty() {
            groups.push(group);
        }
    }
    groups
}

/// Everyone connected to `start`, nearest first; what has been seen before is left out.
pub(crate) fn group_of(board: &Board, start: usize, seen: &mut [bool]) -> Vec<usize> {
    let mut group = Vec::new();
    let visit = |id: usize, group: &mut Vec<usize>, seen: &mut [bool]| {
        if let Some(slot) = seen.get_mut(id).filter(|slot| !**slot) {
            *slot = true;
            group.push(id);
        }
    };
    visit(start, &mut group, seen);
    let mut next = 0;
    while let Some(id) = group.get(next).copied() {
        next += 1;
        let Some(drain) = board.drains.get(id) else { continue };
        let mut near: Vec<usize> = board.nodes_of(drain).flat_map(|n| n.drains.iter().copied()).collect();
        near.sort_by_key(|id| board.drains.get(*id).map(|d| d.age));
        near.dedup();
        near.into_iter().for_each(|id| visit(id, &mut group, seen));
    }
    group
}
