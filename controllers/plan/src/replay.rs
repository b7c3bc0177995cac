//! Cursors after a restart: run again from the first entry over the drain targets that the statuses show.

use std::collections::BTreeSet;

use crate::board::Board;
use crate::input::Maintenance;

/// Moves the cursor of each maintenance in `restored` to the furthest entry that its recorded targets account for. The
/// one that is furthest behind goes first, so that none runs ahead under the cover of another that limits it.
pub(crate) fn run(board: &mut Board, maintenances: &[Maintenance], restored: &BTreeSet<usize>) {
    let mut open = restored.clone();
    while let Some(id) =
        open.iter().copied().min_by_key(|id| board.drains.get(*id).map(|d| (d.rank(), d.age)))
    {
        if !advance(board, maintenances, id) {
            open.remove(&id);
        }
    }
}

/// One entry on, unless a node would be shown more than was recorded there.
fn advance(board: &mut Board, maintenances: &[Maintenance], id: usize) -> bool {
    let Some(drain) = board.drains.get_mut(id).filter(|d| !d.at_end()) else { return false };
    drain.step();
    let recorded = maintenances.get(id).map(|m| &m.recorded);
    let fits = board.drains.get(id).is_some_and(|drain| {
        let known = board.nodes_of(drain).filter(|n| recorded.is_some_and(|r| r.contains_key(&n.name)));
        let shown = |n: &crate::board::Node| {
            board
                .least_reached(n)
                .iter()
                .all(|(key, priority)| n.targets.get(*key).is_some_and(|t| *priority <= t))
        };
        known.into_iter().all(shown)
    });
    if let Some(drain) = board.drains.get_mut(id).filter(|_| !fits) {
        drain.place(drain.cursor - 1);
    }
    fits
}
