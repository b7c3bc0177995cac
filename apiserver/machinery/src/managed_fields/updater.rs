//! Updates the ownership of fields after a write (structured-merge-diff merge.Updater).

use super::conflict::Conflicts;
use super::managed::{Managed, Manager, ManagerOperation, Owned};
use super::set::{Set, step};
use super::typed::{Comparison, merge, to_set};
use super::versioned::ObjectVersions;
use crate::error::ApiError;
use crate::object::Object;
use crate::schema::{ListType, Schema, Shape};

/// The updater of one kind in the version of a request.
pub(super) struct FieldsUpdater<'a> {
    pub versions: ObjectVersions<'a>,
    /// Fields that this endpoint resets. No manager can become their owner through it.
    pub reset: &'a Set,
}

/// Why an apply failed.
pub(super) enum Refusal {
    /// Other managers own fields that it would change.
    Conflicts(Conflicts),
    /// An object cannot be converted to the version of an entry.
    Failed(ApiError),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

impl FieldsUpdater<'_> {
    /// Records that `writer` replaced `old` by `new`. Other managers lose the fields that differ in the version of
    /// their entry. Returns the differences.
    ///
    /// # Errors
    /// 500 if an object cannot be converted to the version of an entry.
    pub fn update(
        &self,
        old: &Object,
        new: &Object,
        managed: &mut Managed,
        writer: &Manager,
    ) -> Result<Comparison, ApiError> {
        self.reconcile(managed);
        let differences = self.versions.differences(old, new, self.reset, managed, writer)?;
        differences.take_over(managed, writer);
        Ok(differences.own)
    }

    /// Merges `config` into `live` and returns the result. `manager` owns the fields of the configuration; those that
    /// it owned before and no other manager owns are removed. Fields that become empty by that become null.
    ///
    /// # Errors
    /// The conflicts, unless `force`; 500 if an object cannot be converted to the version of an entry.
    pub fn apply(
        &self,
        live: &Object,
        config: Object,
        managed: &mut Managed,
        manager: &Manager,
        force: bool,
    ) -> Result<Object, Refusal> {
        self.reconcile(managed);
        let ObjectVersions { schema, api_version, .. } = self.versions;
        let set = to_set(&config, schema).recursive_difference(self.reset);
        let mut new = live.clone();
        merge(&mut new, config, schema);
        let last = managed.remove(manager);
        let mut owned = Owned::new(set, api_version);
        if let Some(last) = &last {
            owned.time.clone_from(&last.time);
        }
        managed.insert(manager.clone(), owned);
        if let Some(last) = last {
            new = self.versions.prune(new, managed, manager, &last)?;
        }
        let differences = self.versions.differences(live, &new, self.reset, managed, manager)?;
        if !force {
            let conflicts = differences.conflicts(managed, manager);
            if !conflicts.is_empty() {
                return Err(Refusal::Conflicts(conflicts));
            }
        }
        differences.take_over(managed, manager);
        Ok(new)
    }

    /// Drops entries of versions that are not served, and shortens paths into values that have become atomic.
    fn reconcile(&self, managed: &mut Managed) {
        managed.retain(|_, owned| {
            let Some(schema) = self.versions.schema(&owned.api_version) else { return false };
            if reaches_into_atomic(&owned.set, schema) {
                owned.replace(cut_at_atomic(&owned.set, schema));
            }
            true
        });
    }
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
