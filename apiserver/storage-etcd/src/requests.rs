//! Requests to etcd; those that write are in [`crate::writes`].

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drydock_storage::backend::{BackendError, KeyValue, RangeResult, Result, Revision};
use drydock_storage::retention::Retention;
use etcd_client::proto::PbResponseHeader;
use etcd_client::{GetOptions, GetResponse};

use crate::error::with_revision;
use crate::keys::{Prefix, RevisionOffset};
use crate::members::Members;
use crate::space::Space;
use crate::write_permission::WritePermission;

/// Keys in one request of a longer range.
const PAGE: usize = 2000;

/// Sends requests about the keys of one prefix.
#[derive(Clone)]
pub(super) struct PrefixRequests {
    pub(super) members: Members,
    pub(super) prefix: Prefix,
    /// The highest compaction boundary seen, for error messages: etcd does not return it with a refusal.
    compacted: Arc<AtomicU64>,
    /// What every write depends on; `None` for a move of the objects, whose own guard is the record.
    pub(super) permission: Option<WritePermission>,
    pub(super) space: Space,
}

impl PrefixRequests {
    pub fn new(members: Members, prefix: Prefix) -> Self {
        let space = Space::new(Retention::default());
        Self { members, prefix, compacted: Arc::default(), permission: None, space }
    }

    /// Sets how long history is kept.
    pub fn retaining(self, retention: Retention) -> Self {
        Self { space: Space::new(retention), ..self }
    }

    /// Makes each write depend on the record of the prefix, as a server needs.
    pub fn with_permission(mut self, permission: WritePermission) -> Self {
        self.permission = Some(permission);
        self
    }

    /// The members of the cluster.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Returns the revision of a linearizable read, which needs the quorum.
    pub async fn current_revision(&self) -> Result<Revision> {
        let response = self.members.revision(self.prefix.key("revision")).await?;
        self.header(response.0.header.as_ref())
    }

    pub async fn get(&self, key: &str, at: Option<Revision>) -> Result<(Option<KeyValue>, Revision)> {
        let response = self.read_at(self.prefix.key(key), GetOptions::new(), at).await?;
        let newest = self.header(response.0.header.as_ref())?;
        let pair = response.0.kvs.into_iter().next().map(|pair| self.prefix.pair(pair)).transpose()?;
        Ok((pair, at.unwrap_or(newest)))
    }

    /// Reads a long range page by page at the revision of the first page, so that no response is unbounded.
    pub async fn range(
        &self,
        keys: Range<String>,
        limit: usize,
        at: Option<Revision>,
    ) -> Result<RangeResult> {
        let Some((mut start, end)) = self.prefix.range(&keys) else { return self.empty(at).await };
        let (mut found, mut most) = (None::<RangeResult>, limit);
        loop {
            let page = if most == 0 { PAGE } else { most.min(PAGE) };
            let at = found.as_ref().map(|found| found.revision).or(at);
            let (part, more) = self.page(start, &end, page, at).await?;
            let last = part.items.last().map(|pair| self.prefix.key(&pair.key));
            most = if most == 0 { 0 } else { most - part.items.len().min(most) };
            let found = match &mut found {
                Some(found) => {
                    found.items.extend(part.items);
                    found
                }
                none => none.insert(part),
            };
            match last {
                Some(last) if more && (limit == 0 || most > 0) => start = last + "\0",
                _ => return Ok(std::mem::replace(found, RangeResult { items: Vec::new(), ..*found })),
            }
        }
    }

    /// Compacts: discards the history below `at`.
    pub async fn compact(&self, at: Revision) -> Result<()> {
        match self.members.compact(self.signed(at)).await {
            Ok(()) => {
                self.compacted(at);
                Ok(())
            }
            Err(error) => Err(self.explain(error, Some(at)).await),
        }
    }

    /// Records a compaction boundary.
    pub fn compacted(&self, at: Revision) {
        self.compacted.fetch_max(at.0, Ordering::Relaxed);
    }

    /// Returns the revision in a response header.
    pub fn header(&self, of: Option<&PbResponseHeader>) -> Result<Revision> {
        header(&self.prefix.revision_offset, of)
    }

    /// Converts a revision to etcd's.
    pub fn signed(&self, revision: Revision) -> i64 {
        self.prefix.revision_offset.signed(revision)
    }

    /// Converts one of etcd's revisions.
    pub fn revision(&self, number: i64) -> Revision {
        self.prefix.revision_offset.revision(number)
    }

    async fn page(
        &self,
        start: String,
        end: &str,
        limit: usize,
        at: Option<Revision>,
    ) -> Result<(RangeResult, bool)> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let options = GetOptions::new().with_range(end).with_limit(limit);
        let response = self.read_at(start, options, at).await?;
        let newest = self.header(response.0.header.as_ref())?;
        let items = response.0.kvs.into_iter().map(|pair| self.prefix.pair(pair)).collect::<Result<_>>()?;
        let count = response.0.count.max(0).unsigned_abs();
        Ok((RangeResult { revision: at.unwrap_or(newest), items, count }, response.0.more))
    }

    async fn empty(&self, at: Option<Revision>) -> Result<RangeResult> {
        let (_, revision) = self.get("revision", at).await?;
        Ok(RangeResult { revision, items: Vec::new(), count: 0 })
    }

    async fn read_at(&self, key: String, options: GetOptions, at: Option<Revision>) -> Result<GetResponse> {
        let options = match at {
            // To etcd, revision 0 means the latest.
            Some(Revision(0)) => {
                let oldest = Revision(self.compacted.load(Ordering::Relaxed).max(1));
                return Err(BackendError::Compacted { requested: Revision(0), oldest });
            }
            Some(at) => {
                self.prefix.revision_offset.check(at)?;
                options.with_revision(self.signed(at))
            }
            None => options,
        };
        match self.members.read(key, options).await {
            Err(error) => Err(self.explain(error, at).await),
            response => response,
        }
    }

    /// Adds the revisions that etcd's error leaves out.
    async fn explain(&self, error: BackendError, at: Option<Revision>) -> BackendError {
        let Some(requested) = at else { return error };
        match error {
            BackendError::Compacted { .. } => {
                let oldest = Revision(self.compacted.load(Ordering::Relaxed));
                with_revision(BackendError::Compacted { requested, oldest }, requested)
            }
            BackendError::FutureRevision { .. } => match self.current_revision().await {
                Ok(current) => BackendError::FutureRevision { requested, current },
                Err(error) => error,
            },
            other => other,
        }
    }
}

/// Returns the revision in a response header.
pub(super) fn header(
    revision_offset: &RevisionOffset,
    header: Option<&PbResponseHeader>,
) -> Result<Revision> {
    let missing = || BackendError::Unavailable("etcd answered without a header".to_owned());
    header.map(|header| revision_offset.revision(header.revision)).ok_or_else(missing)
}
