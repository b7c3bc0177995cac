//! An object in the versions of the entries of its managed fields: each entry has its paths in a version of its own
//! (k8s.io/apimachinery pkg/util/managedfields/internal/versionconverter.go).

use std::borrow::Cow;

use super::conflict::Conflicts;
use super::managed::{Managed, Manager};
use super::set::Set;
use super::typed::{Comparison, compare_without};
use crate::decode;
use crate::error::ApiError;
use crate::object::Object;
use crate::schema::Schema;
use crate::versions::{ConversionError, Versions};

/// The version of a request, and those into which its object can be converted.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectVersions<'a> {
    /// The schema of the version of the request.
    pub schema: &'a Schema,
    /// The version of the request: `group/version`
    pub api_version: &'a str,
    /// All versions of the kind; `None` if it has only this one.
    pub all: Option<&'a Versions>,
}

/// The differences between two states of an object: in the version of the request, and in the other versions that
/// entries have.
pub(super) struct Differences {
    pub own: Comparison,
    others: Vec<(String, Comparison)>,
}

impl<'a> ObjectVersions<'a> {
    /// The schema of a version; `None` if the kind is not served in it.
    pub fn schema(&self, api_version: &str) -> Option<&'a Schema> {
        if api_version == self.api_version {
            return Some(self.schema);
        }
        self.all?.kind(api_version).map(|kind| kind.schema())
    }

    /// Converts an object as a client of the other version would see it: without nulls, and with the fields that are
    /// always written.
    ///
    /// # Errors
    /// 500 if the object does not fit the schema of either version, or cannot be converted.
    pub fn convert<'o>(
        &self,
        object: Cow<'o, Object>,
        from: &str,
        to: &str,
    ) -> Result<Cow<'o, Object>, ApiError> {
        if from == to {
            return Ok(object);
        }
        let object = self.normalized(object.into_owned(), from)?;
        let unknown = || ConversionError::new(format!("the kind is not served in {to}"));
        let converted = self.all.ok_or_else(unknown).and_then(|all| all.convert(object, from, to));
        let converted = converted.map_err(ApiError::internal)?;
        self.normalized(converted, to).map(Cow::Owned)
    }

    fn normalized(&self, object: Object, api_version: &str) -> Result<Object, ApiError> {
        let Some(kind) = self.all.and_then(|all| all.kind(api_version)) else { return Ok(object) };
        let read = decode::from_unstructured(object.into_value(), kind.names(), kind.schema());
        let failed = |why| {
            let what = format!("failed to convert the object to {api_version}: {why}");
            ApiError::new(500, "", what, None)
        };
        read.map(|(object, _)| object).map_err(|refusal| refusal.into_error(failed))
    }

    /// Compares `old` and `new` in the version of the request and in those of the managers, except for `writer`'s.
    /// Leaves out the fields at and below `reset`.
    ///
    /// # Errors
    /// 500 if the objects cannot be converted.
    pub fn differences(
        &self,
        old: &Object,
        new: &Object,
        reset: &Set,
        managed: &Managed,
        writer: &Manager,
    ) -> Result<Differences, ApiError> {
        let own = compare_without(old, new, self.schema, reset);
        let mut others: Vec<(String, Comparison)> = Vec::new();
        for (_, owned) in managed.iter().filter(|(manager, _)| *manager != writer) {
            let version = &owned.api_version;
            if version == self.api_version || others.iter().any(|(known, _)| known == version) {
                continue;
            }
            let Some(schema) = self.schema(version) else { continue };
            let [old, new] =
                [old, new].map(|state| self.convert(Cow::Borrowed(state), self.api_version, version));
            others.push((version.clone(), compare_without(&*old?, &*new?, schema, reset)));
        }
        Ok(Differences { own, others })
    }
}

impl Differences {
    /// The differences in a version that was compared.
    fn in_version(&self, api_version: &str) -> &Comparison {
        let other = self.others.iter().find(|(version, _)| version == api_version);
        other.map_or(&self.own, |(_, compared)| compared)
    }

    /// Returns the changes to fields of other managers than `manager`, each in the version of its owner.
    pub fn conflicts(&self, managed: &Managed, manager: &Manager) -> Conflicts {
        let changed = |compared: &Comparison| compared.modified.union(&compared.added);
        let own = changed(&self.own);
        let others: Vec<_> =
            self.others.iter().map(|(version, compared)| (version, changed(compared))).collect();
        let in_version = |version: &str| {
            let other = others.iter().find(|(known, _)| *known == version);
            other.map_or(&own, |(_, changed)| changed)
        };
        let managers = managed.iter().filter(|(other, _)| *other != manager);
        let sets = managers
            .map(|(other, owned)| (other.clone(), owned.set.intersection(in_version(&owned.api_version))));
        sets.filter(|(_, set)| !set.is_empty()).collect()
    }

    /// Other managers lose the fields that changed or were removed; a manager without fields has no entry.
    pub fn take_over(&self, managed: &mut Managed, writer: &Manager) {
        for (_, owned) in managed.iter_mut().filter(|(other, _)| *other != writer) {
            let compared = self.in_version(&owned.api_version);
            for lost in [&compared.removed, &compared.modified, &compared.added] {
                owned.remove(lost);
            }
        }
        managed.retain(|_, owned| !owned.set.is_empty());
    }
}
