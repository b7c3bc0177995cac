//! Objects to stored bytes and back.

use std::sync::Arc;

use bytes::Bytes;
use drydock_machinery::Object;

use super::sound;
use crate::backend::{BackendError, Revision};
use crate::storage::{StorageError, Stored};

/// The bytes to store. The resourceVersion is left out: it is the revision of the write that carries them.
pub(super) fn encode(mut object: Object) -> Bytes {
    object.set_resource_version("");
    object.to_json()
}

/// The object that [`encode`] made `bytes` of.
pub(super) fn decode_own(bytes: &[u8]) -> Object {
    Object::from_json(bytes).unwrap_or_default()
}

/// The object that `bytes` hold, as of `revision`: they can be decoded, but are not yet.
pub(crate) fn decode(key: &str, bytes: &[u8], revision: Revision) -> Result<Arc<Stored>, StorageError> {
    not_empty(key, bytes)?;
    match sound::has_metadata(bytes) {
        Err(error) => Err(corrupt(key, &error.to_string())),
        Ok(false) => Err(corrupt(key, "not an object with metadata")),
        Ok(true) => Ok(Arc::new(Stored::of_bytes(key, bytes, revision))),
    }
}

/// What a backend hands out in place of a value that is not what was written.
fn not_empty(key: &str, bytes: &[u8]) -> Result<(), StorageError> {
    if bytes.is_empty() { Err(corrupt(key, "it is not as it was written")) } else { Ok(()) }
}

/// What is stored under `key` is not what this crate writes.
pub(super) fn corrupt(key: &str, why: &str) -> StorageError {
    StorageError::Backend(BackendError::Corrupt(format!("the value of {key:?} cannot be read: {why}")))
}
