//! Which maintenances have series of metrics, where there are too many. Pure.
//!
//! Whoever may create maintenances may create thousands. Half of the places are shared by creators alike, whatever the stages of
//! their maintenances: nobody who has a few is left out by somebody's thousands. The other half goes to maintenances in Drain
//! first, on which alerts depend most. Of the maintenances of one creator those in Drain come first, then the older ones: one
//! that is shown stays so while others are made.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage};
use jiff::Timestamp;

/// The maintenances of a creator that have no place yet, the next one last, and how many have.
struct CreatorShare<'a> {
    waiting: Vec<&'a NodeMaintenance>,
    taken: usize,
}

impl<'a> CreatorShare<'a> {
    fn of(mut waiting: Vec<&'a NodeMaintenance>) -> Self {
        waiting.sort_by(|a, b| order(b).cmp(&order(a)));
        Self { waiting, taken: 0 }
    }
}

/// Returns at most `most` maintenances, in the order of `all`.
pub(super) fn choose(all: &[Arc<NodeMaintenance>], most: usize) -> impl Iterator<Item = &NodeMaintenance> {
    let chosen = if all.len() <= most { None } else { Some(shares(all, most)) };
    let is_chosen = move |name: &String| chosen.as_ref().is_none_or(|chosen| chosen.contains(name));
    all.iter().map(|maintenance| &**maintenance).filter(move |m| is_chosen(&m.metadata.name))
}

/// The names of those that have places.
fn shares(all: &[Arc<NodeMaintenance>], most: usize) -> BTreeSet<String> {
    let mut by_creator = BTreeMap::<&str, Vec<&NodeMaintenance>>::new();
    for maintenance in all {
        by_creator.entry(&maintenance.status.creator).or_default().push(maintenance);
    }
    let mut shares: Vec<_> = by_creator.into_values().map(CreatorShare::of).collect();
    let mut chosen = BTreeSet::new();
    let alike = |share: &CreatorShare<'_>, next: &NodeMaintenance| (share.taken, usize::from(!drains(next)));
    let drains_first =
        |share: &CreatorShare<'_>, next: &NodeMaintenance| (usize::from(!drains(next)), share.taken);
    give(&mut shares, most / 2, alike, &mut chosen);
    give(&mut shares, most - most / 2, drains_first, &mut chosen);
    chosen
}

/// Gives so many places, each to the creator with the least key; of several with the same, to the first by name.
fn give(
    shares: &mut [CreatorShare<'_>],
    places: usize,
    key: impl Fn(&CreatorShare<'_>, &NodeMaintenance) -> (usize, usize),
    chosen: &mut BTreeSet<String>,
) {
    let entry = |at: usize, share: &CreatorShare<'_>| {
        share.waiting.last().map(|next| Reverse((key(share, next), at)))
    };
    let mut least: BinaryHeap<_> =
        shares.iter().enumerate().filter_map(|(at, share)| entry(at, share)).collect();
    for _ in 0..places {
        let Some(Reverse((_, at))) = least.pop() else { return };
        let Some(share) = shares.get_mut(at) else { return };
        chosen.extend(share.waiting.pop().map(|maintenance| maintenance.metadata.name.clone()));
        share.taken += 1;
        least.extend(entry(at, share));
    }
}

/// The order of the maintenances of one creator.
fn order(maintenance: &NodeMaintenance) -> (bool, Option<Timestamp>, &str) {
    let meta = &maintenance.metadata;
    (!drains(maintenance), meta.creation_timestamp, &meta.name)
}

fn drains(maintenance: &NodeMaintenance) -> bool {
    maintenance.spec.stage == NodeMaintenanceStage::Drain
}

#[cfg(test)]
mod tests {
    use drydock_api::node_maintenance::NodeMaintenanceStage::{Cordon, Drain, Idle};

    use super::*;

    fn maintenance(
        creator: &str,
        name: &str,
        stage: NodeMaintenanceStage,
        made: i64,
    ) -> Arc<NodeMaintenance> {
        let mut maintenance = NodeMaintenance::default();
        maintenance.metadata.name = name.into();
        maintenance.metadata.creation_timestamp = Timestamp::from_second(made).ok();
        maintenance.spec.stage = stage;
        maintenance.status.creator = creator.into();
        Arc::new(maintenance)
    }

    /// So many of one creator, the names of which come first.
    fn crowd(creator: &str, stage: NodeMaintenanceStage, count: i64) -> Vec<Arc<NodeMaintenance>> {
        (0..count).map(|at| maintenance(creator, &format!("0-{creator}-{at:05}"), stage, at)).collect()
    }

    fn chosen(all: &[Arc<NodeMaintenance>], most: usize) -> Vec<&str> {
        choose(all, most).map(|maintenance| maintenance.metadata.name.as_str()).collect()
    }

    fn of<'a>(chosen: &[&'a str], creator: &str) -> Vec<&'a str> {
        chosen.iter().copied().filter(|name| name.contains(creator)).collect()
    }

    #[test]
    fn all_have_series_while_there_is_room() {
        let all = [crowd("ann", Idle, 3), crowd("bob", Drain, 2)].concat();
        assert_eq!(chosen(&all, 5).len(), 5);
        assert_eq!(chosen(&all, 0), Vec::<&str>::new());
    }

    /// The first by name had series: with 1,500 maintenances of one account, those of others had none, and no alert fired.
    #[test]
    fn maintenances_of_one_creator_leave_out_none_of_another_that_has_few() {
        for stage in [Idle, Drain] {
            for mine in [Idle, Cordon, Drain] {
                let all = [crowd("loud", stage, 1500), vec![maintenance("quiet", "z", mine, 9999)]].concat();
                let chosen = chosen(&all, 833);
                assert_eq!((chosen.len(), chosen.contains(&"z")), (833, true), "{stage:?} {mine:?}");
            }
        }
    }

    #[test]
    fn creators_that_want_more_than_there_is_have_as_many() {
        let all = [crowd("ann", Drain, 90), crowd("bob", Drain, 80), crowd("eve", Drain, 10)].concat();
        let chosen = chosen(&all, 90);
        let counts = ["ann", "bob", "eve"].map(|creator| of(&chosen, creator).len());
        assert_eq!(counts, [40, 40, 10]);
    }

    #[test]
    fn beyond_an_equal_half_those_that_drain_come_first() {
        let all = [crowd("ann", Idle, 100), crowd("bob", Drain, 100)].concat();
        let chosen = chosen(&all, 100);
        assert_eq!((of(&chosen, "ann").len(), of(&chosen, "bob").len()), (25, 75));
    }

    #[test]
    fn of_one_creator_those_that_drain_come_first_and_then_the_older_ones() {
        let mut all = crowd("ann", Idle, 5);
        all.push(maintenance("ann", "drains", Drain, 100));
        assert_eq!(chosen(&all, 3), ["0-ann-00000", "0-ann-00001", "drains"]);
    }

    /// A series that comes and goes resets the time for which an alert has to hold.
    #[test]
    fn one_that_is_shown_stays_so_while_younger_ones_are_made_and_however_all_are_ordered() {
        let before = [crowd("ann", Drain, 50), crowd("bob", Idle, 50)].concat();
        let younger = |at: i64| maintenance("bob", &format!("0-bob-late-{at}"), Idle, 1000 + at);
        let mut after: Vec<_> = before.iter().cloned().chain((0..20).map(younger)).collect();
        after.reverse();
        let mut shown = chosen(&after, 40);
        shown.sort_unstable();
        assert_eq!(shown, chosen(&before, 40));
        after.extend(crowd("carl", Idle, 1));
        assert!(chosen(&after, 40).contains(&"0-carl-00000"), "a new creator has a place at once");
    }
}
