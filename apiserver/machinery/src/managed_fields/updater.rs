//! Updates the ownership of fields after a write (structured-merge-diff merge.Updater).

use std::borrow::Cow;

use super::conflict::Conflicts;
use super::managed::{Managed, Manager, ManagerOperation, Owned};
use super::set::{Set, step};
use super::typed::{Comparison, compare_without, merge, remove_items, to_set};
use crate::object::Object;
use crate::schema::{ListType, Schema, Shape};

/// The updater of one kind in one version.
pub(super) struct FieldsUpdater<'a> {
    pub schema: &'a Schema,
    pub api_version: &'a str,
    /// Fields that this endpoint resets. No manager can become their owner through it.
    pub reset: &'a Set,
}

impl FieldsUpdater<'_> {
    /// Records that `writer` replaced `old` by `new`. Other managers lose the fields that differ. Returns the
    /// differences.
    pub fn update(&self, old: &Object, new: &Object, managed: &mut Managed, writer: &Manager) -> Comparison {
        self.reconcile(managed);
        let compared = self.compare(old, new);
        take_over(managed, &compared, writer);
        compared
    }

    /// Merges `config` into `live` and returns the result. `manager` owns the fields of the configuration; those that
    /// it owned before and no other manager owns are removed. Fields that become empty by that become null.
    ///
    /// # Errors
    /// The conflicts, unless `force`.
    pub fn apply(
        &self,
        live: &Object,
        config: Object,
        managed: &mut Managed,
        manager: &Manager,
        force: bool,
    ) -> Result<Object, Conflicts> {
        self.reconcile(managed);
        let set = to_set(&config, self.schema).recursive_difference(self.reset);
        let mut new = live.clone();
        merge(&mut new, config, self.schema);
        let last = managed.remove(manager);
        let mut owned = Owned::new(set, self.api_version);
        if let Some(last) = &last {
            owned.time.clone_from(&last.time);
        }
        managed.insert(manager.clone(), owned);
        if let Some(last) = last {
            self.prune(&mut new, managed, manager, &last.set);
        }
        let compared = self.compare(live, &new);
        let conflicts = conflicts(managed, &compared, manager);
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        take_over(managed, &compared, manager);
        Ok(new)
    }

    fn compare(&self, old: &Object, new: &Object) -> Comparison {
        compare_without(old, new, self.schema, self.reset)
    }

    /// Drops entries of other versions, which are not served, and shortens paths into values that have become atomic.
    fn reconcile(&self, managed: &mut Managed) {
        managed.retain(|_, owned| owned.api_version == self.api_version);
        for owned in managed.values_mut() {
            if reaches_into_atomic(&owned.set, self.schema) {
                owned.replace(cut_at_atomic(&owned.set, self.schema));
            }
        }
    }

    /// Removes the fields that the applier owned (`last`) and no longer applies, except those that another manager
    /// owns.
    fn prune(&self, merged: &mut Object, managed: &Managed, manager: &Manager, last: &Set) {
        let kept = managed.get(manager).is_some_and(|owned| last.difference(&owned.set).is_empty());
        if kept {
            return;
        }
        let last = last.with_named_fields(self.schema);
        let has = to_set(merged, self.schema).with_named_fields(self.schema);
        let mut pruned = merged.clone();
        remove_items(&mut pruned, &last, self.schema);
        let owned =
            Set::union_of(managed.values().map(|o| Cow::Borrowed(&*o.set))).with_named_fields(self.schema);
        let left = to_set(&pruned, self.schema).with_named_fields(self.schema);
        // Keep items that another manager owns...
        let mut pruned = merged.clone();
        remove_items(&mut pruned, &has.difference(&left.union(&owned)), self.schema);
        // ...and everything that the applier never owned.
        let left = to_set(&pruned, self.schema).with_named_fields(self.schema);
        remove_items(merged, &has.difference(&left).intersection(&last), self.schema);
    }
}

/// Returns the changes in `compared` to fields of other managers.
fn conflicts(managed: &Managed, compared: &Comparison, manager: &Manager) -> Conflicts {
    let changed = compared.modified.union(&compared.added);
    let others = managed.iter().filter(|(other, _)| *other != manager);
    let sets = others.map(|(other, owned)| (other.clone(), owned.set.intersection(&changed)));
    sets.filter(|(_, set)| !set.is_empty()).collect()
}

/// Other managers lose the fields that changed or were removed; a manager without fields has no entry.
fn take_over(managed: &mut Managed, compared: &Comparison, writer: &Manager) {
    for (_, owned) in managed.iter_mut().filter(|(other, _)| *other != writer) {
        for lost in [&compared.removed, &compared.modified, &compared.added] {
            owned.remove(lost);
        }
    }
    managed.retain(|_, owned| !owned.set.is_empty());
}

fn is_atomic(schema: &Schema) -> bool {
    match &schema.shape {
        Shape::Object(object) => object.atomic,
        Shape::List(_, kind) => *kind == ListType::Atomic,
        _ => false,
    }
}

fn reaches_into_atomic(set: &Set, schema: &Schema) -> bool {
    set.children.iter().any(|(element, below)| {
        step(schema, element).is_some_and(|schema| is_atomic(schema) || reaches_into_atomic(below, schema))
    })
}

fn cut_at_atomic(set: &Set, schema: &Schema) -> Set {
    let (mut ends, mut children) = (Vec::new(), Vec::new());
    for (element, below) in &set.children {
        match step(schema, element) {
            Some(schema) if is_atomic(schema) => ends.push(element.clone()),
            Some(schema) => {
                let below = cut_at_atomic(below, schema);
                if !below.is_empty() {
                    children.push((element.clone(), below));
                }
            }
            None => children.push((element.clone(), below.clone())),
        }
    }
    // Both lists are sorted: inserting the paths one by one would take quadratic time.
    let ends = Set { members: ends, children: Vec::new() };
    Set { members: set.members.clone(), children }.union(&ends)
}

impl Manager {
    pub fn new(name: &str, operation: ManagerOperation, api_version: &str, subresource: &str) -> Self {
        let name = if name.is_empty() { "unknown" } else { name };
        let api_version = if operation == ManagerOperation::Apply { "" } else { api_version };
        Self {
            name: name.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}
