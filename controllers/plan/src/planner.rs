//! The planner: what is remembered between plannings, and one planning from input to outcome.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use drydock_api::node_maintenance::DrainPlanEntry;

use crate::board::{Board, Drain};
use crate::input::{Maintenance, Pod};
use crate::message::{Messages, Standing, older, standing};
use crate::outcome::{FastForward, MaintenanceOutcome, NodeOutcome, Outcome};
use crate::{advance, replay};

/// Cursors and targets of the last planning. A new planner picks both up from the recorded targets.
#[derive(Clone, Debug, Default)]
pub struct Planner {
    /// By UID of the maintenance.
    cursors: HashMap<String, usize>,
    /// By name of the node.
    memory: BTreeMap<String, Vec<DrainPlanEntry>>,
    /// UID and node of every fast-forward that has been told.
    told: BTreeSet<(String, String)>,
}

impl Planner {
    /// Plans all maintenances in Drain together, since they share nodes. Pods on other nodes are not targeted.
    pub fn plan(&mut self, maintenances: &[Maintenance], pods: &[Pod<'_>]) -> Outcome {
        let mut board = Board::new(maintenances);
        board.remember(&self.memory);
        let restored = self.place_cursors(&mut board, maintenances);
        replay::run(&mut board, maintenances, &restored);
        let placed = board.count(pods);
        let overtaken = advance::run(&mut board);
        let mut fast_forwards = self.newcomers(&board, maintenances);
        fast_forwards.extend(overtaken.iter().map(|o| FastForward {
            maintenance: o.drain,
            node: None,
            older: board.drains.get(o.older).map(|d| d.name.clone()).unwrap_or_default(),
        }));
        self.keep(&board, maintenances);
        let targeted = |at: &Option<(usize, _)>| {
            at.as_ref()
                .is_some_and(|(id, class)| board.nodes.get(*id).is_some_and(|n| board.targets(n, class)))
        };
        Outcome {
            maintenances: outcomes(&board),
            targeted: placed.iter().map(targeted).collect(),
            fast_forwards,
        }
    }

    /// Sets the cursors that are known. Returns the maintenances that were planned by an earlier process.
    fn place_cursors(&self, board: &mut Board, maintenances: &[Maintenance]) -> BTreeSet<usize> {
        let mut restored = BTreeSet::new();
        for (id, (drain, maintenance)) in board.drains.iter_mut().zip(maintenances).enumerate() {
            match self.cursors.get(&maintenance.uid) {
                Some(cursor) => drain.place((*cursor).min(drain.plan.len().saturating_sub(1))),
                None if maintenance.recorded.values().any(|targets| !targets.is_empty()) => {
                    restored.insert(id);
                }
                None => {}
            }
        }
        restored
    }

    /// Maintenances that stand on a node that is further along, told once; those that were recorded there have been
    /// told by an earlier process.
    fn newcomers(&mut self, board: &Board, maintenances: &[Maintenance]) -> Vec<FastForward> {
        let mut found = Vec::new();
        for (id, (drain, maintenance)) in board.drains.iter().zip(maintenances).enumerate() {
            for node in board.nodes_of(drain) {
                let recorded = maintenance.recorded.get(&node.name).is_some_and(|t| !t.is_empty());
                let first = self.told.insert((maintenance.uid.clone(), node.name.clone()));
                if !first || recorded || standing(drain, node) != Standing::Behind {
                    continue;
                }
                if let Some(older) = older(board, drain, node) {
                    let node = Some(node.name.clone());
                    found.push(FastForward { maintenance: id, node, older: older.name.clone() });
                }
            }
        }
        found
    }

    fn keep(&mut self, board: &Board, maintenances: &[Maintenance]) {
        let cursors = board.drains.iter().zip(maintenances).map(|(d, m)| (m.uid.clone(), d.cursor));
        self.cursors = cursors.collect();
        let memory = board.nodes.iter().map(|n| (n.name.clone(), n.targets.entries(&board.catalog)));
        self.memory = memory.collect();
        let here: BTreeMap<&str, &BTreeSet<String>> =
            maintenances.iter().map(|m| (m.uid.as_str(), &m.nodes)).collect();
        self.told.retain(|(uid, node)| here.get(uid.as_str()).is_some_and(|nodes| nodes.contains(node)));
    }
}

fn outcomes(board: &Board) -> Vec<MaintenanceOutcome> {
    let messages = Messages::new(board);
    board.drains.iter().enumerate().map(|(id, drain)| outcome(&messages, id, drain)).collect()
}

fn outcome(messages: &Messages<'_>, id: usize, drain: &Drain) -> MaintenanceOutcome {
    let mut all =
        MaintenanceOutcome { cursor: drain.cursor, finished: true, drained: true, ..Default::default() };
    for (at, node) in drain.nodes.iter().filter_map(|at| Some((*at, messages.board.nodes.get(*at)?))) {
        let one = NodeOutcome {
            drain_targets: node.targets.entries(&messages.board.catalog),
            drain_message: messages.message(id, drain, at, node),
            left: node.classes.values().sum(),
            targeted: messages.targeted(at),
        };
        all.finished &= one.targeted == 0;
        all.drained &= one.left == 0;
        all.nodes.insert(node.name.clone(), one);
    }
    all
}
