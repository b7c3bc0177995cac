//! Fills an unused prefix with pairs from another store.

use bytes::Bytes;
use drydock_storage::backend::{
    BackendError, CompareAndSwap, Guard, KeyValue, Result, Revision, WriteOutcome,
};
use drydock_storage::values;
use tokio::task::JoinSet;

use crate::backend::connect_prefix;
use crate::config::EtcdConfig;
use crate::keys::RevisionOffset;
use crate::prefix_claim::{self, FillStarted};
use crate::requests::PrefixRequests;

/// Writes in flight at a time.
const MAX_IN_FLIGHT: usize = 32;

/// A prefix that is being filled. No server starts on it before the import is finished. The next attempt removes what
/// an aborted one left.
pub struct PrefixImport {
    requests: PrefixRequests,
    guard: Guard,
    offset: u64,
}

impl PrefixImport {
    /// Begins to fill a prefix. All its revisions will be above `above`. Fails if the prefix is in use, or was.
    pub async fn begin(config: &EtcdConfig, above: Revision) -> Result<Self> {
        let (_, requests) = connect_prefix(config, RevisionOffset::default()).await?;
        let FillStarted { guard, resumed } = prefix_claim::begin(&requests, &config.prefix).await?;
        let offset = (above.0 + 1).saturating_sub(guard.revision.0);
        let import = Self { requests, guard, offset };
        if resumed {
            import.clear().await?;
        }
        Ok(import)
    }

    /// Returns the number that identifies this attempt.
    pub fn attempt(&self) -> u64 {
        self.guard.revision.0
    }

    /// Returns the first revision of the prefix if this attempt has filled it completely; `None` if it has not.
    pub async fn completed(config: &EtcdConfig, attempt: u64) -> Result<Option<Revision>> {
        let (_, requests) = connect_prefix(config, RevisionOffset::default()).await?;
        prefix_claim::filled(&requests, attempt).await
    }

    /// Writes pairs, which must be in key order, each at a new revision, and reads them back. Fails if etcd holds
    /// something else.
    pub async fn add(&mut self, pairs: Vec<KeyValue>) -> Result<()> {
        let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else { return Ok(()) };
        let keys = first.key.clone()..format!("{}\0", last.key);
        self.write_all(pairs.clone(), |pair| (pair.key, None, Some(pair.value))).await?;
        let there = self.requests.range(keys, 0, None).await?.items;
        let is_same = |(one, other): (&KeyValue, &KeyValue)| one.key == other.key && one.value == other.value;
        match there.len() == pairs.len() && there.iter().zip(&pairs).all(is_same) {
            true => Ok(()),
            false => Err(BackendError::Corrupt("etcd does not hold what was moved to it".to_owned())),
        }
    }

    /// Opens the prefix to servers, and returns its first revision.
    pub async fn finish(self) -> Result<Revision> {
        let newest = self.requests.current_revision().await?;
        let floor = Revision(newest.0 + 1 + self.offset);
        prefix_claim::finish(&self.requests, &self.guard, RevisionOffset { offset: self.offset, floor })
            .await?;
        Ok(floor)
    }

    /// Removes what an aborted attempt left.
    async fn clear(&self) -> Result<()> {
        let left = self.requests.range(drydock_storage::backend::prefix_range(values::ALL), 0, None).await?;
        self.write_all(left.items, |pair| (pair.key, Some(pair.mod_revision), None)).await
    }

    /// Sends one write for each pair, at most [`MAX_IN_FLIGHT`] at a time.
    async fn write_all(
        &self,
        pairs: Vec<KeyValue>,
        as_write: impl Fn(KeyValue) -> (String, Option<Revision>, Option<Bytes>),
    ) -> Result<()> {
        let mut running = JoinSet::new();
        for pair in pairs {
            if running.len() == MAX_IN_FLIGHT {
                joined(running.join_next().await)?;
            }
            let (key, expected, value) = as_write(pair);
            let write = CompareAndSwap {
                key,
                expected,
                value,
                guard: Some(self.guard.clone()),
                priority: Default::default(),
            };
            running.spawn(write_one(self.requests.clone(), write));
        }
        while let Some(ended) = running.join_next().await {
            joined(Some(ended))?;
        }
        Ok(())
    }
}

async fn write_one(requests: PrefixRequests, write: CompareAndSwap) -> Result<WriteOutcome> {
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
        Some(WriteOutcome::Conflict(..) | WriteOutcome::GuardFailed) => Err(prefix_claim::taken()),
    }
}
