//! Whether a running server may still write under its prefix: only while the record of the prefix is the one that the
//! server knows.
//!
//! A move of the objects changes that record first. Every write depends on the record, so no write is made that the
//! move would leave behind. Every server also watches the record, so that it reports why it accepts no writes before
//! a client writes.

use std::sync::Arc;
use std::time::Duration;

use drydock_storage::backend::{BackendError, Result, Revision, WatchItem};
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::keys::Prefix;
use crate::members::Members;
use crate::record;
use crate::requests::PrefixRequests;
use crate::revision_offset::{self, RevisionOffset};
use crate::watch::EtcdWatch;

/// The pause before the record is read again after a read or a watch of it has failed.
const PAUSE: Duration = Duration::from_secs(1);

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
            Some(why) => tracing::error!(why, "no writes are taken any more"),
            None => tracing::info!("writes are taken again"),
        }
        state.closed = closed;
    }

    /// Watches the record until the returned guard is dropped.
    pub fn follow(&self, members: &Members, prefix: &str) -> DropGuard {
        let stop = CancellationToken::new();
        // These revisions are etcd's own.
        let prefix = Prefix::new(prefix, RevisionOffset::default());
        let (permission, members, stopped) = (self.clone(), members.clone(), stop.clone());
        tokio::spawn(async move {
            stopped.run_until_cancelled(permission.listen(members, prefix)).await;
        });
        stop.drop_guard()
    }

    async fn listen(self, members: Members, prefix: Prefix) {
        let requests = PrefixRequests::new(members.clone(), prefix.clone());
        // No caller requests progress of this watch.
        let progress = tokio::sync::watch::Sender::new(0);
        loop {
            match requests.get(revision_offset::KEY, None).await {
                Ok((pair, at)) => {
                    self.learn(pair.as_ref().map(|pair| (raw(pair.mod_revision), &*pair.value)));
                    let watch =
                        EtcdWatch::of_record(members.clone(), prefix.clone(), at, progress.subscribe());
                    self.receive(watch).await;
                }
                Err(error) => tracing::debug!(%error, "the record of the prefix cannot be read"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Receives events until the watch ends.
    async fn receive(&self, watch: EtcdWatch) {
        let mut items = watch.start();
        while let Some(item) = items.recv().await {
            match item {
                WatchItem::Events(events) => events.iter().for_each(|event| {
                    self.learn(event.value.as_ref().map(|value| (raw(event.revision), &**value)));
                }),
                WatchItem::Progress(_) => {}
                WatchItem::Failed(error) => tracing::debug!(%error, "the record of the prefix is read again"),
            }
        }
    }
}

fn raw(revision: Revision) -> i64 {
    RevisionOffset::default().signed(revision)
}
