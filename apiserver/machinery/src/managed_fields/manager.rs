//! The field manager of one endpoint: computes the object and its managed fields after an update or an apply
//! (k8s.io/apimachinery/pkg/util/managedfields NewDefaultFieldManager, with the order of its managers).

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::Value;

use super::conflict::conflict_error;
use super::last_applied;
use super::managed::{self, Managed, Manager, ManagerOperation, Owned};
use super::path::PathElement;
use super::set::Set;
use super::typed::validate;
use super::updater::{FieldsUpdater, Refusal};
use super::versioned::ObjectVersions;
use crate::error::ApiError;
use crate::kind::Now;
use crate::object::Object;
use crate::schema::Schema;
use crate::versions::Versions;

/// Maximum number of Update entries of an object; older ones are merged.
const MAX_UPDATE_MANAGERS: usize = 10;
/// The manager of the fields of merged older updates.
const OLD_UPDATES: &str = "ancient-changes";
/// The manager of the fields that existed before the first apply to an object without managed fields.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The field manager of a resource or one of its subresources.
#[derive(Clone, Debug)]
pub struct FieldManager<'a> {
    /// The kind's schema.
    pub schema: &'a Schema,
    /// `group/version`
    pub api_version: &'a str,
    /// CamelCase kind.
    pub kind: &'a str,
    /// Empty for the main resource.
    pub subresource: &'a str,
    /// Fields that the endpoint ignores (Kubernetes: GetResetFields): `status` on the main resource, `spec` on the
    /// status, and on both those that only the server writes.
    pub reset: &'a Set,
    /// All versions of the kind; `None` if it has only this one.
    pub versions: Option<&'a Versions>,
}

impl FieldManager<'_> {
    /// Tracks a create (`live` is `None`) or an update. Returns `new` with its managed fields, which take the
    /// request's own `metadata.managedFields` into account. If the object cannot be converted to the version of one
    /// of their entries, it has none (managedfields/internal/fieldmanager.go, UpdateNoErrors).
    pub fn update(&self, live: Option<&Object>, mut new: Object, manager: &str, now: Now) -> Object {
        let mut managed = managed::of_update(live, &new, !self.subresource.is_empty());
        new.remove_managed_fields();
        // An object whose managed fields were never tracked, or were reset, has none until the first apply.
        let untracked = managed.is_empty() && live.is_some_and(|live| !live.uid().is_empty());
        if !untracked {
            let empty = Object::default();
            if self.track(live.unwrap_or(&empty), &new, &mut managed, manager, now).is_err() {
                return new;
            }
            cap(&mut managed);
        }
        managed::encode(&mut new, &managed);
        new
    }

    /// Server-side apply: merges `patch` into `live`, which has only `apiVersion` and `kind` for a create. Returns
    /// `None` if neither the object nor the ownership changes. The result has yet to be restored (it has nulls where
    /// the configuration has them, and for fields that became empty), defaulted and validated.
    ///
    /// # Errors
    /// 400 if the patch is of another kind or has managed fields; 409 with the conflicts unless `force`; 500 if it
    /// does not fit the schema, or cannot be converted to the version of an entry of the managed fields.
    pub fn apply(
        &self,
        live: &Object,
        patch: Object,
        manager: &str,
        force: bool,
        now: Now,
    ) -> Result<Option<Object>, ApiError> {
        self.check(&patch)?;
        let mut managed =
            managed::decode(live).map_err(|e| failed(format!("failed to decode managed fields: {e}")))?;
        let mut old = live.clone();
        old.remove_managed_fields();
        if managed.is_empty() {
            self.track(&Object::default(), &old, &mut managed, BEFORE_FIRST_APPLY, now)?;
        }
        let who = Manager::new(manager, ManagerOperation::Apply, "", self.subresource);
        let config = (manager == last_applied::MANAGER).then(|| last_applied::text(&patch));
        let mut new = self.merge(&old, patch, &mut managed, &who, force)?;
        strip(&mut managed, &who);
        let changed = new != old;
        last_applied::refresh(&mut new, config);
        if changed {
            if let Some(owned) = managed.get_mut(&who) {
                owned.time = managed::stamp(now);
            }
        } else if new == old && managed::decode(live).is_ok_and(|before| same_owners(&managed, &before)) {
            return Ok(None);
        }
        managed::encode(&mut new, &managed);
        Ok(Some(new))
    }

    /// Merges the patch. kubectl may take over the fields that its client-side apply owned.
    fn merge(
        &self,
        old: &Object,
        patch: Object,
        managed: &mut Managed,
        who: &Manager,
        force: bool,
    ) -> Result<Object, ApiError> {
        let updater = self.updater();
        let refused = |refusal| match refusal {
            Refusal::Conflicts(all) => conflict_error(&all),
            Refusal::Failed(error) => error,
        };
        if force || who.name != last_applied::MANAGER {
            return updater.apply(old, patch, managed, who, force).map_err(refused);
        }
        let mut tried = managed.clone();
        match updater.apply(old, patch.clone(), &mut tried, who, false) {
            Ok(new) => {
                *managed = tried;
                return Ok(new);
            }
            Err(Refusal::Conflicts(all)) => {
                let left = last_applied::remaining(all, old, self.schema, self.api_version);
                if !left.is_empty() {
                    return Err(conflict_error(&left));
                }
            }
            Err(Refusal::Failed(error)) => return Err(error),
        }
        updater.apply(old, patch, managed, who, true).map_err(refused)
    }

    /// Tracks `new` as an update by `manager`.
    fn track(
        &self,
        live: &Object,
        new: &Object,
        managed: &mut Managed,
        manager: &str,
        now: Now,
    ) -> Result<(), ApiError> {
        let who = Manager::new(manager, ManagerOperation::Update, self.api_version, self.subresource);
        let compared = self.updater().update(live, new, managed, &who)?;
        let mut owned = managed.remove(&who).unwrap_or_else(|| Owned::empty(self.api_version));
        owned.remove(&compared.removed);
        let mut set = compared.modified.join(compared.added);
        if set.intersects(&STRIPPED_FIELDS) {
            owned.remove(&set.intersection(&STRIPPED_FIELDS));
            set.remove(&STRIPPED_FIELDS);
        }
        // Only a manager that changed something gets a new time.
        if !set.is_empty() {
            owned.add(set);
            owned.time = managed::stamp(now);
        }
        if !owned.set.is_empty() {
            managed.insert(who, owned);
        }
        Ok(())
    }

    fn updater(&self) -> FieldsUpdater<'_> {
        let versions =
            ObjectVersions { schema: self.schema, api_version: self.api_version, all: self.versions };
        FieldsUpdater { versions, reset: self.reset }
    }

    fn check(&self, patch: &Object) -> Result<(), ApiError> {
        let text = |field: &str| patch.0.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let type_ = type_text(api_version, kind);
        if api_version != self.api_version || kind != self.kind {
            return Err(ApiError::bad_request(format!("invalid object type: {type_}")));
        }
        let in_tree = patch.meta().and_then(|meta| meta.get("managedFields"));
        if patch.managed_fields().is_some() || in_tree.is_some_and(Value::is_array) {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        validate(patch, self.schema).map_err(|why| {
            let of = format!("{}/{}; {type_}", patch.namespace(), patch.name());
            failed(format!("failed to create typed patch object ({of}): {why}"))
        })
    }
}

/// Formats a type like Go: the group may be empty, and an invalid version prints as empty.
fn type_text(api_version: &str, kind: &str) -> String {
    match api_version.split('/').count() {
        1 => format!("/{api_version}, Kind={kind}"),
        2 => format!("{api_version}, Kind={kind}"),
        _ => "/, Kind=".to_owned(),
    }
}

/// Fields that managed fields never contain (managedfields/internal stripmeta.go).
static STRIPPED_FIELDS: LazyLock<Set> = LazyLock::new(|| {
    let meta = ["name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation"];
    let meta = meta.into_iter().chain(["managedFields", "resourceVersion"]);
    let mut set = Set::of_fields(&[&["apiVersion"], &["kind"], &["metadata"]]);
    meta.for_each(|name| set.insert(&[PathElement::field("metadata"), PathElement::field(name)]));
    set
});

fn strip(managed: &mut Managed, manager: &Manager) {
    let Some(owned) = managed.get_mut(manager) else { return };
    owned.remove(&STRIPPED_FIELDS);
    if owned.set.is_empty() {
        managed.remove(manager);
    }
}

/// Merges the oldest Update entries into one for each version if there are too many
/// (managedfields/internal/capmanagers.go).
fn cap(managed: &mut Managed) {
    let mut updates: Vec<Manager> =
        managed.keys().filter(|m| m.operation == ManagerOperation::Update).cloned().collect();
    let Some(mut excess) = updates.len().checked_sub(MAX_UPDATE_MANAGERS).filter(|n| *n > 0) else { return };
    updates.sort_by_cached_key(|m| (managed.get(m).map(managed::seconds), m.clone()));
    // The oldest entry of a version becomes the merged one; each further entry that is added to it reduces the number
    // by one.
    let mut groups: Vec<Vec<Manager>> = Vec::new();
    for manager in updates {
        if excess == 0 {
            break;
        }
        match groups.iter_mut().find(|group| group[0].api_version == manager.api_version) {
            Some(group) => {
                group.push(manager);
                excess -= 1;
            }
            None => groups.push(vec![manager]),
        }
    }
    groups.into_iter().filter(|group| group.len() > 1).for_each(|group| merge_updates(managed, group));
}

/// Merges the entries of `group`, the oldest first, which have one version.
fn merge_updates(managed: &mut Managed, group: Vec<Manager>) {
    let version = group[0].api_version.clone();
    let bucket = Manager::new(OLD_UPDATES, ManagerOperation::Update, &version, "");
    let mut oldest = group.into_iter();
    let first = oldest.next().and_then(|m| managed.remove(&m));
    let mut merged = first.unwrap_or_else(|| Owned::empty(&version));
    let mut sets = vec![merged.set.clone()];
    sets.extend(managed.remove(&bucket).map(|old| old.set));
    for owned in oldest.filter_map(|m| managed.remove(&m)) {
        sets.push(owned.set);
        merged.time = owned.time;
    }
    if sets.len() > 1 {
        merged.replace(Set::union_of(sets.iter().map(|set| Cow::Borrowed(&**set))));
    }
    managed.insert(bucket, merged);
}

/// Whether the same managers own the same fields in the same versions; times may differ.
fn same_owners(a: &Managed, b: &Managed) -> bool {
    let is_same = |(a, b): ((&Manager, &Owned), (&Manager, &Owned))| {
        a.0 == b.0 && a.1.api_version == b.1.api_version && a.1.set == b.1.set
    };
    a.len() == b.len() && a.iter().zip(b).all(is_same)
}

/// An error without a Status of its own, as kube-apiserver answers it.
fn failed(message: String) -> ApiError {
    ApiError::new(500, "", message, None)
}
