//! A prefix whose objects are moved to another store.

use drydock_storage::backend::{KeyValue, Result, Revision};

use crate::backend::{EtcdBackend, connect_prefix, with_prefix};
use crate::config::EtcdConfig;
use crate::keys::RevisionOffset;
use crate::requests::PrefixRequests;
use crate::{prefix_claim, record};

/// Reads a prefix, and marks it so that servers do not write to it.
pub struct MoveSource {
    backend: EtcdBackend,
    /// Sends the requests for the record, with etcd's own revisions.
    record_requests: PrefixRequests,
    record: Option<KeyValue>,
}

/// The mark of a move that is in progress.
pub struct MoveMark {
    record_requests: PrefixRequests,
    revision_offset: RevisionOffset,
    record: KeyValue,
}

impl MoveSource {
    /// Reads the record of a prefix; writes nothing. A prefix that is marked already is one whose move was aborted.
    pub async fn inspect(config: &EtcdConfig) -> Result<Self> {
        let (members, record_requests) = connect_prefix(config, RevisionOffset::default()).await?;
        let existing = prefix_claim::existing(&record_requests).await;
        let (revision_offset, record) = existing.map_err(|error| with_prefix(&config.prefix, error))?;
        let backend = EtcdBackend::at(config, members, revision_offset, None).await?;
        Ok(Self { backend, record_requests, record })
    }

    /// The backend to read the objects from.
    pub fn backend(&self) -> &EtcdBackend {
        &self.backend
    }

    /// Returns the mark of an aborted move, if there is one.
    pub fn aborted_move(&self) -> Option<MoveMark> {
        let record = self.record.as_ref().filter(|record| record::is_moving(record))?;
        Some(self.move_mark(record.clone()))
    }

    /// Marks the prefix: from then on no server writes to it.
    pub async fn close(&self, place: &str) -> Result<MoveMark> {
        let record =
            prefix_claim::mark(&self.record_requests, self.record.as_ref(), ("moving", place)).await?;
        Ok(self.move_mark(record))
    }

    fn move_mark(&self, record: KeyValue) -> MoveMark {
        MoveMark {
            record_requests: self.record_requests.clone(),
            revision_offset: self.backend.prefix.revision_offset,
            record,
        }
    }
}

impl MoveMark {
    /// Returns the number that identifies this attempt at a move.
    pub fn attempt(&self) -> u64 {
        self.record.mod_revision.0
    }

    /// The last revision before the mark.
    pub fn at(&self) -> Revision {
        Revision(self.record.mod_revision.0 + self.revision_offset.offset - 1)
    }

    /// Fails if the mark has been changed since.
    pub async fn check_unchanged(&self) -> Result<()> {
        let (present, _) = self.record_requests.get(record::KEY, None).await?;
        match present.is_some_and(|pair| pair.mod_revision == self.record.mod_revision) {
            true => Ok(()),
            false => Err(prefix_claim::taken()),
        }
    }

    /// Records that all objects are at `place`.
    pub async fn done(self, place: &str) -> Result<()> {
        prefix_claim::mark(&self.record_requests, Some(&self.record), ("moved", place)).await.map(drop)
    }

    /// Removes the mark: the objects stay, and servers write again.
    pub async fn undo(self) -> Result<()> {
        prefix_claim::unmark(&self.record_requests, &self.record).await
    }
}
