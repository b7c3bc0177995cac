//! Whether a running server may still write under its prefix: only while the record of the prefix is the one that the
//! server knows.
//!
//! A move of the objects changes that record first. Every write depends on the record, so no write is made that the
//! move would leave behind. Every server also watches the record ([`crate::record_watch`]), so that it reports why it
//! accepts no writes before a client writes.

use std::sync::Arc;

use drydock_storage::backend::{BackendError, Result};
use parking_lot::Mutex;

use crate::keys::RevisionOffset;
use crate::record;

/// What is known of the record; clones share it.
#[derive(Clone)]
pub(super) struct WritePermission {
    revision_offset: RevisionOffset,
    state: Arc<Mutex<RecordState>>,
}

struct RecordState {
    /// The record's revision in etcd.
    record: i64,
    /// Why writes are refused; `None` if they are accepted.
    closed: Option<String>,
}

impl WritePermission {
    /// Creates the permission for this revision offset, whose record was read at one of etcd's revisions.
    pub fn new(revision_offset: RevisionOffset, record: i64) -> Self {
        Self { revision_offset, state: Arc::new(Mutex::new(RecordState { record, closed: None })) }
    }

    /// Returns the revision of the record, on which a write depends. Fails if writes are refused.
    pub fn record(&self) -> Result<i64> {
        let state = self.state.lock();
        match &state.closed {
            Some(why) => Err(BackendError::Closed(why.clone())),
            None => Ok(state.record),
        }
    }

    /// Returns why writes are refused; `None` if they are accepted.
    pub fn why(&self) -> Option<String> {
        self.state.lock().closed.clone()
    }

    /// Takes in the present record and its revision; `None` if there is no record. A record older than the known one
    /// is ignored.
    pub fn learn(&self, record: Option<(i64, &[u8])>) {
        let mut state = self.state.lock();
        let closed = match record {
            Some((revision, _)) if revision < state.record => return,
            Some((_, value)) => record::closed(value, &self.revision_offset),
            None => Some("the record of the prefix was removed: start the server again".to_owned()),
        };
        state.record = record.map_or(state.record, |(revision, _)| revision);
        if state.closed == closed {
            return;
        }
        match &closed {
            Some(why) => tracing::error!(why, "refusing writes"),
            None => tracing::info!("accepting writes again"),
        }
        state.closed = closed;
    }
}
