//! Writes of one object: each is one compare-and-swap of the backend.

use std::sync::Arc;

use bytes::Bytes;
use drydock_machinery::Object;

use super::{Store, codec};
use crate::backend::{BackendError, CompareAndSwap, KeyValue, Revision, WriteContext, WriteOutcome};
use crate::storage::{Replaced, StorageError, Stored};

/// Writes `object` if the state of `key` is still `present`. An object that encodes to the stored bytes is not written,
/// and keeps its resourceVersion (Kubernetes: etcd3/store.go, GuaranteedUpdate compares the encoded bytes too).
pub(super) async fn overwrite(
    store: &Store,
    key: &str,
    present: &Arc<Stored>,
    object: Object,
    context: WriteContext<'_>,
) -> Result<Replaced, StorageError> {
    let encoded = codec::encode(object);
    if !present.is_of_bytes(&encoded) {
        return put(store, key, Some(present.revision), encoded, context).await;
    }
    let (newest, _) = store.read(key, None).await?;
    let is_unchanged = newest.as_ref().is_some_and(|newest| newest.revision == present.revision);
    Ok(if is_unchanged { Replaced::Updated(present.clone()) } else { Replaced::Conflict(newest) })
}

/// Writes an object, given as its bytes, if the revision of `key` is still `expected`.
pub(super) async fn put(
    store: &Store,
    key: &str,
    expected: Option<Revision>,
    bytes: Bytes,
    context: WriteContext<'_>,
) -> Result<Replaced, StorageError> {
    let own = store.own_writes.announce(key, bytes.clone());
    match swap(store, key, expected, Some(bytes.clone()), context).await {
        Ok(WriteOutcome::Committed(revision)) => Ok(Replaced::Updated(own.committed(revision))),
        Ok(WriteOutcome::Conflict(now, _)) => conflict(store, now),
        Ok(WriteOutcome::GuardFailed) => Err(StorageError::GuardFailed),
        Err(BackendError::TooLarge) => Err(StorageError::Oversized(Box::new(codec::decode_own(&bytes)))),
        Err(error) => Err(error.into()),
    }
}

/// Deletes `key` if its state is still `present`; returns `last` at the revision of the deletion.
pub(super) async fn delete(
    store: &Store,
    key: &str,
    present: &Stored,
    last: Object,
    context: WriteContext<'_>,
) -> Result<Replaced, StorageError> {
    match swap(store, key, Some(present.revision), None, context).await? {
        WriteOutcome::Committed(revision) => {
            Ok(Replaced::Updated(Arc::new(Stored::new(key.to_owned(), last, revision))))
        }
        WriteOutcome::Conflict(now, _) => conflict(store, now),
        WriteOutcome::GuardFailed => Err(StorageError::GuardFailed),
    }
}

async fn swap(
    store: &Store,
    key: &str,
    expected: Option<Revision>,
    value: Option<Bytes>,
    context: WriteContext<'_>,
) -> Result<WriteOutcome, BackendError> {
    let WriteContext { guard, priority } = context;
    let key = store.absolute(key);
    store.backend.write(CompareAndSwap { key, expected, value, guard: guard.cloned(), priority }).await
}

fn conflict(store: &Store, now: Option<KeyValue>) -> Result<Replaced, StorageError> {
    Ok(Replaced::Conflict(now.map(|pair| store.decode(&pair)).transpose()?))
}
