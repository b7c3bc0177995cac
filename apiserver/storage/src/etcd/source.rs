//! A prefix from which objects are moved elsewhere.

use super::record;
use super::requests::Requests;
use super::revision_offset::{self, RevisionOffset};
use super::{EtcdBackend, EtcdConfig, about, reach};
use crate::backend::{KeyValue, Result, Revision};

/// A prefix that is read, and closed to servers meanwhile.
pub struct Source {
    backend: EtcdBackend,
    /// Those that write its record; revisions are etcd's own.
    house: Requests,
    record: Option<KeyValue>,
}

/// A mark that says that objects are being moved.
pub struct Leaving {
    house: Requests,
    origin: RevisionOffset,
    record: KeyValue,
}

impl Source {
    /// Looks at a prefix, and writes nothing to it. One from which objects are being moved already is one where that was
    /// broken off.
    pub async fn look(config: &EtcdConfig) -> Result<Self> {
        let (members, house) = reach(config, RevisionOffset::default()).await?;
        let existing = revision_offset::existing(&house).await;
        let (origin, record) = existing.map_err(|error| about(&config.prefix, error))?;
        let backend = EtcdBackend::at(config, members, origin, None).await?;
        Ok(Self { backend, house, record })
    }

    /// What is read.
    pub fn backend(&self) -> &EtcdBackend {
        &self.backend
    }

    /// The mark that a move left which was broken off.
    pub fn left(&self) -> Option<Leaving> {
        let record = self.record.as_ref().filter(|record| record::is_moving(record))?;
        Some(self.leaving(record.clone()))
    }

    /// Closes it to servers: none of them writes any more.
    pub async fn close(&self, place: &str) -> Result<Leaving> {
        let record = revision_offset::mark(&self.house, self.record.as_ref(), ("moving", place)).await?;
        Ok(self.leaving(record))
    }

    fn leaving(&self, record: KeyValue) -> Leaving {
        Leaving { house: self.house.clone(), origin: self.backend.prefix.origin, record }
    }
}

impl Leaving {
    /// Which attempt at a move it is: another one has another number.
    pub fn attempt(&self) -> u64 {
        self.record.mod_revision.0
    }

    /// The last revision before the mark.
    pub fn at(&self) -> Revision {
        Revision(self.record.mod_revision.0 + self.origin.offset - 1)
    }

    /// Refuses if somebody else has written the mark since.
    pub async fn stands(&self) -> Result<()> {
        let (present, _) = self.house.get(revision_offset::KEY, None).await?;
        match present.is_some_and(|pair| pair.mod_revision == self.record.mod_revision) {
            true => Ok(()),
            false => Err(revision_offset::taken()),
        }
    }

    /// All objects are at `place`.
    pub async fn done(self, place: &str) -> Result<()> {
        revision_offset::mark(&self.house, Some(&self.record), ("moved", place)).await.map(drop)
    }

    /// They stay: servers write again.
    pub async fn undo(self) -> Result<()> {
        revision_offset::unmark(&self.house, &self.record).await
    }
}
