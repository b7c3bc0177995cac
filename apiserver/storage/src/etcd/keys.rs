//! The installation's prefix: put before every key on the way out, taken off on the way in.

use std::ops::Range;

use bytes::Bytes;
use etcd_client::proto::PbKeyValue;

use crate::backend::{BackendError, KeyValue, Result, Revision};

/// What stands before every key.
#[derive(Clone, Debug)]
pub(super) struct Prefix(String);

impl Prefix {
    /// Kubernetes writes a prefix with a slash before it (storagebackend: path.Join("/", prefix)); one after it
    /// keeps `/a` from being the prefix of `/ab`. No key of the compaction protocol starts so.
    pub fn new(prefix: &str) -> Self {
        match prefix.trim_matches('/') {
            "" => Self("/".to_owned()),
            inner => Self(format!("/{inner}/")),
        }
    }

    /// A key as etcd has it.
    pub fn key(&self, key: &str) -> String {
        format!("{}{key}", self.0)
    }

    /// A range as etcd has it; `None` when it is empty (an end of "" would mean one key to etcd).
    pub fn range(&self, keys: &Range<String>) -> Option<(String, String)> {
        (keys.start < keys.end).then(|| (self.key(&keys.start), self.key(&keys.end)))
    }

    /// A key as its writer named it.
    pub fn strip(&self, key: Vec<u8>) -> Result<String> {
        let text = String::from_utf8(key);
        let stripped = text.as_ref().ok().and_then(|key| key.strip_prefix(&self.0)).map(str::to_owned);
        stripped.ok_or_else(|| BackendError::Corrupt(format!("a key that is not ours: {text:?}")))
    }

    /// A pair as its writer wrote it.
    pub fn pair(&self, pair: PbKeyValue) -> Result<KeyValue> {
        Ok(KeyValue {
            key: self.strip(pair.key)?,
            value: Bytes::from(pair.value),
            create_revision: revision(pair.create_revision),
            mod_revision: revision(pair.mod_revision),
        })
    }
}

/// etcd's revisions are signed and never negative.
pub(super) fn revision(number: i64) -> Revision {
    Revision(number.max(0).unsigned_abs())
}
