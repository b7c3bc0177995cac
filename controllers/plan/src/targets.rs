//! Drain targets: for each pod type and selector, the highest priority reached.

use std::collections::BTreeMap;

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
        self.0.iter().any(|((pod_type, selector), priority)| {
            Tier { pod_type: *pod_type, priority: *priority, selector: *selector }.covers(class)
        })
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

/// The highest priority that tiers have reached for a key: an entry without a selector counts for all selectors.
pub(crate) fn reached(tiers: &[Tier], key: Key) -> Option<i32> {
    let (pod_type, selector) = key;
    let counts = |t: &&Tier| t.pod_type == pod_type && (t.selector.is_none() || t.selector == selector);
    tiers.iter().filter(counts).map(|t| t.priority).max()
}
