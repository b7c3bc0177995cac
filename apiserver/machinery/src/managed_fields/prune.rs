//! Removes what an applier applied last time and does not apply any more (structured-merge-diff merge/update.go,
//! `prune`).

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::managed::{Managed, Manager, Owned};
use super::set::Set;
use super::typed::{remove_items, to_set};
use super::versioned::ObjectVersions;
use crate::error::ApiError;
use crate::object::Object;
use crate::schema::Schema;

impl ObjectVersions<'_> {
    /// Returns `merged` without the fields that the applier owned (`last`) and no longer applies, except those that
    /// another manager owns. They are looked for in the version in which they were applied.
    ///
    /// # Errors
    /// 500 if the object cannot be converted to a version in which it has fields with an owner.
    pub fn prune(
        &self,
        merged: Object,
        managed: &Managed,
        manager: &Manager,
        last: &Owned,
    ) -> Result<Object, ApiError> {
        let applied = |owned: &Owned| {
            owned.api_version == last.api_version && last.set.difference(&owned.set).is_empty()
        };
        let kept = last.set.is_empty() || managed.get(manager).is_some_and(applied);
        let version = &*last.api_version;
        let Some(schema) = self.schema(version).filter(|_| !kept) else { return Ok(merged) };
        let mut merged = self.convert(Cow::Owned(merged), self.api_version, version)?.into_owned();
        let last = last.set.with_named_fields(schema);
        let has = named(&merged, schema);
        let mut pruned = merged.clone();
        remove_items(&mut pruned, &last, schema);
        // Keep items that another manager owns...
        let pruned = self.add_back_owned(&merged, &has, pruned, version, managed)?;
        // ...and everything that the applier never owned.
        let left = named(&pruned, schema);
        remove_items(&mut merged, &has.difference(&left).intersection(&last), schema);
        self.convert(Cow::Owned(merged), version, self.api_version).map(Cow::into_owned)
    }

    /// Returns `pruned` with the items of `merged`, which are `has`, that a manager owns. All three are in `version`.
    fn add_back_owned(
        &self,
        merged: &Object,
        has: &Set,
        pruned: Object,
        version: &str,
        managed: &Managed,
    ) -> Result<Object, ApiError> {
        let versions: BTreeSet<&str> = managed.values().map(|owned| &*owned.api_version).collect();
        // The version of the objects comes first: what it adds back may be needed to convert them.
        let others = versions.iter().copied().filter(|other| *other != version);
        let order = versions.get(version).copied().into_iter().chain(others);
        let (mut pruned, mut at) = (Cow::Owned(pruned), version);
        for next in order {
            let Some(schema) = self.schema(next) else { continue };
            let owners = managed.values().filter(|owned| owned.api_version == next);
            let owned = Set::union_of(owners.map(|owned| Cow::Borrowed(&*owned.set)));
            let owned = owned.with_named_fields(schema);
            let left = named(&*self.convert(pruned, at, next)?, schema).union(&owned);
            let mut kept = self.convert(Cow::Borrowed(merged), version, next)?.into_owned();
            let lost =
                if next == version { has.difference(&left) } else { named(&kept, schema).difference(&left) };
            remove_items(&mut kept, &lost, schema);
            (pruned, at) = (Cow::Owned(kept), next);
        }
        self.convert(pruned, at, version).map(Cow::into_owned)
    }
}

fn named(object: &Object, schema: &Schema) -> Set {
    to_set(object, schema).with_named_fields(schema)
}
