//! `metadata.managedFields`: entries, read into sets by manager and written back in order.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::set::Set;
use crate::kind::Now;
use crate::object::Object;

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// Who writes: one entry each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    pub name: String,
    pub operation: Operation,
    /// Empty for appliers: they have one entry whatever the version.
    pub api_version: String,
    pub subresource: String,
}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owned {
    pub set: Set,
    pub api_version: String,
    /// RFC 3339; none for an applier whose first configuration changed nothing.
    pub time: Option<String>,
}

impl Owned {
    /// Nothing yet.
    pub fn empty(api_version: &str) -> Self {
        Self { set: Set::default(), api_version: api_version.to_owned(), time: None }
    }
}

/// Every manager of an object.
pub(super) type Managed = BTreeMap<Manager, Owned>;

/// The entries of an object.
///
/// # Errors
/// What makes them unreadable.
pub(super) fn decode(object: &Object) -> Result<Managed, String> {
    entries(object).iter().enumerate().map(|(i, entry)| decode_entry(i, entry)).collect()
}

/// Whether the entries of an object can be read (managedfields.ValidateManagedFields).
///
/// # Errors
/// What makes them unreadable.
pub fn check(object: &Object) -> Result<(), String> {
    decode(object).map(drop)
}

/// The managed fields that an update starts from: the request's own, if it brings readable ones, else the live
/// object's. An empty list or `[{}]` resets them.
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

/// Writes the entries into an object.
pub(super) fn encode(object: &mut Object, managed: &Managed) {
    let mut sorted: Vec<_> = managed.iter().collect();
    sorted.sort_by(|a, b| order(*a, *b));
    let entries: Vec<_> = sorted.into_iter().map(|(manager, owned)| encode_entry(manager, owned)).collect();
    object.set_meta("managedFields", (!entries.is_empty()).then_some(Value::Array(entries)));
}

/// The object without its entries, which may be larger than all the rest.
pub(super) fn without(object: &Object) -> Object {
    let rest = |meta: &Map<String, Value>| {
        let rest = meta.iter().filter(|(field, _)| *field != "managedFields");
        Value::Object(rest.map(|(field, value)| (field.clone(), value.clone())).collect())
    };
    let fields = object.0.iter().map(|(field, value)| match value {
        Value::Object(meta) if field == "metadata" => (field.clone(), rest(meta)),
        value => (field.clone(), value.clone()),
    });
    Object(fields.collect())
}

/// Seconds since the epoch; 0 without a time.
pub(super) fn seconds(owned: &Owned) -> i64 {
    let time = owned.time.as_deref().and_then(|t| t.parse::<Now>().ok());
    time.map(Now::as_second).unwrap_or_default()
}

/// The time of an entry written now.
pub(super) fn stamp(now: Now) -> String {
    let whole = Now::from_second(now.as_second()).unwrap_or(now);
    whole.to_string()
}

pub(super) fn entries(object: &Object) -> &[Value] {
    let list = object.meta().and_then(|m| m.get("managedFields")).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// By operation, time, manager, apiVersion, subresource.
fn order(a: (&Manager, &Owned), b: (&Manager, &Owned)) -> Ordering {
    let by_operation = a.0.operation.cmp(&b.0.operation);
    let by_time = || seconds(a.1).cmp(&seconds(b.1));
    let by_name = || a.0.name.cmp(&b.0.name);
    let by_version = || a.1.api_version.cmp(&b.1.api_version);
    let by_subresource = || a.0.subresource.cmp(&b.0.subresource);
    by_operation.then_with(by_time).then_with(by_name).then_with(by_version).then_with(by_subresource)
}

fn is_reset(object: &Object) -> bool {
    let list = object.meta().and_then(|m| m.get("managedFields")).and_then(Value::as_array);
    match list.map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(only)]) => only.values().all(|v| v.is_null() || v.as_str() == Some("")),
        _ => false,
    }
}

fn decode_entry(index: usize, entry: &Value) -> Result<(Manager, Owned), String> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion").to_owned();
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {index}")),
    }
    let manager = Manager {
        name: text("manager").to_owned(),
        operation,
        api_version: if operation == Operation::Apply { String::new() } else { api_version.clone() },
        subresource: text("subresource").to_owned(),
    };
    let set = match entry.get("fieldsV1") {
        None | Some(Value::Null) => Set::default(),
        Some(fields) => Set::from_value(fields).map_err(|e| format!("error decoding set: {e}"))?,
    };
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Ok((manager, Owned { set, api_version, time }))
}

fn encode_entry(manager: &Manager, owned: &Owned) -> Value {
    let operation = match manager.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    let mut entry = Map::new();
    let mut put = |field: &str, value: &str| {
        if !value.is_empty() {
            entry.insert(field.to_owned(), Value::from(value));
        }
    };
    put("manager", &manager.name);
    put("operation", operation);
    put("apiVersion", &owned.api_version);
    put("time", owned.time.as_deref().unwrap_or_default());
    put("fieldsType", "FieldsV1");
    put("subresource", &manager.subresource);
    entry.insert("fieldsV1".to_owned(), owned.set.to_value());
    Value::Object(entry)
}
