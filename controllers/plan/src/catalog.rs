//! Numbers the distinct selectors of all plans, so that each is matched against a pod only once.

use std::collections::HashMap;

use drydock_api::metav1::{KnownLabels, LabelSelector, LabelSelectorRequirement};
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
    /// Whether it selects pods of a class.
    pub(crate) fn covers(&self, class: &Class) -> bool {
        self.pod_type == class.pod_type
            && class.priority <= self.priority
            && self.selector.is_none_or(|selector| class.selectors.contains(&selector))
    }

    /// Orders tiers by type, then by priority; a tier with a selector comes before the one without.
    pub(crate) fn rank(&self) -> (PodType, i32, bool) {
        (self.pod_type, self.priority, self.selector.is_none())
    }
}

/// Pods that no plan can tell apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Class {
    pub(crate) pod_type: PodType,
    pub(crate) priority: i32,
    /// The selectors that match these pods, in ascending order.
    pub(crate) selectors: Vec<SelectorId>,
}

impl Class {
    /// The keys of the targets that may cover these pods: their type without a selector, and with each
    /// selector that matches.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (PodType, Option<SelectorId>)> {
        std::iter::once(None).chain(self.selectors.iter().copied().map(Some)).map(|s| (self.pod_type, s))
    }
}

/// The selectors that occur in plans and in recorded targets.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// The id of a selector, by each form in which it has been written and by its normal form.
    ids: HashMap<LabelSelector, SelectorId>,
    /// By id: the selector as it was first written, and its normal form.
    written: Vec<(LabelSelector, LabelSelector)>,
    /// Selectors with matchLabels, by the key and the value of the first of these labels, so that a pod is
    /// matched only against selectors that may match it.
    by_label: HashMap<String, HashMap<String, Vec<SelectorId>>>,
    /// Selectors without matchLabels.
    others: Vec<SelectorId>,
    /// By joined selector: the selectors that it is joined from.
    parts: HashMap<SelectorId, Vec<SelectorId>>,
}

impl Catalog {
    /// Returns the tier of an entry of a plan. An empty selector counts as none.
    pub(crate) fn tier(&mut self, entry: &DrainPlanEntry) -> Tier {
        let selector = entry.pod_selector.as_ref().filter(|s| !s.is_empty());
        let selector = selector.map(|s| self.intern(s));
        Tier { pod_type: entry.pod_type, priority: entry.pod_priority, selector }
    }

    fn intern(&mut self, selector: &LabelSelector) -> SelectorId {
        if let Some(id) = self.ids.get(selector) {
            return *id;
        }
        let normal = selector.normalized();
        let id = self.ids.get(&normal).copied().unwrap_or_else(|| self.add(selector, &normal));
        self.ids.insert(selector.clone(), id);
        id
    }

    fn add(&mut self, selector: &LabelSelector, normal: &LabelSelector) -> SelectorId {
        let id = self.written.len();
        self.written.push((selector.clone(), normal.clone()));
        self.ids.insert(normal.clone(), id);
        match selector.match_labels.first_key_value() {
            Some((key, value)) => {
                let values = self.by_label.entry(key.clone()).or_default();
                values.entry(value.clone()).or_default().push(id);
            }
            None => self.others.push(id),
        }
        id
    }

    /// The class of a pod. It has no selector of which it is not known whether it matches: the pod leaves with those that no
    /// selector matches.
    pub(crate) fn class(&self, pod_type: PodType, priority: i32, known: KnownLabels<'_>) -> Class {
        let named =
            known.labels.iter().filter_map(|(key, value)| self.by_label.get(key)?.get(value)).flatten();
        let matches = |id: &&SelectorId| {
            self.written.get(**id).is_some_and(|(s, _)| s.matches_known(known) == Some(true))
        };
        let mut selectors: Vec<SelectorId> = named.chain(&self.others).filter(matches).copied().collect();
        selectors.sort_unstable();
        Class { pod_type, priority, selectors }
    }

    /// Returns a selector with the requirements of all these.
    pub(crate) fn join(&mut self, parts: &[SelectorId]) -> SelectorId {
        let all = parts.iter().flat_map(|id| self.requirements(Some(*id)).to_vec()).collect();
        let joined = LabelSelector { match_expressions: all, ..LabelSelector::default() };
        let id = self.intern(&joined.normalized());
        self.parts.entry(id).or_insert_with(|| parts.to_vec());
        id
    }

    /// Whether a selector that was joined after the classes were made matches the pods of a class.
    pub(crate) fn joins(&self, joined: SelectorId, class: &Class) -> bool {
        let is_matched = |parts: &Vec<SelectorId>| parts.iter().all(|part| class.selectors.contains(part));
        self.parts.get(&joined).is_some_and(is_matched)
    }

    /// What a selector requires, in its normal form; nothing if there is none.
    pub(crate) fn requirements(&self, selector: Option<SelectorId>) -> &[LabelSelectorRequirement] {
        let written = selector.and_then(|id| self.written.get(id));
        written.map(|(_, normal)| normal.match_expressions.as_slice()).unwrap_or_default()
    }

    /// Whether one tier selects every pod that another one selects, as far as their requirements show it.
    pub(crate) fn includes(&self, wide: &Tier, narrow: &Tier) -> bool {
        let required = self.requirements(narrow.selector);
        wide.pod_type == narrow.pod_type
            && wide.priority >= narrow.priority
            && self.requirements(wide.selector).iter().all(|r| required.contains(r))
    }

    /// Returns a tier as an entry of a plan.
    pub(crate) fn entry(&self, tier: &Tier) -> DrainPlanEntry {
        let written = tier.selector.and_then(|id| self.written.get(id));
        let pod_selector = written.map(|(selector, _)| selector.clone());
        DrainPlanEntry { pod_selector, pod_priority: tier.priority, pod_type: tier.pod_type }
    }

    /// A sort key of selectors that does not depend on their ids; no selector comes first.
    pub(crate) fn order(&self, selector: Option<SelectorId>) -> Option<&LabelSelector> {
        selector.and_then(|id| self.written.get(id)).map(|(_, normal)| normal)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    /// A tenant hid a label of his pod among thousands of others: selectors that spare pods with it drained the pod first.
    #[test]
    fn a_pod_is_of_no_selector_of_which_a_label_that_is_not_known_decides() {
        let mut catalog = Catalog::default();
        for (operator, key) in [
            ("DoesNotExist", "keep"),
            ("NotIn", "keep"),
            ("In", "keep"),
            ("DoesNotExist", "a"),
            ("Exists", "app"),
        ] {
            let values = if operator.ends_with("In") { json!(["x"]) } else { json!([]) };
            let requirement = json!({ "key": key, "operator": operator, "values": values });
            catalog.intern(&serde_json::from_value(json!({ "matchExpressions": [requirement] })).unwrap());
        }
        let labels = BTreeMap::from([("app".to_owned(), "a".to_owned())]);
        assert_eq!(catalog.class(PodType::Default, 0, (&labels).into()).selectors, [0, 1, 3, 4]);
        let known = KnownLabels { cut_from: Some("b"), ..KnownLabels::from(&labels) };
        assert_eq!(catalog.class(PodType::Default, 0, known).selectors, [3, 4]);
    }

    #[test]
    fn a_pod_is_of_every_selector_that_matches_it_however_that_is_found() {
        let mut catalog = Catalog::default();
        let selectors = [
            json!({ "matchLabels": { "app": "a" } }),
            json!({ "matchLabels": { "app": "a", "tier": "web" } }),
            json!({ "matchLabels": { "app": "b" } }),
            json!({ "matchExpressions": [{ "key": "app", "operator": "Exists" }] }),
            json!({ "matchExpressions": [{ "key": "app", "operator": "DoesNotExist" }] }),
            json!({ "matchLabels": { "tier": "web" } }),
        ];
        for selector in &selectors {
            catalog.intern(&serde_json::from_value(selector.clone()).unwrap());
        }
        for labels in
            [json!({}), json!({ "app": "a" }), json!({ "tier": "web", "app": "a" }), json!({ "app": "c" })]
        {
            let labels: BTreeMap<String, String> = serde_json::from_value(labels).unwrap();
            let each = catalog.written.iter().enumerate();
            let matching: Vec<_> = each.filter(|(_, (s, _))| s.matches(&labels)).map(|(id, _)| id).collect();
            assert_eq!(
                catalog.class(PodType::Default, 0, (&labels).into()).selectors,
                matching,
                "{labels:?}"
            );
        }
    }

    #[test]
    fn a_selector_has_one_number_however_it_is_written() {
        let mut catalog = Catalog::default();
        let mut id = |s| catalog.intern(&serde_json::from_value(s).unwrap());
        let labels = id(json!({ "matchLabels": { "app": "a" } }));
        let expression = json!({ "key": "app", "operator": "In", "values": ["a"] });
        assert_eq!(id(json!({ "matchExpressions": [expression] })), labels);
        assert_eq!(id(json!({ "matchLabels": { "app": "a" } })), labels);
    }
}
