//! Drain targets of a node, and what a maintenance has reached: for each pod type and selector, a priority.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

use crate::catalog::{Catalog, Class, SelectorId, Tier};

/// The key of a drain target: a pod type, and a selector or none.
pub(crate) type TargetKey = (PodType, Option<SelectorId>);

/// The highest priority targeted for each key; never lowered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DrainTargets {
    priorities: BTreeMap<TargetKey, i32>,
    /// Keys whose selector was joined in this planning.
    joined: BTreeSet<TargetKey>,
}

impl DrainTargets {
    /// Raises a key to a priority.
    pub(crate) fn raise(&mut self, key: TargetKey, priority: i32) {
        let slot = self.priorities.entry(key).or_insert(priority);
        *slot = (*slot).max(priority);
    }

    /// Raises a key whose selector is joined from those of several plans.
    pub(crate) fn raise_joined(&mut self, key: TargetKey, priority: i32) {
        self.raise(key, priority);
        self.joined.insert(key);
    }

    /// Raises each target with a selector at least to its type's target without one.
    pub(crate) fn raise_to_base(&mut self) {
        let general: Vec<(PodType, i32)> = self
            .priorities
            .iter()
            .filter(|((_, selector), _)| selector.is_none())
            .map(|((t, _), p)| (*t, *p))
            .collect();
        for ((pod_type, _), priority) in &mut self.priorities {
            let floor = general.iter().find(|(t, _)| t == pod_type).map_or(*priority, |(_, p)| *p);
            *priority = floor.max(*priority);
        }
    }

    /// Adds a key that some plan has, with the priority of its type's target without a selector, if there is
    /// one.
    pub(crate) fn add_key(&mut self, key: TargetKey) {
        if let Some(floor) = self.priorities.get(&(key.0, None)).copied() {
            self.raise(key, floor);
        }
    }

    pub(crate) fn covers(&self, class: &Class, catalog: &Catalog) -> bool {
        let reaches =
            |key: &TargetKey| self.priorities.get(key).is_some_and(|priority| class.priority <= *priority);
        let joins = |key: &TargetKey| key.1.is_some_and(|joined| catalog.joins(joined, class));
        let mut joined = self.joined.iter().filter(|key| key.0 == class.pod_type);
        class.keys().any(|key| reaches(&key)) || joined.any(|key| reaches(key) && joins(key))
    }

    pub(crate) fn tiers(&self) -> impl Iterator<Item = Tier> {
        self.priorities.iter().map(tier)
    }

    /// Whether all pods of a tier are targeted, as far as the requirements of selectors show it.
    pub(crate) fn includes(&self, tier: &Tier, catalog: &Catalog) -> bool {
        let same = self.priorities.get(&(tier.pod_type, tier.selector));
        same.is_some_and(|priority| tier.priority <= *priority)
            || self.tiers().any(|target| catalog.includes(&target, tier))
    }

    /// The targets in the order in which a status shows them: by type; then the one without a selector, those
    /// that plans have (in the order of `place`), and the others, which are joined or of a maintenance that
    /// has left. One of the others with several requirements is omitted if another target includes it.
    pub(crate) fn entries(
        &self,
        catalog: &Catalog,
        place: &HashMap<TargetKey, usize>,
    ) -> Vec<DrainPlanEntry> {
        let place = |t: &Tier| place.get(&(t.pod_type, t.selector)).copied().unwrap_or(usize::MAX);
        let mut tiers: Vec<Tier> = self.tiers().collect();
        let needless = |tier: &Tier| {
            place(tier) == usize::MAX
                && catalog.requirements(tier.selector).len() > 1
                && tiers.iter().any(|other| other != tier && catalog.includes(other, tier))
        };
        let dropped: Vec<Tier> = tiers.iter().filter(|t| needless(t)).copied().collect();
        tiers.retain(|tier| !dropped.contains(tier));
        tiers.sort_by_key(|t| (t.pod_type, t.selector.is_some(), place(t), catalog.order(t.selector)));
        tiers.iter().map(|t| catalog.entry(t)).collect()
    }
}

/// The priorities that a maintenance has reached: the highest for each key among the entries up to its cursor.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReachedPriorities(HashMap<TargetKey, i32>);

impl ReachedPriorities {
    pub(crate) fn of(tiers: &[Tier]) -> Self {
        let mut reached = Self::default();
        tiers.iter().for_each(|tier| reached.add(tier));
        reached
    }

    pub(crate) fn add(&mut self, tier: &Tier) {
        let slot = self.0.entry((tier.pod_type, tier.selector)).or_insert(tier.priority);
        *slot = (*slot).max(tier.priority);
    }

    /// The highest priority reached for a key: an entry without a selector counts for all selectors.
    pub(crate) fn get(&self, key: TargetKey) -> Option<i32> {
        let general = self.0.get(&(key.0, None)).copied();
        self.0.get(&key).copied().max(general)
    }

    /// Whether all pods of a target have been reached, as far as the requirements of selectors show it.
    pub(crate) fn includes(&self, target: &Tier, catalog: &Catalog) -> bool {
        self.get((target.pod_type, target.selector)) >= Some(target.priority)
            || self.tiers().any(|tier| catalog.includes(&tier, target))
    }

    pub(crate) fn covers(&self, class: &Class) -> bool {
        self.covering(class).next().is_some()
    }

    /// The tier that this maintenance contributes to a joined target: the one without a selector if that
    /// covers the pods, else the covering one with the highest priority.
    pub(crate) fn contribution(&self, class: &Class, catalog: &Catalog) -> Option<Tier> {
        let rank =
            |t: &Tier| (t.selector.is_none(), t.priority, std::cmp::Reverse(catalog.order(t.selector)));
        self.covering(class).max_by(|a, b| rank(a).cmp(&rank(b)))
    }

    pub(crate) fn tiers(&self) -> impl Iterator<Item = Tier> {
        self.0.iter().map(tier)
    }

    fn covering<'a>(&'a self, class: &'a Class) -> impl Iterator<Item = Tier> + 'a {
        let tiers = class.keys().filter_map(|key| self.0.get_key_value(&key)).map(tier);
        tiers.filter(|tier| class.priority <= tier.priority)
    }
}

fn tier(((pod_type, selector), priority): (&TargetKey, &i32)) -> Tier {
    Tier { pod_type: *pod_type, priority: *priority, selector: *selector }
}
