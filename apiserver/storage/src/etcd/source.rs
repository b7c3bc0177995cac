//! A prefix whose objects are moved to another store.

use super::record;
use super::requests::Requests;
use super::revision_offset::{self, RevisionOffset};
use super::{EtcdBackend, EtcdConfig, about, reach};
use crate::backend::{KeyValue, Result, Revision};

/// Reads a prefix, and marks it so that servers do not write to it.
pub struct Source {
    backend: EtcdBackend,
    /// Sends the requests for the record, with etcd's own revisions.
    house: Requests,
    record: Option<KeyValue>,
}

/// The mark of a move that is in progress.
pub struct Leaving {
    house: Requests,
    origin: RevisionOffset,
    record: KeyValue,
}

impl Source {
    /// Reads the record of a prefix; writes nothing. A prefix that is marked already is one whose move was aborted.
    pub async fn look(config: &EtcdConfig) -> Result<Self> {
        let (members, house) = reach(config, RevisionOffset::default()).await?;
        let existing = revision_offset::existing(&house).await;
        let (origin, record) = existing.map_err(|error| about(&config.prefix, error))?;
        let backend = EtcdBackend::at(config, members, origin, None).await?;
        Ok(Self { backend, house, record })
    }

    /// The backend to read the objects from.
    pub fn backend(&self) -> &EtcdBackend {
        &self.backend
    }

    /// Returns the mark of an aborted move, if there is one.
    pub fn left(&self) -> Option<Leaving> {
        let record = self.record.as_ref().filter(|record| record::is_moving(record))?;
        Some(self.leaving(record.clone()))
    }

    /// Marks the prefix: from then on no server writes to it.
    pub async fn close(&self, place: &str) -> Result<Leaving> {
        let record = revision_offset::mark(&self.house, self.record.as_ref(), ("moving", place)).await?;
        Ok(self.leaving(record))
    }

    fn leaving(&self, record: KeyValue) -> Leaving {
        Leaving { house: self.house.clone(), origin: self.backend.prefix.origin, record }
    }
}

impl Leaving {
    /// Returns the number that identifies this attempt at a move.
    pub fn attempt(&self) -> u64 {
        self.record.mod_revision.0
    }

    /// The last revision before the mark.
    pub fn at(&self) -> Revision {
        Revision(self.record.mod_revision.0 + self.origin.offset - 1)
    }

    /// Fails if the mark has been changed since.
    pub async fn stands(&self) -> Result<()> {
        let (present, _) = self.house.get(revision_offset::KEY, None).await?;
        match present.is_some_and(|pair| pair.mod_revision == self.record.mod_revision) {
            true => Ok(()),
            false => Err(revision_offset::taken()),
        }
    }

    /// Records that all objects are at `place`.
    pub async fn done(self, place: &str) -> Result<()> {
        revision_offset::mark(&self.house, Some(&self.record), ("moved", place)).await.map(drop)
    }

    /// Removes the mark: the objects stay, and servers write again.
    pub async fn undo(self) -> Result<()> {
        revision_offset::unmark(&self.house, &self.record).await
    }
}
