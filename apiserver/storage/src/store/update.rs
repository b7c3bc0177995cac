//! The compare-and-swap loop of an update.

use std::sync::Arc;

use bytes::Bytes;
use drydock_machinery::Object;

use super::{Put, Store, codec};
use crate::backend::{WriteContext, WriteOutcome};
use crate::storage::{StorageError, Stored, UpdateDecision, Updater};

/// The state that an updater sees.
struct Seen {
    stored: Option<Arc<Stored>>,
    /// Whether it was read from the backend during this update; then an error or a "nothing to do" that is based on
    /// it is final.
    live: bool,
}

/// The outcome of one try. An object that encodes to the stored bytes is not written, and keeps its resourceVersion
/// (Kubernetes: etcd3/store.go, GuaranteedUpdate compares the encoded bytes too).
enum Tried {
    Done(Arc<Stored>, bool),
    Retry(Seen),
}

impl Store {
    /// [`crate::storage::Storage::update`], whose first try uses `cached`, the state of the key in a cache, which may
    /// be stale; without it, the state is read from the backend. (Kubernetes: etcd3/store.go, GuaranteedUpdate.)
    pub(crate) async fn update_from(
        &self,
        key: &str,
        cached: Option<Arc<Stored>>,
        context: WriteContext<'_>,
        updater: Updater<'_>,
    ) -> Result<(Arc<Stored>, bool), StorageError> {
        let mut seen = match cached {
            Some(stored) => Seen { stored: Some(stored), live: false },
            None => self.live(key).await?,
        };
        // The loop ends when a write succeeds, the updater fails, or the caller drops this future at its deadline.
        loop {
            match self.try_once(key, seen, context, updater).await? {
                Tried::Done(stored, written) => return Ok((stored, written)),
                Tried::Retry(newer) => seen = newer,
            }
        }
    }

    async fn try_once(
        &self,
        key: &str,
        seen: Seen,
        context: WriteContext<'_>,
        updater: Updater<'_>,
    ) -> Result<Tried, StorageError> {
        let change = match updater(seen.stored.as_deref()) {
            Ok(change) => change,
            Err(refusal) => return self.confirm(key, seen, Err(StorageError::Refused(refusal))).await,
        };
        match (change, &seen.stored) {
            (UpdateDecision::Write(object), stored) => {
                let encoded = codec::encode(object);
                match stored.as_deref().is_some_and(|stored| stored.is_of_bytes(&encoded)) {
                    true => self.confirm_state(key, seen).await,
                    false => self.write(key, seen, encoded, context).await,
                }
            }
            (UpdateDecision::Delete(object), Some(stored)) => {
                self.remove(key, stored.clone(), object, context).await
            }
            (UpdateDecision::Delete(_), None) | (UpdateDecision::Keep, _) => {
                self.confirm_state(key, seen).await
            }
        }
    }

    /// Returns an answer without a write if it is based on live state. Otherwise reads the state, and tries again if
    /// it has changed.
    async fn confirm(
        &self,
        key: &str,
        seen: Seen,
        answer: Result<Arc<Stored>, StorageError>,
    ) -> Result<Tried, StorageError> {
        if seen.live {
            return Ok(Tried::Done(answer?, false));
        }
        let live = self.live(key).await?;
        if live.revision() == seen.revision() {
            return Ok(Tried::Done(answer?, false));
        }
        Ok(Tried::Retry(live))
    }

    async fn confirm_state(&self, key: &str, seen: Seen) -> Result<Tried, StorageError> {
        let answer = seen.stored.clone().ok_or(StorageError::NotFound);
        self.confirm(key, seen, answer).await
    }

    async fn write(
        &self,
        key: &str,
        seen: Seen,
        encoded: Bytes,
        context: WriteContext<'_>,
    ) -> Result<Tried, StorageError> {
        Ok(match self.put(key, seen.revision(), encoded, context).await? {
            Put::Committed(stored) => Tried::Done(stored, true),
            Put::Conflict(stored) => Tried::Retry(Seen { stored, live: true }),
        })
    }

    async fn remove(
        &self,
        key: &str,
        stored: Arc<Stored>,
        last: Object,
        context: WriteContext<'_>,
    ) -> Result<Tried, StorageError> {
        let write = self.write_of(key, Some(stored.revision), None, context);
        match self.backend.write(write).await? {
            WriteOutcome::Committed(revision) => {
                Ok(Tried::Done(Arc::new(Stored::new(key.to_owned(), last, revision)), true))
            }
            WriteOutcome::Conflict(now, _) => {
                let stored = now.as_ref().map(|pair| self.decode(pair)).transpose()?;
                Ok(Tried::Retry(Seen { stored, live: true }))
            }
            WriteOutcome::Guarded => Err(StorageError::Guarded),
        }
    }

    async fn live(&self, key: &str) -> Result<Seen, StorageError> {
        let (stored, _) = self.read(key, None).await?;
        Ok(Seen { stored, live: true })
    }
}

impl Seen {
    fn revision(&self) -> Option<crate::backend::Revision> {
        self.stored.as_ref().map(|stored| stored.revision)
    }
}
