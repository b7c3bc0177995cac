//! A write that changes nothing must not be stored for its time alone (apiserver handlers/fieldmanager equality.go).

use serde_json::{Map, Value};

use crate::object::{ManagedFieldsEntry, Object};

/// `new`, with the old times in its managed fields if it equals `old` in all but them.
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
    // From behind, where an object has its status: that is what most writes change.
    a.len() == b.len() && a.iter().rev().zip(b.iter().rev()).all(|(a, b)| a == b)
}
