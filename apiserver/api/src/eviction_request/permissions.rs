//! Who may write which part of a status: the permissions that a write needs in addition to that on
//! `evictionrequests/status`. Does no I/O.
//!
//! Each permission is the verb of the write (update or patch) on a subresource that exists for authorization only and
//! is not served, as for ResourceClaims in kube-apiserver (pkg/registry/resource/utils.go, AuthorizedForBinding and
//! AuthorizedForDeviceStatus):
//!
//! | what changes | permission |
//! |---|---|
//! | the entry of interceptor N | `interceptor` of the name N |
//! | a condition of another type than Evicted and Canceled | `interceptor` of the active one's name; `assignment` if none is active |
//! | completionTime of the interceptor that has the last turn | `interceptor` of its name and `assignment` |
//! | everything else, for example added and removed entries | `assignment` |
//!
//! `interceptor` is authorized in the namespace of the request, and for names under k8s.io, which do not belong to a
//! tenant, in the whole cluster.
//!
//! A new field of the status needs `assignment` until this module handles it.

use std::collections::BTreeMap;

use drydock_machinery::Object;
use drydock_machinery::field::Path;
use drydock_machinery::managed_fields::{PathElement, newly_applied};
use serde_json::{Map, Value};

use super::conditions::{CANCELED, EVICTED};

/// Subresource of the permission to choose the active interceptor and to end a request.
pub const ASSIGNMENT: &str = "assignment";
/// Subresource of the permission to report as an interceptor.
pub const INTERCEPTOR: &str = "interceptor";

/// A permission on the subresource [`ASSIGNMENT`] or [`INTERCEPTOR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission<'a> {
    /// Cluster-wide, without a resource name.
    Assignment,
    /// In the namespace of the request, or cluster-wide for a name under k8s.io. The resource name is the
    /// interceptor's name.
    Interceptor(&'a str),
}

/// The permissions that a write needs, each with the first field that requires it.
pub type NeededPermissions<'a> = BTreeMap<Permission<'a>, Path>;

/// Returns the permissions for a write that changes `old` to `new`: for the fields of the status that it changes, and
/// for those that an applier newly owns. At most one for each interceptor of `old`, and
/// [`Permission::Assignment`].
pub fn needed<'a>(new: &Object, old: &'a Object) -> NeededPermissions<'a> {
    let mut write = WriteCheck { stored: StoredInterceptors::of(old), needed: NeededPermissions::new() };
    write.changes(status(new), status(old));
    write.ownership(new, old);
    write.needed
}

const STATUS: &str = "status";
pub(super) const INTERCEPTORS: &str = "interceptors";
const CONDITIONS: &str = "conditions";
const COMPLETION_TIME: &str = "completionTime";

/// The write, with the permissions that have been found so far.
struct WriteCheck<'a> {
    stored: StoredInterceptors<'a>,
    needed: NeededPermissions<'a>,
}

/// The interceptors in the stored status.
struct StoredInterceptors<'a> {
    /// The interceptors that have an entry.
    interceptors: Vec<&'a str>,
    /// The active interceptor, if there is exactly one.
    active: Option<&'a str>,
    /// The interceptor that has the last turn.
    last: Option<&'a str>,
}

impl<'a> StoredInterceptors<'a> {
    fn of(object: &'a Object) -> Self {
        let list = |field| status(object).get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let name = |entry: &'a Value| entry.get("name").and_then(Value::as_str);
        let active = match list("activeInterceptors") {
            [only] => only.as_str(),
            _ => None,
        };
        let interceptors = list(INTERCEPTORS).iter().filter_map(name).collect();
        Self { interceptors, active, last: list("targetInterceptors").last().and_then(name) }
    }

    /// The permission for the entry of an interceptor. Creating an entry needs [`Permission::Assignment`].
    fn of_entry(&self, name: &str) -> Permission<'a> {
        let known = self.interceptors.iter().find(|known| **known == name);
        known.map_or(Permission::Assignment, |known| Permission::Interceptor(known))
    }

    /// The permission for a condition.
    fn of_condition(&self, type_: &str) -> Permission<'a> {
        let is_end = [CANCELED, EVICTED].contains(&type_);
        let active = self.active.filter(|_| !is_end);
        active.map_or(Permission::Assignment, Permission::Interceptor)
    }
}

impl<'a> WriteCheck<'a> {
    fn need(&mut self, permission: Permission<'a>, field: impl FnOnce() -> Path) {
        self.needed.entry(permission).or_insert_with(field);
    }

    fn changes(&mut self, new: &Value, old: &Value) {
        for (field, new, old) in fields(new, old).filter(|(_, new, old)| !is_same(new, old)) {
            let path = || Path::new(STATUS).child(field);
            let attributed = match field {
                INTERCEPTORS => self.items(new, old, "name", path(), Self::entry),
                CONDITIONS => self.items(new, old, "type", path(), Self::condition),
                _ => None,
            };
            if attributed.is_none() {
                self.need(Permission::Assignment, path);
            }
        }
    }

    /// Calls `judge` for each item that differs, by its key. Returns `None` if that is not the whole difference: an
    /// item has no key or a duplicate one, or the order changes.
    fn items(
        &mut self,
        new: &Value,
        old: &Value,
        key: &str,
        path: Path,
        judge: fn(&mut Self, &str, [&Value; 2], Path),
    ) -> Option<()> {
        let (new, old) = (items_of(new, key)?, items_of(old, key)?);
        // Most writes change only the contents of items.
        if new.iter().map(|(key, _)| key).eq(old.iter().map(|(key, _)| key)) {
            let pairs = new.iter().zip(&old).filter(|((_, new), (_, old))| !is_same(new, old));
            pairs.for_each(|((key, new), (_, old))| judge(self, key, [new, old], path.key(key)));
            return Some(());
        }
        let (new, old) = (ItemsByKey::of(new)?, ItemsByKey::of(old)?);
        let added = new.keys.iter().filter(|key| !old.by_key.contains_key(*key));
        for key in old.keys.iter().chain(added) {
            let [new, old] = [&new, &old].map(|items| items.get(key));
            if !is_same(new, old) {
                judge(self, key, [new, old], path.key(key));
            }
        }
        let kept = new.keys.iter().filter(|key| old.by_key.contains_key(*key));
        kept.eq(old.keys.iter().filter(|key| new.by_key.contains_key(*key))).then_some(())
    }

    fn entry(&mut self, name: &str, [new, old]: [&Value; 2], path: Path) {
        let stays = !new.is_null() && !old.is_null();
        let whose = if stays { self.stored.of_entry(name) } else { Permission::Assignment };
        let [ended, ended_before] =
            [new, old].map(|entry| entry.get(COMPLETION_TIME).unwrap_or(&Value::Null));
        if self.stored.last == Some(name) && !is_same(ended, ended_before) {
            self.need(Permission::Assignment, || path.child(COMPLETION_TIME));
        }
        self.need(whose, || path);
    }

    fn condition(&mut self, type_: &str, _: [&Value; 2], path: Path) {
        self.need(self.stored.of_condition(type_), || path);
    }

    fn ownership(&mut self, new: &Object, old: &Object) {
        newly_applied(new, old, STATUS).for_each(&mut |path| {
            let (field, below) = match path {
                [_, PathElement::Field(field), below @ ..] => (field.as_ref(), below),
                _ => ("", path),
            };
            let whose = match (field, key_of(below)) {
                (INTERCEPTORS, Some(name)) => self.stored.of_entry(name),
                (CONDITIONS, Some(type_)) => self.stored.of_condition(type_),
                _ => Permission::Assignment,
            };
            // A client may send managed fields with arbitrary names of any length.
            let is_known = status(new).get(field).is_some();
            self.need(whose, || if is_known { Path::new(STATUS).child(field) } else { Path::new(STATUS) });
        });
    }
}

/// The key of the list item that a path refers to or leads through.
fn key_of(path: &[PathElement]) -> Option<&str> {
    match path {
        [PathElement::Key(key), ..] => key.first()?.1.as_str(),
        _ => None,
    }
}

/// The items of a list with their keys; `None` if an item has no key.
fn items_of<'v>(list: &'v Value, key: &str) -> Option<Vec<(&'v str, &'v Value)>> {
    let list = match list {
        Value::Null => &[][..],
        list => list.as_array()?,
    };
    list.iter().map(|item| Some((item.get(key)?.as_str()?, item))).collect()
}

/// Items that can be looked up by key.
struct ItemsByKey<'v> {
    keys: Vec<&'v str>,
    by_key: BTreeMap<&'v str, &'v Value>,
}

impl<'v> ItemsByKey<'v> {
    /// Returns `None` if two items have the same key.
    fn of(items: Vec<(&'v str, &'v Value)>) -> Option<Self> {
        let keys: Vec<_> = items.iter().map(|(key, _)| *key).collect();
        let by_key: BTreeMap<_, _> = items.into_iter().collect();
        (by_key.len() == keys.len()).then_some(Self { keys, by_key })
    }

    /// Returns null if there is no such item.
    fn get(&self, key: &str) -> &Value {
        self.by_key.get(key).copied().unwrap_or(&Value::Null)
    }
}

/// The status; null for an object without one.
pub(super) fn status(object: &Object) -> &Value {
    object.0.get(STATUS).unwrap_or(&Value::Null)
}

/// All fields of both objects, with both values; null for an absent field.
pub(super) fn fields<'v>(
    new: &'v Value,
    old: &'v Value,
) -> impl Iterator<Item = (&'v str, &'v Value, &'v Value)> {
    let names = |value: &'v Value| value.as_object().into_iter().flat_map(Map::keys);
    let gone = names(old).filter(|field| new.get(field.as_str()).is_none());
    let of = |object: &'v Value, field: &str| object.get(field).unwrap_or(&Value::Null);
    names(new).chain(gone).map(move |field| (field.as_str(), of(new, field), of(old, field)))
}

/// Whether two values mean the same: a field with the zero value means the same as an absent field.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    a == b
        || match (a, b) {
            (Value::Object(_), Value::Object(_)) => fields(a, b).all(|(_, a, b)| is_same(a, b)),
            _ => is_zero(a) && is_zero(b),
        }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
#[path = "permissions_tests.rs"]
mod tests;
