//! The record of a prefix: its forms, and whether a server may use the prefix.
//!
//! Objects that were moved from another store must continue with revisions above those which that store gave out.
//! etcd's revision cannot be set, and to raise it with as many writes would take hours and fill etcd. So a prefix has
//! an offset, which is added to etcd's revisions, and a floor, the oldest revision that can be read. Both are in a
//! record, a key under the prefix that is written once, before any server uses the prefix. The record is written
//! again when the objects are moved away, which ends the writes of running servers ([`crate::write_permission`]).
//!
//! ```text
//!   PREFIX/origin    {"offset":0,"floor":0}    written by the first server that started: etcd's own revisions
//!                    {"filling":true}          objects are being moved to the prefix; no server may start
//!                    {"offset":N,"floor":N,"filled":N}    attempt N has moved all objects to the prefix
//!                    {"moving":"...","was":{"offset":N,"floor":N}}   objects are being moved elsewhere; no server may
//!                                              write or start
//!                    {"moved":"...","was":{"offset":N,"floor":N}}    all objects were moved elsewhere; likewise
//! ```

use drydock_storage::backend::{BackendError, KeyValue, Result, Revision};
use serde_json::{Value, json};

use crate::keys::RevisionOffset;

/// The key of the record, below the prefix. The keys of [`drydock_storage::backend::Backend`] begin with a slash; this one does
/// not.
pub(super) const KEY: &str = "origin";

/// Whether the record marks a move that is not complete.
pub(super) fn is_moving(record: &KeyValue) -> bool {
    moving(&value(&record.value)).is_some()
}

/// Returns where the objects are being moved to, and the revision offset before the move.
pub(super) fn moving(value: &Value) -> Option<(&str, RevisionOffset)> {
    Some((value.get("moving")?.as_str()?, revision_offset(value.get("was")?)?))
}

/// Returns the record of a prefix that servers use.
pub(super) fn record(revision_offset: RevisionOffset) -> Value {
    json!({"offset": revision_offset.offset, "floor": revision_offset.floor.0})
}

/// Returns why a server that started with the offset `known` may no longer write under this record; `None` if it may.
pub(super) fn closed(bytes: &[u8], known: &RevisionOffset) -> Option<String> {
    match read(bytes) {
        Ok(revision_offset) if revision_offset == *known => None,
        Ok(_) => {
            Some("its objects were moved, and the prefix is used anew: start the server again".to_owned())
        }
        Err(BackendError::Unavailable(why)) => Some(why),
        Err(error) => Some(error.to_string()),
    }
}

/// Returns the revision offset for a server that starts. Fails if the record allows no server.
pub(super) fn read(bytes: &[u8]) -> Result<RevisionOffset> {
    let value = value(bytes);
    let place = |state| value.get(state).and_then(Value::as_str);
    match (revision_offset(&value), place("moved"), place("moving")) {
        (Some(revision_offset), ..) => Ok(revision_offset),
        (None, Some(place), _) => Err(BackendError::has_moved(place)),
        (None, None, Some(place)) => Err(BackendError::is_being_moved(place)),
        (None, None, None) if value.get("filling").is_some() => Err(BackendError::Unavailable(
            "a migration into this prefix is running or was interrupted: wait for `migrate`, or run it again"
                .to_owned(),
        )),
        (None, None, None) => Err(unreadable()),
    }
}

/// Parses a record; null if it is not JSON.
pub(super) fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// Returns the revision offset in a record.
pub(super) fn revision_offset(value: &Value) -> Option<RevisionOffset> {
    let number = |name| value.get(name).and_then(Value::as_u64);
    Some(RevisionOffset { offset: number("offset")?, floor: Revision(number("floor")?) })
}

/// The error for a record that has no known form.
pub(super) fn unreadable() -> BackendError {
    BackendError::Corrupt(format!("the key {KEY} under the prefix cannot be read"))
}
