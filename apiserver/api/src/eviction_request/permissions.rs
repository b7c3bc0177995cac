//! Who may write which part of a status: the permissions that a write needs beside the one on `evictionrequests/status`.
//! Pure.
//!
//! Each is the write's own verb (update or patch) on a subresource that is asked about and never served, after
//! kube-apiserver's for ResourceClaims (pkg/registry/resource/utils.go, AuthorizedForBinding and
//! AuthorizedForDeviceStatus):
//!
//! | what changes | permission |
//! |---|---|
//! | the entry of interceptor N | `interceptor` of the name N |
//! | a condition of another type than Evicted and Canceled | `interceptor` of the active one's name; `assignment` while none is active |
//! | completionTime of the last interceptor, after whom nobody comes | `interceptor` of its name and `assignment` |
//! | everything else, such as entries that come or go | `assignment` |
//!
//! `interceptor` is asked about in the request's namespace, and in the whole cluster for names under k8s.io, which are no
//! tenant's.
//!
//! A field that is added to the status needs `assignment` until it is named here.

use std::collections::BTreeMap;

use drydock_machinery::Object;
use drydock_machinery::field::Path;
use drydock_machinery::managed_fields::{PathElement, newly_applied};
use serde_json::{Map, Value};

use super::types::{CANCELED, EVICTED};

/// Subresource of the permission to say whose turn it is and how a request ends.
pub const ASSIGNMENT: &str = "assignment";
/// Subresource of the permission to report as an interceptor.
pub const INTERCEPTOR: &str = "interceptor";

/// A permission, as [`ASSIGNMENT`] and [`INTERCEPTOR`] name its subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission<'a> {
    /// In the whole cluster and without a name.
    Assignment,
    /// In the request's namespace, or in the whole cluster for a name under k8s.io; the resource name is that of the
    /// interceptor.
    Interceptor(&'a str),
}

/// The permissions that a write needs, each with the first field that it is needed for.
pub type Needed<'a> = BTreeMap<Permission<'a>, Path>;

/// What a write needs that makes `new` of `old`, for the status that it changes and for the fields of the status that
/// appliers come to own by it. There are never more than one for each interceptor of `old`, and one for the assigner.
pub fn needed<'a>(new: &Object, old: &'a Object) -> Needed<'a> {
    let mut write = Write { stored: Stored::of(old), needed: Needed::new() };
    write.changes(status(new), status(old));
    write.ownership(new, old);
    write.needed
}

const STATUS: &str = "status";
const INTERCEPTORS: &str = "interceptors";
const CONDITIONS: &str = "conditions";
const COMPLETION_TIME: &str = "completionTime";

/// A write, as far as it has been looked at.
struct Write<'a> {
    stored: Stored<'a>,
    needed: Needed<'a>,
}

/// Whom the stored status names.
struct Stored<'a> {
    /// The interceptors that have an entry.
    interceptors: Vec<&'a str>,
    /// The only active interceptor.
    active: Option<&'a str>,
    /// The last interceptor to have a turn.
    last: Option<&'a str>,
}

impl<'a> Stored<'a> {
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

    /// Whose the entry of an interceptor is. One that is not there yet is for the assigner to make.
    fn of_entry(&self, name: &str) -> Permission<'a> {
        let known = self.interceptors.iter().find(|known| **known == name);
        known.map_or(Permission::Assignment, |known| Permission::Interceptor(known))
    }

    /// Whose a condition is.
    fn of_condition(&self, type_: &str) -> Permission<'a> {
        let is_end = [CANCELED, EVICTED].contains(&type_);
        let active = self.active.filter(|_| !is_end);
        active.map_or(Permission::Assignment, Permission::Interceptor)
    }
}

impl<'a> Write<'a> {
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

    /// Judges the items of a list that differ, by their keys; `None` if that does not tell all that is different.
    fn items(
        &mut self,
        new: &Value,
        old: &Value,
        key: &str,
        path: Path,
        judge: fn(&mut Self, &str, [&Value; 2], Path),
    ) -> Option<()> {
        let (new, old) = (items_of(new, key)?, items_of(old, key)?);
        // Most writes change what is in items and nothing else.
        if new.iter().map(|(key, _)| key).eq(old.iter().map(|(key, _)| key)) {
            let pairs = new.iter().zip(&old).filter(|((_, new), (_, old))| !is_same(new, old));
            pairs.for_each(|((key, new), (_, old))| judge(self, key, [new, old], path.key(key)));
            return Some(());
        }
        let (new, old) = (Items::of(new)?, Items::of(old)?);
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
            // Managed fields that a client makes up may name anything, at any length.
            let is_known = status(new).get(field).is_some();
            self.need(whose, || if is_known { Path::new(STATUS).child(field) } else { Path::new(STATUS) });
        });
    }
}

/// The key of the item that a path goes to or through.
fn key_of(path: &[PathElement]) -> Option<&str> {
    match path {
        [PathElement::Key(key), ..] => key.first()?.1.as_str(),
        _ => None,
    }
}

/// The items of a list, each with the key that tells it apart; `None` if one has none.
fn items_of<'v>(list: &'v Value, key: &str) -> Option<Vec<(&'v str, &'v Value)>> {
    let list = match list {
        Value::Null => &[][..],
        list => list.as_array()?,
    };
    list.iter().map(|item| Some((item.get(key)?.as_str()?, item))).collect()
}

/// The same, to be looked up.
struct Items<'v> {
    keys: Vec<&'v str>,
    by_key: BTreeMap<&'v str, &'v Value>,
}

impl<'v> Items<'v> {
    /// `None` if two have the same key.
    fn of(items: Vec<(&'v str, &'v Value)>) -> Option<Self> {
        let keys: Vec<_> = items.iter().map(|(key, _)| *key).collect();
        let by_key: BTreeMap<_, _> = items.into_iter().collect();
        (by_key.len() == keys.len()).then_some(Self { keys, by_key })
    }

    /// Null if there is no such item.
    fn get(&self, key: &str) -> &Value {
        self.by_key.get(key).copied().unwrap_or(&Value::Null)
    }
}

fn status(object: &Object) -> &Value {
    object.0.get(STATUS).unwrap_or(&Value::Null)
}

/// Each field that one of them has, with its value in both; null where it is absent.
fn fields<'v>(new: &'v Value, old: &'v Value) -> impl Iterator<Item = (&'v str, &'v Value, &'v Value)> {
    let names = |value: &'v Value| value.as_object().into_iter().flat_map(Map::keys);
    let gone = names(old).filter(|field| new.get(field.as_str()).is_none());
    let of = |object: &'v Value, field: &str| object.get(field).unwrap_or(&Value::Null);
    names(new).chain(gone).map(move |field| (field.as_str(), of(new, field), of(old, field)))
}

/// Whether two values say the same: a field that is zero says what an absent one does.
fn is_same(a: &Value, b: &Value) -> bool {
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
