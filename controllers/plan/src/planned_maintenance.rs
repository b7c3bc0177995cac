//! A maintenance with its cursor, which is the index of its current entry.

use drydock_api::node_maintenance::PodType;

use crate::catalog::{Class, Tier};
use crate::targets::ReachedPriorities;

/// A maintenance in one planning.
#[derive(Debug)]
pub(crate) struct PlannedMaintenance {
    pub(crate) name: String,
    /// Lower is older; no two are equal.
    pub(crate) age: usize,
    pub(crate) plan: Vec<Tier>,
    /// The last pod type that it drains: pods of later types do not exist for it.
    pub(crate) last_pod_type: PodType,
    pub(crate) cursor: usize,
    /// What the entries up to the cursor cover.
    pub(crate) reached: ReachedPriorities,
    /// Its nodes by index, in order of names.
    pub(crate) nodes: Vec<usize>,
}

impl PlannedMaintenance {
    /// Returns a maintenance whose cursor is at the first entry.
    pub(crate) fn new(
        name: String,
        age: usize,
        plan: Vec<Tier>,
        last_pod_type: PodType,
        nodes: Vec<usize>,
    ) -> Self {
        let mut planned =
            Self { name, age, plan, last_pod_type, cursor: 0, reached: ReachedPriorities::default(), nodes };
        planned.place(0);
        planned
    }

    /// Whether it drains pods of a type.
    pub(crate) fn drains(&self, pod_type: PodType) -> bool {
        pod_type <= self.last_pod_type
    }

    /// The pod type of its next entry; none at the end.
    pub(crate) fn next_type(&self) -> Option<PodType> {
        self.plan.get(self.cursor + 1).map(|tier| tier.pod_type)
    }

    /// Moves the cursor to an entry, forwards or back.
    pub(crate) fn place(&mut self, cursor: usize) {
        self.cursor = cursor;
        self.reached = ReachedPriorities::of(self.plan.get(..=cursor).unwrap_or(&self.plan));
    }

    /// Takes the next entry; returns it.
    pub(crate) fn step(&mut self) -> Option<Tier> {
        self.cursor += 1;
        let tier = self.plan.get(self.cursor).copied();
        tier.iter().for_each(|tier| self.reached.add(tier));
        tier
    }

    /// Index of the first entry that covers these pods.
    pub(crate) fn first_entry(&self, class: &Class) -> Option<usize> {
        self.plan.iter().position(|tier| tier.covers(class))
    }

    /// Rank of the current entry.
    pub(crate) fn rank(&self) -> Option<(PodType, i32, bool)> {
        self.plan.get(self.cursor).map(Tier::rank)
    }
}
