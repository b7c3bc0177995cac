//! The prefix and the revision offset of the installation: added to what is sent to etcd, removed from what it
//! returns.

use std::ops::Range;

use bytes::Bytes;
use drydock_storage::backend::{BackendError, KeyValue, Result, prefix_range};
use drydock_storage::values;
use etcd_client::proto::PbKeyValue;

use crate::revision_offset::RevisionOffset;

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
