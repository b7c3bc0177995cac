//! The PodDisruptionBudgets of all namespaces by a label that their selectors require: those of a pod are looked for among
//! the ones that require a label of the pod, and the few that require none.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use drydock_runtime::cache::BudgetSelector;
use drydock_runtime::{ObjectChange, PodDisruptionBudget};

/// Most values of a requirement `In` by which a budget is indexed. One with more stands with those that require no label,
/// so that a long selector takes no room here.
const MAX_VALUES: usize = 16;

type BudgetsByName = BTreeMap<Box<str>, Arc<PodDisruptionBudget>>;

/// The index. It follows the store of budgets by the store's changes. Budgets whose selectors are too large to be known are not
/// in it: which pods they cover, only the host can say.
#[derive(Default)]
pub(crate) struct BudgetIndex {
    namespaces: HashMap<Box<str>, NamespaceBudgets>,
}

#[derive(Default)]
struct NamespaceBudgets {
    /// By key and value of a label without which the selector does not match.
    by_label: HashMap<(Box<str>, Box<str>), BudgetsByName>,
    /// Those whose selectors match pods with any labels, or with one of many values.
    without_label: BudgetsByName,
}

impl BudgetIndex {
    /// Takes in a change of the store of budgets.
    pub(crate) fn update(&mut self, change: &ObjectChange<PodDisruptionBudget>) {
        if let Some(old) = &change.old {
            self.remove(old);
        }
        if let Some(new) = &change.new {
            self.insert(new);
        }
    }

    /// Calls `visit` with the budgets of a namespace that may cover a pod with these labels, ordered by name, until it
    /// breaks. All that are known to cover it are among them.
    pub(crate) fn visit(
        &self,
        namespace: &str,
        labels: &BTreeMap<String, String>,
        mut visit: impl FnMut(&Arc<PodDisruptionBudget>) -> ControlFlow<()>,
    ) {
        let Some(budgets) = self.namespaces.get(namespace) else { return };
        let of_labels = labels.iter().filter_map(|(key, value)| budgets.by_label.get(&label(key, value)));
        let sets: Vec<_> = of_labels.chain([&budgets.without_label]).collect();
        let mut names: Vec<_> = sets.iter().map(|set| set.keys()).collect();
        // The first name of each set that has not been visited.
        let mut next: BinaryHeap<_> = BinaryHeap::new();
        next.extend(names.iter_mut().enumerate().filter_map(|(at, set)| Some(Reverse((set.next()?, at)))));
        while let Some(Reverse((name, at))) = next.pop() {
            if sets[at].get(name).is_some_and(|budget| visit(budget).is_break()) {
                return;
            }
            next.extend(names[at].next().map(|name| Reverse((name, at))));
        }
    }

    fn insert(&mut self, budget: &Arc<PodDisruptionBudget>) {
        let Some(selector) = known(budget) else { return };
        let budgets = self.namespaces.entry(budget.namespace.as_str().into()).or_default();
        let add = |set: &mut BudgetsByName| drop(set.insert(budget.name.as_str().into(), budget.clone()));
        match required_labels(selector) {
            Some(labels) => {
                labels.into_iter().for_each(|label| add(budgets.by_label.entry(label).or_default()))
            }
            None => add(&mut budgets.without_label),
        }
    }

    fn remove(&mut self, budget: &PodDisruptionBudget) {
        let Some(selector) = known(budget) else { return };
        let Some(budgets) = self.namespaces.get_mut(budget.namespace.as_str()) else { return };
        for label in required_labels(selector).into_iter().flatten() {
            if let Some(set) = budgets.by_label.get_mut(&label) {
                set.remove(budget.name.as_str());
                if set.is_empty() {
                    budgets.by_label.remove(&label);
                }
            }
        }
        budgets.without_label.remove(budget.name.as_str());
        if budgets.by_label.is_empty() && budgets.without_label.is_empty() {
            self.namespaces.remove(budget.namespace.as_str());
        }
    }
}

/// Labels of which a pod has to have one for the selector to match; none if there are no such labels, or too many.
fn required_labels(selector: &BudgetSelector) -> Option<Vec<(Box<str>, Box<str>)>> {
    Some(selector.required_labels(MAX_VALUES)?.map(|(key, value)| label(key, value)).collect())
}

/// The selector, if a pod can be compared with it.
fn known(budget: &PodDisruptionBudget) -> Option<&BudgetSelector> {
    budget.selector.as_ref().filter(|selector| !matches!(selector, BudgetSelector::Unknown { .. }))
}

fn label(key: &str, value: &str) -> (Box<str>, Box<str>) {
    (key.into(), value.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_api::metav1::{LabelSelector, LabelSelectorRequirement};
    use drydock_runtime::{Pod, Store};
    use parking_lot::Mutex;
    use proptest::prelude::*;

    use super::*;

    const NAMESPACES: [&str; 2] = ["ns", "other"];

    fn selector() -> impl Strategy<Value = Option<LabelSelector>> {
        let key = || prop::sample::select(vec!["a", "b", "c"]);
        let value = || prop::sample::select(vec!["1", "2", "3"]);
        let operator = prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist"]);
        let values = prop::collection::vec(value(), 0..3);
        let many = Just((0..20).map(|at| at.to_string()).collect::<Vec<_>>());
        let values =
            prop_oneof![4 => values.prop_map(|all| all.into_iter().map(str::to_owned).collect()), 1 => many];
        let requirement = (key(), operator, values).prop_map(|(key, operator, values)| {
            LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values }
        });
        let labels =
            prop::collection::btree_map(key().prop_map(str::to_owned), value().prop_map(str::to_owned), 0..3);
        let selector = (labels, prop::collection::vec(requirement, 0..3))
            .prop_map(|(match_labels, match_expressions)| LabelSelector { match_labels, match_expressions });
        prop::option::weighted(0.9, selector)
    }

    /// A budget is made or changed if it has a selector here, and deleted if not.
    fn change() -> impl Strategy<Value = (&'static str, u8, Option<Option<LabelSelector>>)> {
        (prop::sample::select(NAMESPACES.to_vec()), 0..6_u8, prop::option::weighted(0.8, selector()))
    }

    proptest! {
        /// The index finds what a scan of the store finds, in the same order.
        #[test]
        fn the_budgets_that_cover_a_pod_are_found_whatever_was_changed(
            changes in prop::collection::vec(change(), 1..30),
            labels in prop::collection::btree_map("[abc]", "[123]", 0..3),
        ) {
            let (store, index) = (Store::<PodDisruptionBudget>::default(), Arc::new(Mutex::new(BudgetIndex::default())));
            let followed = index.clone();
            store.subscribe(move |change: &ObjectChange<PodDisruptionBudget>| followed.lock().update(change));
            for (namespace, name, change) in changes {
                let name = format!("budget-{name}");
                match change {
                    Some(selector) => store.apply(PodDisruptionBudget {
                        name,
                        namespace: namespace.to_owned(),
                        selector: selector.map(BudgetSelector::from),
                        ..Default::default()
                    }),
                    None => store.delete(&drydock_runtime::ObjectKey::new(namespace, &name)),
                }
            }
            for namespace in NAMESPACES {
                let pod = Pod { labels: labels.clone().into(), ..Pod::default() };
                let covers = |budget: &Arc<PodDisruptionBudget>| {
                    budget.namespace == namespace && budget.covers(&pod) == Some(true)
                };
                let scanned: Vec<_> =
                    store.all().iter().filter(|it| covers(it)).map(|it| it.name.clone()).collect();
                let mut found = Vec::new();
                index.lock().visit(namespace, &labels, |budget| {
                    found.extend((budget.covers(&pod) == Some(true)).then(|| budget.name.clone()));
                    ControlFlow::Continue(())
                });
                prop_assert_eq!(scanned, found);
            }
            store.all().iter().for_each(|budget| store.delete(&drydock_runtime::Cacheable::key(&**budget)));
            prop_assert!(index.lock().namespaces.is_empty(), "nothing is left of budgets that are gone");
        }
    }

    #[test]
    fn a_pod_is_not_compared_with_budgets_that_require_labels_of_others() {
        let mut index = BudgetIndex::default();
        for at in 0..10_000 {
            let match_labels = BTreeMap::from([("app".to_owned(), at.to_string())]);
            let budget = PodDisruptionBudget {
                name: format!("budget-{at}"),
                namespace: "ns".to_owned(),
                selector: Some(LabelSelector { match_labels, ..Default::default() }.into()),
                ..Default::default()
            };
            index.update(&ObjectChange::between(None, Some(budget.into())));
        }
        let of_all = PodDisruptionBudget {
            name: "z".to_owned(),
            namespace: "ns".to_owned(),
            selector: Some(BudgetSelector::default()),
            ..Default::default()
        };
        index.update(&ObjectChange::between(None, Some(of_all.into())));
        let visited = |namespace: &str, most: usize| {
            let mut names = Vec::new();
            index.visit(namespace, &BTreeMap::from([("app".to_owned(), "7".to_owned())]), |budget| {
                names.push(budget.name.clone());
                if names.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            names
        };
        assert_eq!(visited("ns", 9), ["budget-7", "z"]);
        assert_eq!(visited("ns", 1), ["budget-7"], "it ends when it breaks");
        assert!(visited("n", 9).is_empty());
    }
}
