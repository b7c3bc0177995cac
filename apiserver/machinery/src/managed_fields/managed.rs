//! `metadata.managedFields`: entries, decoded as sets by manager and encoded in order.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::set::Set;
use crate::kind::Now;
use crate::object::fields_v1::OwnedPaths;
use crate::object::{FieldsV1, ManagedFieldsEntry, Object};

/// The operation of a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ManagerOperation {
    Apply,
    Update,
}

/// The identity of a manager: one entry each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    pub name: String,
    pub operation: ManagerOperation,
    /// Empty for appliers, which have one entry for all versions.
    pub api_version: String,
    pub subresource: String,
}

/// The fields that a manager owns.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    pub set: Arc<Set>,
    /// The text that the set was read from, until the set changes.
    text: Option<FieldsV1>,
    pub api_version: String,
    /// RFC 3339; empty for an applier whose first configuration changed nothing.
    pub time: String,
}

impl Owned {
    /// Owns no fields yet.
    pub fn empty(api_version: &str) -> Self {
        Self::new(Set::default(), api_version)
    }

    /// Owns a set of fields; the time is not set yet.
    pub fn new(set: Set, api_version: &str) -> Self {
        Self { set: Arc::new(set), text: None, api_version: api_version.to_owned(), time: String::new() }
    }

    /// Removes paths from the set. Usually it has none of them, and stays shared with other objects.
    pub fn remove(&mut self, lost: &Set) {
        if self.set.intersects(lost) {
            self.text = None;
            Arc::make_mut(&mut self.set).remove(lost);
        }
    }

    /// Adds paths to the set. Usually it has them all.
    pub fn add(&mut self, gained: Set) {
        if !self.set.includes(&gained) {
            let joined = gained.join(Arc::unwrap_or_clone(std::mem::take(&mut self.set)));
            self.replace(joined);
        }
    }

    /// Replaces the set.
    pub fn replace(&mut self, set: Set) {
        self.text = None;
        self.set = Arc::new(set);
    }
}

/// All managers of an object.
pub(super) type Managed = BTreeMap<Manager, Owned>;

/// Decodes the entries of an object.
///
/// # Errors
/// If they cannot be decoded: why.
pub(super) fn decode(object: &Object) -> Result<Managed, String> {
    let Some(entries) = object.managed_fields() else {
        return if object.has_managed_fields() {
            Err("no list of entries".to_owned())
        } else {
            Ok(Managed::new())
        };
    };
    entries.iter().enumerate().map(|(i, entry)| decode_entry(i, entry)).collect()
}

/// Checks that the entries of an object can be decoded (managedfields.ValidateManagedFields).
///
/// # Errors
/// If they cannot be decoded: why.
pub fn check(object: &Object) -> Result<(), String> {
    decode(object).map(drop)
}

/// Returns the managed fields that an update starts from: those in the request if they can be decoded, otherwise
/// those of the live object. An empty list or `[{}]` resets them.
pub(super) fn of_update(live: Option<&Object>, new: &Object, ignore_request: bool) -> Managed {
    let of_live = || live.and_then(|live| decode(live).ok()).unwrap_or_default();
    if ignore_request {
        return of_live();
    }
    if is_reset(new) {
        return Managed::new();
    }
    match decode(new) {
        Ok(managed) if !managed.is_empty() => managed,
        _ => of_live(),
    }
}

/// Encodes the entries into an object.
pub(super) fn encode(object: &mut Object, managed: &Managed) {
    let mut sorted: Vec<_> = managed.iter().collect();
    sorted.sort_by(|a, b| order(*a, *b));
    let entries: Vec<_> = sorted.into_iter().map(|(manager, owned)| encode_entry(manager, owned)).collect();
    object.set_managed_fields(entries);
}

/// Returns the time in seconds since the epoch; 0 without a time.
pub(super) fn seconds(owned: &Owned) -> i64 {
    owned.time.parse::<Now>().map(Now::as_second).unwrap_or_default()
}

/// Returns the time for an entry that is written now.
pub(super) fn stamp(now: Now) -> String {
    let whole = Now::from_second(now.as_second()).unwrap_or(now);
    whole.to_string()
}

/// Orders by operation, time, manager, apiVersion and subresource.
fn order(a: (&Manager, &Owned), b: (&Manager, &Owned)) -> Ordering {
    let by_operation = a.0.operation.cmp(&b.0.operation);
    let by_time = || seconds(a.1).cmp(&seconds(b.1));
    let by_name = || a.0.name.cmp(&b.0.name);
    let by_version = || a.1.api_version.cmp(&b.1.api_version);
    let by_subresource = || a.0.subresource.cmp(&b.0.subresource);
    by_operation.then_with(by_time).then_with(by_name).then_with(by_version).then_with(by_subresource)
}

fn is_reset(object: &Object) -> bool {
    match object.managed_fields() {
        Some([]) => true,
        Some([only]) => *only == ManagedFieldsEntry::default(),
        _ => false,
    }
}

fn decode_entry(index: usize, entry: &ManagedFieldsEntry) -> Result<(Manager, Owned), String> {
    let operation = match entry.operation.as_str() {
        "Apply" => ManagerOperation::Apply,
        "Update" => ManagerOperation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = entry.api_version.clone();
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match entry.fields_type.as_str() {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {index}")),
    }
    let manager = Manager {
        name: entry.manager.clone(),
        operation,
        api_version: if operation == ManagerOperation::Apply { String::new() } else { api_version.clone() },
        subresource: entry.subresource.clone(),
    };
    let mut owned = Owned { time: entry.time.clone(), ..Owned::empty(&api_version) };
    if let Some(fields) = &entry.fields_v1 {
        let OwnedPaths { set, exact } = fields.paths().map_err(|e| format!("error decoding set: {e}"))?;
        owned.set = set;
        owned.text = exact.then(|| fields.clone());
    }
    Ok((manager, owned))
}

fn encode_entry(manager: &Manager, owned: &Owned) -> ManagedFieldsEntry {
    let operation = match manager.operation {
        ManagerOperation::Apply => "Apply",
        ManagerOperation::Update => "Update",
    };
    ManagedFieldsEntry {
        manager: manager.name.clone(),
        operation: operation.to_owned(),
        api_version: owned.api_version.clone(),
        time: owned.time.clone(),
        fields_type: "FieldsV1".to_owned(),
        fields_v1: Some(owned.text.clone().unwrap_or_else(|| owned.set.clone().into())),
        subresource: manager.subresource.clone(),
    }
}

/// Returns `new`, with the managed fields of `old` if the objects differ only in the times of these: such a write is
/// not stored (apiserver handlers/fieldmanager equality.go).
pub fn ignore_timestamps(mut new: Object, old: &Object) -> Object {
    if same_otherwise(&new.0, &old.0) && same_entries(new.managed_fields(), old.managed_fields()) {
        new.share_managed_fields(old);
    }
    new
}

fn same_entries(a: Option<&[ManagedFieldsEntry]>, b: Option<&[ManagedFieldsEntry]>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same_but_for_time(b))
}

fn same_otherwise(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    // Compared from the end, where the status is, because most writes change the status.
    a.len() == b.len() && a.iter().rev().zip(b.iter().rev()).all(|(a, b)| a == b)
}
