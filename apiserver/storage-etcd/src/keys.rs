//! The prefix and the revision offset of the installation: added to what is sent to etcd, removed from what it
//! returns.

use std::ops::Range;

use bytes::Bytes;
use drydock_storage::backend::{BackendError, KeyValue, Result, Revision, prefix_range};
use drydock_storage::values;
use etcd_client::proto::PbKeyValue;

/// The prefix of every key, and the revision offset.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    text: String,
    /// How etcd's revisions map to those of the prefix.
    pub revision_offset: RevisionOffset,
}

impl Prefix {
    /// Adds the slashes around a prefix. Kubernetes writes one before it (storagebackend: path.Join("/", prefix));
    /// the one after it keeps `/a` from being the prefix of `/ab`. The key of the compaction protocol does not start
    /// with a slash.
    pub fn new(prefix: &str, revision_offset: RevisionOffset) -> Self {
        let text = match prefix.trim_matches('/') {
            "" => "/".to_owned(),
            inner => format!("/{inner}/"),
        };
        Self { text, revision_offset }
    }

    /// Returns a key as etcd has it.
    pub fn key(&self, key: &str) -> String {
        format!("{}{key}", self.text)
    }

    /// Returns a range as etcd has it; `None` if it is empty (to etcd, an end of "" means a single key). The range is
    /// limited to keys that begin with a slash, which excludes the record of the prefix.
    pub fn range(&self, keys: &Range<String>) -> Option<(String, String)> {
        let all = prefix_range(values::ALL);
        let (start, end) = ((&keys.start).max(&all.start), (&keys.end).min(&all.end));
        (start < end).then(|| (self.key(start), self.key(end)))
    }

    /// Returns a key without the prefix. Fails if the key does not begin with it.
    pub fn strip(&self, key: Vec<u8>) -> Result<String> {
        let text = String::from_utf8(key);
        let stripped = text.as_ref().ok().and_then(|key| key.strip_prefix(&self.text)).map(str::to_owned);
        stripped.ok_or_else(|| BackendError::Corrupt(format!("a key that is not ours: {text:?}")))
    }

    /// Converts a pair: removes the prefix and applies the revision offset.
    pub fn pair(&self, pair: PbKeyValue) -> Result<KeyValue> {
        Ok(KeyValue {
            key: self.strip(pair.key)?,
            value: Bytes::from(pair.value),
            create_revision: self.revision_offset.revision(pair.create_revision),
            mod_revision: self.revision_offset.revision(pair.mod_revision),
        })
    }
}

/// How etcd's revisions map to those of a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RevisionOffset {
    /// Added to etcd's revisions.
    pub offset: u64,
    /// The oldest revision that can be read, and the oldest whose event a watch delivers.
    pub floor: Revision,
}

impl RevisionOffset {
    /// Converts one of etcd's revisions, which are signed and never negative.
    pub fn revision(&self, number: i64) -> Revision {
        Revision(number.max(0).unsigned_abs() + self.offset)
    }

    /// Converts a revision to etcd's. A revision beyond etcd's range becomes the highest one, which is as much in the
    /// future; a revision below the offset becomes -1, which is none of etcd's.
    pub fn signed(&self, revision: Revision) -> i64 {
        match revision.0.checked_sub(self.offset) {
            Some(number) => i64::try_from(number).unwrap_or(i64::MAX),
            None => -1,
        }
    }

    /// Converts a revision for a comparison with that of a key. 0 becomes -1: to etcd, 0 is the revision of a key
    /// that does not exist.
    pub fn compared(&self, revision: Revision) -> i64 {
        match self.signed(revision) {
            0 => -1,
            number => number,
        }
    }

    /// Fails for a read below the floor.
    pub fn check(&self, at: Revision) -> Result<()> {
        match at < self.floor {
            true => Err(BackendError::Compacted { requested: at, oldest: self.floor }),
            false => Ok(()),
        }
    }

    /// Fails for a watch whose first event may be below the floor.
    pub fn check_start(&self, after: Revision) -> Result<()> {
        match after.0.saturating_add(1) < self.floor.0 {
            true => Err(BackendError::Compacted { requested: after, oldest: self.floor }),
            false => Ok(()),
        }
    }
}
