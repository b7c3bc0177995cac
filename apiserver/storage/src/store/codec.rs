//! Encodes objects as stored bytes, and decodes them.

use std::sync::Arc;

use bytes::Bytes;
use drydock_machinery::Object;

use super::decodable;
use crate::backend::{BackendError, Revision};
use crate::storage::{StorageError, Stored};

/// Returns the bytes to store. They have no resourceVersion, because that is the revision of the write.
pub(super) fn encode(mut object: Object) -> Bytes {
    object.set_resource_version("");
    object.to_json()
}

/// Decodes bytes that [`encode`] made.
pub(super) fn decode_own(bytes: &[u8]) -> Object {
    Object::from_json(bytes).unwrap_or_default()
}

/// Returns the object in `bytes` at `revision`. Checks that the bytes can be decoded; decodes them later. Fails if
/// they are damaged.
pub(crate) fn decode(key: &str, bytes: &[u8], revision: Revision) -> Result<Arc<Stored>, StorageError> {
    not_empty(key, bytes)?;
    match decodable::has_metadata(bytes) {
        Err(error) => Err(corrupt(key, &error.to_string())),
        Ok(false) => Err(corrupt(key, "not an object with metadata")),
        Ok(true) => Ok(Arc::new(Stored::of_bytes(key, bytes, revision))),
    }
}

/// Fails for the empty value that a backend returns in place of a damaged one.
fn not_empty(key: &str, bytes: &[u8]) -> Result<(), StorageError> {
    if bytes.is_empty() { Err(corrupt(key, "it is not as it was written")) } else { Ok(()) }
}

/// The error for a value that this crate did not write, or that is damaged.
pub(super) fn corrupt(key: &str, why: &str) -> StorageError {
    StorageError::Backend(BackendError::Corrupt(format!("the value of {key:?} cannot be read: {why}")))
}
