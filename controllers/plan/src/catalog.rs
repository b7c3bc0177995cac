//! Selectors as numbers: each distinct selector of all plans is matched against a pod once.

use std::collections::{BTreeMap, HashMap};

use drydock_api::meta::LabelSelector;
use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

/// Number of a selector.
pub(crate) type SelectorId = usize;

/// An entry of a plan, or a drain target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tier {
    pub(crate) pod_type: PodType,
    pub(crate) priority: i32,
    pub(crate) selector: Option<SelectorId>,
}

impl Tier {
    /// Its place among all tiers; one with a selector comes before the one without.
    pub(crate) fn rank(&self) -> (PodType, i32, bool) {
        (self.pod_type, self.priority, self.selector.is_none())
    }

    pub(crate) fn covers(&self, class: &Class) -> bool {
        self.pod_type == class.pod_type
            && class.priority <= self.priority
            && self.selector.is_none_or(|s| class.selectors.contains(&s))
    }
}

/// Pods that no plan can tell apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Class {
    pub(crate) pod_type: PodType,
    pub(crate) priority: i32,
    /// Those that match, ascending.
    pub(crate) selectors: Vec<SelectorId>,
}

/// The selectors that occur.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    ids: HashMap<LabelSelector, SelectorId>,
    /// As they were first written, with their normal form.
    written: Vec<(LabelSelector, LabelSelector)>,
}

impl Catalog {
    /// The tier that an entry means. An empty selector is none.
    pub(crate) fn tier(&mut self, entry: &DrainPlanEntry) -> Tier {
        let selector = entry.pod_selector.as_ref().filter(|s| !s.is_empty());
        let selector = selector.map(|s| self.intern(s));
        Tier { pod_type: entry.pod_type, priority: entry.pod_priority, selector }
    }

    fn intern(&mut self, selector: &LabelSelector) -> SelectorId {
        let normal = selector.normalized();
        if let Some(id) = self.ids.get(&normal) {
            return *id;
        }
        let id = self.written.len();
        self.written.push((selector.clone(), normal.clone()));
        self.ids.insert(normal, id);
        id
    }

    /// The class of a pod.
    pub(crate) fn class(&self, pod_type: PodType, priority: i32, labels: &BTreeMap<String, String>) -> Class {
        let matching = self.written.iter().enumerate().filter(|(_, (s, _))| s.matches(labels));
        Class { pod_type, priority, selectors: matching.map(|(id, _)| id).collect() }
    }

    /// The entry that a tier means.
    pub(crate) fn entry(&self, tier: &Tier) -> DrainPlanEntry {
        let written = tier.selector.and_then(|id| self.written.get(id));
        let pod_selector = written.map(|(selector, _)| selector.clone());
        DrainPlanEntry { pod_selector, pod_priority: tier.priority, pod_type: tier.pod_type }
    }

    /// An order of selectors that does not depend on who came first; none is the least.
    pub(crate) fn order(&self, selector: Option<SelectorId>) -> Option<&LabelSelector> {
        selector.and_then(|id| self.written.get(id)).map(|(_, normal)| normal)
    }
}
