//! A write that changes only times of managed fields is not stored (apiserver handlers/fieldmanager equality.go).

use serde_json::{Map, Value};

use crate::object::{ManagedFieldsEntry, Object};

/// Returns `new`, with the managed fields of `old` if the objects differ only in the times of these.
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
