//! The etcd backend: for production, and for several API servers on one store.
//!
//! ```text
//!   get, range, write ──> Requests ──(deadlines)──> Members ──(a channel each)──> the one that is asked
//!   watch ──> one task and one connection a watch ──> Assembler ──> channel
//!   turn  ──> compactor: one replica at a time, the same key as Kubernetes' own
//! ```
//!
//! A watch has a connection of its own: HTTP/2 shares a connection's flow control, so a receiver that does not
//! read would otherwise hold up requests and other watches. Caches open watches, a few each; a client's watch reads from
//! a cache, so that clients cannot make connections to etcd. Reads are tried again within their deadline, of a second
//! member while the first is silent; writes only where it is certain that they were not carried out.

mod assemble;
mod compactor;
mod config;
mod contact;
mod deadline;
mod error;
mod hedge;
mod import;
mod keys;
mod members;
mod record;
mod requests;
mod revision_offset;
mod source;
mod space;
mod stream_liveness;
mod watch;
mod watch_state;
mod write_permission;
mod writes;

use std::ops::Range;

use async_trait::async_trait;
use tokio::sync::mpsc;

use crate::backend::{
    Backend, BackendError, KeyValue, RangeResult, Result, Revision, Turn, WatchItem, Write, WriteOutcome,
};
use config::Connector;
pub use config::EtcdConfig;
pub use import::Import;
use keys::Prefix;
use members::Members;
use requests::Requests;
use revision_offset::RevisionOffset;
pub use source::{Leaving, Source};
use tokio_util::sync::DropGuard;
use tokio_util::task::AbortOnDropHandle;
use write_permission::WritePermission;

/// A [`Backend`] on an etcd cluster, 3.4.31, 3.5.13 or later (earlier ones may report progress that is ahead of
/// their events: etcd issue 15220).
/// The suite of this crate runs on the etcd that conformance/host pins; `DRYDOCK_ETCD` names another one, and on 3.4.39
/// and 3.5.35 it has been seen to pass.
pub struct EtcdBackend {
    requests: Requests,
    members: Members,
    prefix: Prefix,
    /// Counts the requests for progress.
    progress: tokio::sync::watch::Sender<u64>,
    /// What writes depend on, which is followed until this is dropped; nothing where it is only read.
    permission: Option<(WritePermission, DropGuard)>,
    /// Sees whether etcd answers while nobody asks.
    _keeping: AbortOnDropHandle<()>,
}

impl EtcdBackend {
    /// Reads the certificates, and checks that the cluster answers and that the prefix can be served from.
    pub async fn connect(config: &EtcdConfig) -> Result<Self> {
        let (members, requests) = reach(config, RevisionOffset::default()).await?;
        let claimed = revision_offset::claim(&requests).await;
        let (origin, record) = claimed.map_err(|error| about(&config.prefix, error))?;
        let permission = WritePermission::new(origin, RevisionOffset::default().signed(record));
        let followed = permission.follow(&members, &config.prefix);
        Self::at(config, members, origin, Some((permission, followed))).await
    }

    async fn at(
        config: &EtcdConfig,
        members: Members,
        origin: RevisionOffset,
        permission: Option<(WritePermission, DropGuard)>,
    ) -> Result<Self> {
        let prefix = Prefix::new(&config.prefix, origin);
        let mut requests = Requests::new(members.clone(), prefix.clone()).retaining(config.retention);
        if let Some((permission, _)) = &permission {
            requests = requests.while_standing(permission.clone());
        }
        requests.current_revision().await?;
        let keeping = members.contact().clone().keep(members.clone(), prefix.key("revision"));
        let _keeping = AbortOnDropHandle::new(tokio::spawn(keeping));
        Ok(Self { requests, members, prefix, progress: Default::default(), permission, _keeping })
    }
}

/// Takes such a mark away. Revisions go on `bump` above the last one, and what was below is forgotten.
pub async fn reclaim(config: &EtcdConfig, bump: u64) -> Result<Revision> {
    let (_, requests) = reach(config, RevisionOffset::default()).await?;
    revision_offset::reclaim(&requests, &config.prefix, bump).await
}

/// Requests of a prefix whose revisions begin at `origin`.
async fn reach(config: &EtcdConfig, origin: RevisionOffset) -> Result<(Members, Requests)> {
    let members = Members::new(Connector::new(config).await?).await?;
    let requests = Requests::new(members.clone(), Prefix::new(&config.prefix, origin));
    Ok((members, requests))
}

/// Says under which prefix.
fn about(prefix: &str, error: BackendError) -> BackendError {
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

    async fn write(&self, write: Write) -> Result<WriteOutcome> {
        self.requests.write(write).await
    }

    async fn watch(&self, keys: Range<String>, after: Revision) -> Result<mpsc::Receiver<WatchItem>> {
        let progress = self.progress.subscribe();
        let watch = watch::Watch::new(self.members.clone(), self.prefix.clone(), keys, after, progress);
        Ok(watch.start())
    }

    fn refuses_writes(&self) -> Option<String> {
        let closed = self.permission.as_ref().and_then(|(permission, _)| permission.why());
        let silent = |why| format!("etcd cannot be reached, or does not answer: {why}");
        closed.or_else(|| self.members.contact().silence().map(silent)).or_else(|| self.requests.space.why())
    }

    fn history_room(&self) -> Option<u64> {
        self.requests.space.history_room()
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

    async fn relieve(&self) {
        self.requests.space.keep(&self.requests).await;
    }

    async fn compaction_turn(&self, last: Turn) -> Result<Turn> {
        compactor::turn(&self.requests, last).await
    }
}
