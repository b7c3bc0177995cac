//! The installation's prefix: put before every key on the way out, taken off on the way in; with its revisions.

use std::ops::Range;

use bytes::Bytes;
use etcd_client::proto::PbKeyValue;

use super::revision_offset::RevisionOffset;
use crate::backend::{BackendError, KeyValue, Result, prefix_range};
use crate::values;

/// What stands before every key, and where its revisions begin.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    text: String,
    /// Where its revisions begin.
    pub origin: RevisionOffset,
}

impl Prefix {
    /// Kubernetes writes a prefix with a slash before it (storagebackend: path.Join("/", prefix)); one after it
    /// keeps `/a` from being the prefix of `/ab`. No key of the compaction protocol starts so.
    pub fn new(prefix: &str, origin: RevisionOffset) -> Self {
        let text = match prefix.trim_matches('/') {
            "" => "/".to_owned(),
            inner => format!("/{inner}/"),
        };
        Self { text, origin }
    }

    /// A key as etcd has it.
    pub fn key(&self, key: &str) -> String {
        format!("{}{key}", self.text)
    }

    /// A range as etcd has it; `None` when it is empty (an end of "" would mean one key to etcd). Every key begins
    /// with a slash, but for those by which this crate keeps house.
    pub fn range(&self, keys: &Range<String>) -> Option<(String, String)> {
        let all = prefix_range(values::ALL);
        let (start, end) = ((&keys.start).max(&all.start), (&keys.end).min(&all.end));
        (start < end).then(|| (self.key(start), self.key(end)))
    }

    /// A key as its writer named it.
    pub fn strip(&self, key: Vec<u8>) -> Result<String> {
        let text = String::from_utf8(key);
        let stripped = text.as_ref().ok().and_then(|key| key.strip_prefix(&self.text)).map(str::to_owned);
        stripped.ok_or_else(|| BackendError::Corrupt(format!("a key that is not ours: {text:?}")))
    }

    /// A pair as its writer wrote it.
    pub fn pair(&self, pair: PbKeyValue) -> Result<KeyValue> {
        Ok(KeyValue {
            key: self.strip(pair.key)?,
            value: Bytes::from(pair.value),
            create_revision: self.origin.revision(pair.create_revision),
            mod_revision: self.origin.revision(pair.mod_revision),
        })
    }
}
