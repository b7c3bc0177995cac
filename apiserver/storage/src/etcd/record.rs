//! What the record of a prefix says (`origin` has its forms), and who may go on by it.

use serde_json::{Value, json};

use super::revision_offset::{KEY, RevisionOffset};
use crate::backend::{BackendError, KeyValue, Result, Revision};
use crate::migrate::{has_moved, leaves};

/// Whether it is a mark of a move that is not made yet.
pub(super) fn is_moving(record: &KeyValue) -> bool {
    moving(&value(&record.value)).is_some()
}

/// Where the objects are being moved, and what the origin was.
pub(super) fn moving(value: &Value) -> Option<(&str, RevisionOffset)> {
    Some((value.get("moving")?.as_str()?, origin(value.get("was")?)?))
}

/// The record of an origin that is served from.
pub(super) fn record(origin: RevisionOffset) -> Value {
    json!({"offset": origin.offset, "floor": origin.floor.0})
}

/// Why a server that knows the prefix by `known` writes no more, if its record is this.
pub(super) fn closed(bytes: &[u8], known: &RevisionOffset) -> Option<String> {
    match read(bytes) {
        Ok(origin) if origin == *known => None,
        Ok(_) => {
            Some("its objects were moved, and the prefix is used anew: start the server again".to_owned())
        }
        Err(BackendError::Unavailable(why)) => Some(why),
        Err(error) => Some(error.to_string()),
    }
}

/// The origin that a server is to go by.
pub(super) fn read(bytes: &[u8]) -> Result<RevisionOffset> {
    let value = value(bytes);
    let place = |state| value.get(state).and_then(Value::as_str);
    match (origin(&value), place("moved"), place("moving")) {
        (Some(origin), ..) => Ok(origin),
        (None, Some(place), _) => Err(has_moved(place)),
        (None, None, Some(place)) => Err(leaves(place)),
        (None, None, None) if value.get("filling").is_some() => Err(BackendError::Unavailable(
            "objects are being moved in, or were and it was broken off: let `migrate` end, or run it again"
                .to_owned(),
        )),
        (None, None, None) => Err(unreadable()),
    }
}

/// A record, whatever it says.
pub(super) fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// The origin that it names.
pub(super) fn origin(value: &Value) -> Option<RevisionOffset> {
    let number = |name| value.get(name).and_then(Value::as_u64);
    Some(RevisionOffset { offset: number("offset")?, floor: Revision(number("floor")?) })
}

/// It says nothing that we know.
pub(super) fn unreadable() -> BackendError {
    BackendError::Corrupt(format!("the key {KEY} under the prefix cannot be read"))
}
