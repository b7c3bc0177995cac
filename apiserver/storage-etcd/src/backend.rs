//! The backend, and its connection to a prefix.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use drydock_storage::backend::{
    Backend, BackendError, CompactionTurn, CompareAndSwap, KeyValue, RangeResult, Result, Revision, Shortage,
    WatchItem, WriteOutcome,
};
use drydock_storage::location::{LocationError, StorageLocation};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;
use tokio_util::task::AbortOnDropHandle;

use crate::config::{Connector, EtcdConfig};
use crate::keys::{Prefix, RevisionOffset};
use crate::members::Members;
use crate::requests::PrefixRequests;
use crate::write_permission::WritePermission;
use crate::{compactor, prefix_claim, record_watch, watch};

/// A [`Backend`] on an etcd cluster, 3.4.31, 3.5.13 or later (earlier ones may report progress that is ahead of
/// their events: etcd issue 15220).
/// The tests of this crate run on the etcd that conformance/host pins; `DRYDOCK_ETCD` selects another one. They have
/// passed on 3.4.39 and 3.5.35.
pub struct EtcdBackend {
    requests: PrefixRequests,
    members: Members,
    pub(super) prefix: Prefix,
    /// Counts the progress requests.
    progress: tokio::sync::watch::Sender<u64>,
    /// What writes depend on, and a guard that ends the watch of it; `None` for a backend that is only read.
    permission: Option<(WritePermission, DropGuard)>,
    /// Probes etcd while there are no requests.
    _keeping: AbortOnDropHandle<()>,
}

impl EtcdBackend {
    /// Connects. Fails if a certificate cannot be read, if the cluster does not answer, or if the record of the
    /// prefix forbids it.
    pub async fn connect(config: &EtcdConfig) -> Result<Self> {
        let (members, requests) = connect_prefix(config, RevisionOffset::default()).await?;
        let claimed = prefix_claim::claim(&requests).await;
        let (revision_offset, record) = claimed.map_err(|error| with_prefix(&config.prefix, error))?;
        let permission = WritePermission::new(revision_offset, RevisionOffset::default().signed(record));
        let followed = record_watch::follow(&permission, &members, &config.prefix);
        Self::at(config, members, revision_offset, Some((permission, followed))).await
    }

    pub(super) async fn at(
        config: &EtcdConfig,
        members: Members,
        revision_offset: RevisionOffset,
        permission: Option<(WritePermission, DropGuard)>,
    ) -> Result<Self> {
        let prefix = Prefix::new(&config.prefix, revision_offset);
        let mut requests = PrefixRequests::new(members.clone(), prefix.clone()).retaining(config.retention);
        if let Some((permission, _)) = &permission {
            requests = requests.with_permission(permission.clone());
        }
        requests.current_revision().await?;
        let keeping = members.clone().probe(prefix.key("revision"));
        let _keeping = AbortOnDropHandle::new(tokio::spawn(keeping));
        Ok(Self { requests, members, prefix, progress: Default::default(), permission, _keeping })
    }
}

#[async_trait]
impl StorageLocation for EtcdConfig {
    fn name(&self) -> &'static str {
        "etcd"
    }

    async fn open(&self) -> Result<Arc<dyn Backend>, LocationError> {
        let refused = |why| LocationError::new("--etcd-servers", why);
        Ok(Arc::new(EtcdBackend::connect(self).await.map_err(refused)?))
    }
}

/// Removes the mark of a move. Revisions continue `bump` above the last one, and the history below is discarded.
/// Returns the first new revision.
pub async fn reclaim(config: &EtcdConfig, bump: u64) -> Result<Revision> {
    let (_, requests) = connect_prefix(config, RevisionOffset::default()).await?;
    prefix_claim::reclaim(&requests, &config.prefix, bump).await
}

/// Connects to a prefix with this revision offset.
pub(super) async fn connect_prefix(
    config: &EtcdConfig,
    revision_offset: RevisionOffset,
) -> Result<(Members, PrefixRequests)> {
    let members = Members::new(Connector::new(config).await?).await?;
    let requests = PrefixRequests::new(members.clone(), Prefix::new(&config.prefix, revision_offset));
    Ok((members, requests))
}

/// Adds the prefix to an error.
pub(super) fn with_prefix(prefix: &str, error: BackendError) -> BackendError {
    match error {
        BackendError::Unavailable(why) => BackendError::Unavailable(format!("prefix {prefix}: {why}")),
        BackendError::Corrupt(why) => BackendError::Corrupt(format!("prefix {prefix}: {why}")),
        other => other,
    }
}

#[async_trait]
impl Backend for EtcdBackend {
    async fn current_revision(&self) -> Result<Revision> {
        self.requests.current_revision().await
    }

    async fn get(&self, key: &str, at: Option<Revision>) -> Result<(Option<KeyValue>, Revision)> {
        self.requests.get(key, at).await
    }

    async fn range(&self, keys: Range<String>, limit: usize, at: Option<Revision>) -> Result<RangeResult> {
        self.requests.range(keys, limit, at).await
    }

    async fn write(&self, write: CompareAndSwap) -> Result<WriteOutcome> {
        self.requests.write(write).await
    }

    async fn watch(&self, keys: Range<String>, after: Revision) -> Result<mpsc::Receiver<WatchItem>> {
        let progress = self.progress.subscribe();
        let watch = watch::EtcdWatch::new(self.members.clone(), self.prefix.clone(), keys, after, progress);
        Ok(watch.start())
    }

    fn refuses_writes(&self) -> Option<String> {
        let closed = self.permission.as_ref().and_then(|(permission, _)| permission.why());
        let silent = |why| format!("etcd cannot be reached, or does not answer: {why}");
        closed.or_else(|| self.members.contact().silence().map(silent)).or_else(|| self.requests.space.why())
    }

    fn shortage(&self) -> Option<Shortage> {
        self.requests.space.shortage()
    }

    fn refuses_reads(&self) -> Option<String> {
        self.members.contact().lost()
    }

    async fn request_progress(&self) -> Result<()> {
        self.progress.send_modify(|round| *round += 1);
        Ok(())
    }

    async fn compact(&self, at: Revision) -> Result<()> {
        match self.requests.compact(at).await {
            Err(BackendError::Compacted { .. }) => Ok(()),
            result => result,
        }
    }

    async fn compact_early(&self) {
        compactor::compact_early(&self.requests).await;
    }

    async fn compaction_turn(&self, last: CompactionTurn) -> Result<CompactionTurn> {
        compactor::turn(&self.requests, last).await
    }
}
