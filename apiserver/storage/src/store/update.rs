//! The compare-and-swap loop of an update.

use std::sync::Arc;

use bytes::Bytes;
use drydock_machinery::Object;

use super::{Put, Store, codec};
use crate::backend::{WriteContext, WriteOutcome};
use crate::storage::{StorageError, Stored, UpdateDecision, Updater};

/// The state that an updater sees.
struct BaseState {
    stored: Option<Arc<Stored>>,
    /// Whether it was read from the backend during this update; then an error or a "nothing to do" that is based on
    /// it is final.
    live: bool,
}

/// The outcome of one attempt. An object that encodes to the stored bytes is not written, and keeps its resourceVersion
/// (Kubernetes: etcd3/store.go, GuaranteedUpdate compares the encoded bytes too).
enum Attempt {
    Done(Arc<Stored>, bool),
    Retry(BaseState),
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
        let mut base = match cached {
            Some(stored) => BaseState { stored: Some(stored), live: false },
            None => self.live(key).await?,
        };
        // The loop ends when a write succeeds, the updater fails, or the caller drops this future at its deadline.
        loop {
            match self.try_once(key, base, context, updater).await? {
                Attempt::Done(stored, written) => return Ok((stored, written)),
                Attempt::Retry(newer) => base = newer,
            }
        }
    }

    async fn try_once(
        &self,
        key: &str,
        base: BaseState,
        context: WriteContext<'_>,
        updater: Updater<'_>,
    ) -> Result<Attempt, StorageError> {
        let change = match updater(base.stored.as_deref()) {
            Ok(change) => change,
            Err(refusal) => return self.confirm(key, base, Err(StorageError::Refused(refusal))).await,
        };
        match (change, &base.stored) {
            (UpdateDecision::Write(object), stored) => {
                let encoded = codec::encode(object);
                match stored.as_deref().is_some_and(|stored| stored.is_of_bytes(&encoded)) {
                    true => self.confirm_state(key, base).await,
                    false => self.write(key, base, encoded, context).await,
                }
            }
            (UpdateDecision::Delete(object), Some(stored)) => {
                self.remove(key, stored.clone(), object, context).await
            }
            (UpdateDecision::Delete(_), None) | (UpdateDecision::Keep, _) => {
                self.confirm_state(key, base).await
            }
        }
    }

    /// Returns an answer without a write if it is based on live state. Otherwise reads the state, and tries again if
    /// it has changed.
    async fn confirm(
        &self,
        key: &str,
        base: BaseState,
        answer: Result<Arc<Stored>, StorageError>,
    ) -> Result<Attempt, StorageError> {
        if base.live {
            return Ok(Attempt::Done(answer?, false));
        }
        let live = self.live(key).await?;
        if live.revision() == base.revision() {
            return Ok(Attempt::Done(answer?, false));
        }
        Ok(Attempt::Retry(live))
    }

    async fn confirm_state(&self, key: &str, base: BaseState) -> Result<Attempt, StorageError> {
        let answer = base.stored.clone().ok_or(StorageError::NotFound);
        self.confirm(key, base, answer).await
    }

    async fn write(
        &self,
        key: &str,
        base: BaseState,
        encoded: Bytes,
        context: WriteContext<'_>,
    ) -> Result<Attempt, StorageError> {
        Ok(match self.put(key, base.revision(), encoded, context).await? {
            Put::Committed(stored) => Attempt::Done(stored, true),
            Put::Conflict(stored) => Attempt::Retry(BaseState { stored, live: true }),
        })
    }

    async fn remove(
        &self,
        key: &str,
        stored: Arc<Stored>,
        last: Object,
        context: WriteContext<'_>,
    ) -> Result<Attempt, StorageError> {
        let write = self.write_of(key, Some(stored.revision), None, context);
        match self.backend.write(write).await? {
            WriteOutcome::Committed(revision) => {
                Ok(Attempt::Done(Arc::new(Stored::new(key.to_owned(), last, revision)), true))
            }
            WriteOutcome::Conflict(now, _) => {
                let stored = now.as_ref().map(|pair| self.decode(pair)).transpose()?;
                Ok(Attempt::Retry(BaseState { stored, live: true }))
            }
            WriteOutcome::GuardFailed => Err(StorageError::GuardFailed),
        }
    }

    async fn live(&self, key: &str) -> Result<BaseState, StorageError> {
        let (stored, _) = self.read(key, None).await?;
        Ok(BaseState { stored, live: true })
    }
}

impl BaseState {
    fn revision(&self) -> Option<crate::backend::Revision> {
        self.stored.as_ref().map(|stored| stored.revision)
    }
}
