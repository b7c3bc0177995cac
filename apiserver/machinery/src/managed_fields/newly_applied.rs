//! The fields that appliers have come to own: an apply takes ownership of fields even if it does not change their
//! values.

use std::collections::HashMap;

use super::path::PathElement;
use super::set::Set;
use crate::object::{FieldsV1, ManagedFieldsEntry, Object};

/// Returns the paths at or below a top-level field that an applier owns in `new` and did not own in `old`. Managed
/// fields that cannot be read own nothing in `old`, and the whole field in `new`.
pub fn newly_applied(new: &Object, old: &Object, field: &'static str) -> Set {
    // Most writes change no applier.
    if appliers(new).eq(appliers(old)) {
        return Set::default();
    }
    let field = PathElement::field(field);
    let before: HashMap<_, _> = appliers(old).collect();
    let mut gained = Set::default();
    for (applier, fields) in appliers(new) {
        let had = before.get(&applier).copied();
        if had == Some(fields) {
            continue;
        }
        let whole = || Set::of(&[std::slice::from_ref(&field)]);
        let has = owned(fields, &field).unwrap_or_else(whole);
        let had = had.and_then(|fields| owned(fields, &field)).unwrap_or_default();
        gained = gained.union(&has.difference(&had));
    }
    gained
}

/// Returns every applier, by name and subresource, with the fields that it owns.
fn appliers(object: &Object) -> impl Iterator<Item = ((&str, &str), &FieldsV1)> {
    let entries = object.managed_fields().unwrap_or_default().iter();
    entries.filter(|entry| entry.operation == "Apply").filter_map(|entry: &ManagedFieldsEntry| {
        Some(((entry.manager.as_str(), entry.subresource.as_str()), entry.fields_v1.as_ref()?))
    })
}

/// Returns the paths at or below `field`; `None` if the fields cannot be read.
fn owned(fields: &FieldsV1, field: &PathElement) -> Option<Set> {
    let all = fields.paths().ok()?.set;
    let mut below = Set::default();
    if all.has_member(field) {
        below.insert_member(field.clone());
    }
    if let Some(children) = all.child(field) {
        below.insert_child(field.clone(), children.clone());
    }
    Some(below)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn object(entries: Value) -> Object {
        let text = json!({"metadata": {"name": "a", "managedFields": entries}}).to_string();
        Object::from_json(text.as_bytes()).unwrap()
    }

    fn entry(manager: &str, operation: &str, subresource: &str, fields: Value) -> Value {
        json!({
            "manager": manager, "operation": operation, "subresource": subresource, "apiVersion": "g/v1",
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    }

    fn gained(new: Value, old: Value) -> Vec<String> {
        let mut paths = Vec::new();
        newly_applied(&object(new), &object(old), "status").for_each(&mut |path| {
            paths.push(path.iter().map(ToString::to_string).collect());
        });
        paths
    }

    fn applied(fields: Value) -> Value {
        json!([entry("m", "Apply", "status", fields)])
    }

    #[test]
    fn what_an_applier_had_before_is_not_gained() {
        let (a, ab) = (json!({"f:status": {"f:a": {}}}), json!({"f:status": {"f:a": {}, "f:b": {}}}));
        assert_eq!(gained(applied(ab.clone()), applied(a.clone())), [".status.b"]);
        assert_eq!(gained(applied(a.clone()), applied(ab.clone())), [""; 0]);
        assert_eq!(gained(applied(ab.clone()), applied(ab)), [""; 0]);
        assert_eq!(gained(applied(a), json!([])), [".status.a"]);
    }

    #[test]
    fn what_another_applier_has_is_gained_all_the_same() {
        let fields = json!({"f:status": {"f:l": {"k:{\"name\":\"x\"}": {}}}});
        let old = json!([entry("other", "Apply", "status", fields.clone())]);
        let mine = entry("m", "Apply", "status", fields.clone());
        let new = json!([old[0], mine]);
        assert_eq!(gained(new, old.clone()), [".status.l[name=\"x\"]"]);
        // The same name on the main resource is another applier.
        let new = json!([old[0], entry("other", "Apply", "", fields)]);
        assert_eq!(gained(new, old), [".status.l[name=\"x\"]"]);
    }

    #[test]
    fn neither_other_fields_nor_updates_are_looked_at() {
        assert_eq!(gained(applied(json!({"f:spec": {"f:a": {}}})), json!([])), [""; 0]);
        let updated = entry("m", "Update", "status", json!({"f:status": {"f:a": {}}}));
        assert_eq!(gained(json!([updated]), json!([])), [""; 0]);
    }

    #[test]
    fn the_field_itself_may_be_owned_and_what_cannot_be_read_is_all_of_it() {
        assert_eq!(gained(applied(json!({"f:status": {}})), json!([])), [".status"]);
        let unreadable = applied(json!({"f:status": {"nonsense": {}}}));
        assert_eq!(gained(unreadable.clone(), json!([])), [".status"]);
        assert_eq!(gained(applied(json!({"f:status": {"f:a": {}}})), unreadable), [".status.a"]);
    }
}
