//! A prefix filled with pairs that come from elsewhere.

use bytes::Bytes;
use tokio::task::JoinSet;

use super::requests::Requests;
use super::revision_offset::{self, Begun, RevisionOffset};
use super::{EtcdConfig, reach};
use crate::backend::{BackendError, Guard, KeyValue, Result, Revision, Write, WriteOutcome};
use crate::values;

/// Writes that are on their way at a time.
const WAYS: usize = 32;

/// A prefix in the making, which no server takes before its end. What a broken attempt left is removed by the next.
pub struct Import {
    requests: Requests,
    guard: Guard,
    offset: u64,
}

impl Import {
    /// Begins to fill a prefix that nobody has used. Its revisions will all be above `above`.
    pub async fn begin(config: &EtcdConfig, above: Revision) -> Result<Self> {
        let (_, requests) = reach(config, RevisionOffset::default()).await?;
        let Begun { guard, anew } = revision_offset::begin(&requests, &config.prefix).await?;
        let offset = (above.0 + 1).saturating_sub(guard.revision.0);
        let import = Self { requests, guard, offset };
        if anew {
            import.clear().await?;
        }
        Ok(import)
    }

    /// Which attempt it is: another one has another number.
    pub fn attempt(&self) -> u64 {
        self.guard.revision.0
    }

    /// Where the revisions of a prefix begin that this attempt has filled to the end; nothing if it has not.
    pub async fn made(config: &EtcdConfig, attempt: u64) -> Result<Option<Revision>> {
        let (_, requests) = reach(config, RevisionOffset::default()).await?;
        revision_offset::filled(&requests, attempt).await
    }

    /// Takes pairs in, which are in the order of their keys; each gets a new revision. They are read back.
    pub async fn add(&mut self, pairs: Vec<KeyValue>) -> Result<()> {
        let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else { return Ok(()) };
        let keys = first.key.clone()..format!("{}\0", last.key);
        self.all(pairs.clone(), |pair| (pair.key, None, Some(pair.value))).await?;
        let there = self.requests.range(keys, 0, None).await?.items;
        let is_same = |(one, other): (&KeyValue, &KeyValue)| one.key == other.key && one.value == other.value;
        match there.len() == pairs.len() && there.iter().zip(&pairs).all(is_same) {
            true => Ok(()),
            false => Err(BackendError::Corrupt("etcd does not hold what was moved to it".to_owned())),
        }
    }

    /// Opens the prefix to servers, and returns the revision at which they begin.
    pub async fn finish(self) -> Result<Revision> {
        let newest = self.requests.current_revision().await?;
        let floor = Revision(newest.0 + 1 + self.offset);
        revision_offset::finish(&self.requests, &self.guard, RevisionOffset { offset: self.offset, floor })
            .await?;
        Ok(floor)
    }

    /// Removes what an attempt left that was broken off.
    async fn clear(&self) -> Result<()> {
        let left = self.requests.range(crate::backend::prefix_range(values::ALL), 0, None).await?;
        self.all(left.items, |pair| (pair.key, Some(pair.mod_revision), None)).await
    }

    /// Makes a write of each pair.
    async fn all(
        &self,
        pairs: Vec<KeyValue>,
        as_write: impl Fn(KeyValue) -> (String, Option<Revision>, Option<Bytes>),
    ) -> Result<()> {
        let mut running = JoinSet::new();
        for pair in pairs {
            if running.len() == WAYS {
                joined(running.join_next().await)?;
            }
            let (key, expected, value) = as_write(pair);
            let write =
                Write { key, expected, value, guard: Some(self.guard.clone()), priority: Default::default() };
            running.spawn(one(self.requests.clone(), write));
        }
        while let Some(ended) = running.join_next().await {
            joined(Some(ended))?;
        }
        Ok(())
    }
}

async fn one(requests: Requests, write: Write) -> Result<WriteOutcome> {
    let (key, bytes) = (write.key.clone(), write.value.as_ref().map_or(0, |value| value.len()));
    requests.write(write).await.map_err(|error| match error {
        BackendError::TooLarge => BackendError::Unavailable(format!(
            "{key} has {bytes} bytes, more than etcd takes: start etcd with a higher --max-request-bytes, then move \
             again"
        )),
        other => other,
    })
}

fn joined(ended: Option<Result<Result<WriteOutcome>, tokio::task::JoinError>>) -> Result<()> {
    let stopped = |error: tokio::task::JoinError| BackendError::Unavailable(error.to_string());
    match ended.transpose().map_err(stopped)?.transpose()? {
        None | Some(WriteOutcome::Committed(_)) => Ok(()),
        Some(WriteOutcome::Conflict(..) | WriteOutcome::Guarded) => Err(revision_offset::taken()),
    }
}
