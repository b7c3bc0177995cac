//! Drain targets: for each pod type and selector, the highest priority reached.

use std::collections::{BTreeMap, HashMap};

use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

use crate::catalog::{Catalog, Class, SelectorId, Tier};

/// What drain targets speak of: a pod type, and a selector or none.
pub(crate) type Key = (PodType, Option<SelectorId>);

/// The highest priority targeted for each key; never lowered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Targets(BTreeMap<Key, i32>);

impl Targets {
    /// Raises a key to a priority.
    pub(crate) fn raise(&mut self, key: Key, priority: i32) {
        let slot = self.0.entry(key).or_insert(priority);
        *slot = (*slot).max(priority);
    }

    /// Raises every selector to what its type has reached without one.
    pub(crate) fn level(&mut self) {
        let general: Vec<(PodType, i32)> = self
            .0
            .iter()
            .filter(|((_, selector), _)| selector.is_none())
            .map(|((t, _), p)| (*t, *p))
            .collect();
        for ((pod_type, _), priority) in &mut self.0 {
            let floor = general.iter().find(|(t, _)| t == pod_type).map_or(*priority, |(_, p)| *p);
            *priority = floor.max(*priority);
        }
    }

    /// Adds a selector that some plan has: it has reached what its type has reached without one.
    pub(crate) fn add_key(&mut self, key: Key) {
        if let Some(floor) = self.0.get(&(key.0, None)).copied() {
            self.raise(key, floor);
        }
    }

    pub(crate) fn get(&self, key: Key) -> Option<i32> {
        self.0.get(&key).copied()
    }

    pub(crate) fn covers(&self, class: &Class) -> bool {
        class.keys().any(|key| self.get(key).is_some_and(|priority| class.priority <= priority))
    }

    /// As status shows them: by type, then none before selectors.
    pub(crate) fn entries(&self, catalog: &Catalog) -> Vec<DrainPlanEntry> {
        let tier = |((pod_type, selector), priority): (&Key, &i32)| Tier {
            pod_type: *pod_type,
            priority: *priority,
            selector: *selector,
        };
        let mut tiers: Vec<Tier> = self.0.iter().map(tier).collect();
        tiers.sort_by_key(|t| (t.pod_type, catalog.order(t.selector)));
        tiers.iter().map(|t| catalog.entry(t)).collect()
    }
}

/// What a maintenance has reached: the highest priority for each key among the entries up to its cursor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach(HashMap<Key, i32>);

impl Reach {
    pub(crate) fn of(tiers: &[Tier]) -> Self {
        let mut reach = Self::default();
        tiers.iter().for_each(|tier| reach.add(tier));
        reach
    }

    pub(crate) fn add(&mut self, tier: &Tier) {
        let slot = self.0.entry((tier.pod_type, tier.selector)).or_insert(tier.priority);
        *slot = (*slot).max(tier.priority);
    }

    /// The highest priority reached for a key: an entry without a selector counts for all selectors.
    pub(crate) fn get(&self, key: Key) -> Option<i32> {
        let general = self.0.get(&(key.0, None)).copied();
        self.0.get(&key).copied().max(general)
    }

    pub(crate) fn covers(&self, class: &Class) -> bool {
        class.keys().any(|key| self.0.get(&key).is_some_and(|priority| class.priority <= *priority))
    }
}
