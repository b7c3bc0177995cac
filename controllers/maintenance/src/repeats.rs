//! Warnings that are decided on once and matter for as long as a drain goes on: they are told again, because an event is gone
//! after an hour, or was never written.

use std::collections::HashMap;

use drydock_api::meta::{Condition, find_condition};
use drydock_api::node_maintenance::{DRAINED, NodeMaintenance, Stage};
use drydock_runtime::events::reasons::DRAIN_FAST_FORWARDED;
use jiff::{SignedDuration, Timestamp};

use crate::actions::{About, Action, Decision, Note};
use crate::world::View;

/// What is told once by those who decide on it.
const REPEATED: [&str; 1] = [DRAIN_FAST_FORWARDED];
/// How often it is told again.
const EVERY: SignedDuration = SignedDuration::from_mins(30);
/// Most warnings that are remembered.
const MAX: usize = 1000;

/// Warnings of maintenances, by UID and message, and when they were told last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats(HashMap<(String, String), (Note, Timestamp)>);

impl Repeats {
    /// Takes in what was decided, and tells again what is due. Runs last.
    pub(crate) fn update(&mut self, view: &View<'_>, decision: &mut Decision) {
        let draining: HashMap<&str, &str> = view
            .world
            .maintenances
            .iter()
            .filter(|m| is_draining(m))
            .map(|m| (m.metadata.name.as_str(), m.metadata.uid.as_str()))
            .collect();
        self.0.retain(|(uid, _), (note, _)| uid_of(note, &draining) == Some(uid));
        for (note, told) in self.0.values_mut() {
            if view.now.duration_since(*told) >= EVERY {
                *told = view.now;
                decision.notes.push(note.clone());
            }
        }
        // Those of a status are told when it is written.
        let of_statuses = decision.actions.values().flat_map(|action| match action {
            Action::Status { notes, .. } => notes.as_slice(),
            _ => &[],
        });
        let decided = decision.notes.iter().chain(of_statuses);
        for note in decided.filter(|note| REPEATED.contains(&note.reason)) {
            let Some(uid) = uid_of(note, &draining).filter(|_| self.0.len() < MAX) else { continue };
            self.0.insert((uid.to_owned(), note.message.clone()), (note.clone(), view.now));
        }
        let next = self.0.values().filter_map(|(_, told)| told.checked_add(EVERY).ok()).min();
        next.into_iter().for_each(|at| decision.wake_at(at));
    }
}

fn is_draining(maintenance: &NodeMaintenance) -> bool {
    let drained = find_condition(&maintenance.status.conditions, DRAINED);
    maintenance.spec.stage == Stage::Drain && !drained.is_some_and(Condition::is_true)
}

fn uid_of<'a>(note: &Note, draining: &HashMap<&str, &'a str>) -> Option<&'a str> {
    match &note.about {
        About::Maintenance(name) => draining.get(name.as_str()).copied(),
        About::Node(_) | About::Eviction(..) => None,
    }
}
