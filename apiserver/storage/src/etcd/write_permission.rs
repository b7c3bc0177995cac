//! Whether a running server may still write under its prefix: only while the record of its origin stands there as the
//! server knows it.
//!
//! Whoever moves the objects elsewhere writes that record first. Every write depends on it, so none is made that would
//! be left behind; and every server watches it, so that it says what has become of its store before anybody writes.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::keys::Prefix;
use super::members::Members;
use super::record;
use super::requests::Requests;
use super::revision_offset::{self, RevisionOffset};
use super::watch::Watch;
use crate::backend::{BackendError, Result, Revision, WatchItem};

/// The pause before the record is read again by whom etcd did not let follow it.
const PAUSE: Duration = Duration::from_secs(1);

/// What is known of it; all clones know the same.
#[derive(Clone)]
pub(super) struct WritePermission {
    origin: RevisionOffset,
    known: Arc<Mutex<Known>>,
}

struct Known {
    /// The record's revision in etcd.
    record: i64,
    /// Why nothing may be written.
    closed: Option<String>,
}

impl WritePermission {
    /// An origin whose record was read at a revision of etcd's.
    pub fn new(origin: RevisionOffset, record: i64) -> Self {
        Self { origin, known: Arc::new(Mutex::new(Known { record, closed: None })) }
    }

    /// The record's revision, on which a write depends.
    pub fn record(&self) -> Result<i64> {
        let known = self.known.lock();
        match &known.closed {
            Some(why) => Err(BackendError::Closed(why.clone())),
            None => Ok(known.record),
        }
    }

    /// Why no writes are taken.
    pub fn why(&self) -> Option<String> {
        self.known.lock().closed.clone()
    }

    /// The record is this, of that revision, or there is none. What is older than what is known says nothing.
    pub fn learn(&self, record: Option<(i64, &[u8])>) {
        let mut known = self.known.lock();
        let closed = match record {
            Some((revision, _)) if revision < known.record => return,
            Some((_, value)) => record::closed(value, &self.origin),
            None => Some("the record of the prefix was removed: start the server again".to_owned()),
        };
        known.record = record.map_or(known.record, |(revision, _)| revision);
        if known.closed == closed {
            return;
        }
        match &closed {
            Some(why) => tracing::error!(why, "no writes are taken any more"),
            None => tracing::info!("writes are taken again"),
        }
        known.closed = closed;
    }

    /// Follows the record until what is returned is dropped.
    pub fn follow(&self, members: &Members, prefix: &str) -> DropGuard {
        let stop = CancellationToken::new();
        // Revisions are etcd's own here.
        let prefix = Prefix::new(prefix, RevisionOffset::default());
        let (permission, members, stopped) = (self.clone(), members.clone(), stop.clone());
        tokio::spawn(async move {
            stopped.run_until_cancelled(permission.listen(members, prefix)).await;
        });
        stop.drop_guard()
    }

    async fn listen(self, members: Members, prefix: Prefix) {
        let requests = Requests::new(members.clone(), prefix.clone());
        // Nobody asks for progress.
        let progress = tokio::sync::watch::Sender::new(0);
        loop {
            match requests.get(revision_offset::KEY, None).await {
                Ok((pair, at)) => {
                    self.learn(pair.as_ref().map(|pair| (raw(pair.mod_revision), &*pair.value)));
                    let watch = Watch::of_record(members.clone(), prefix.clone(), at, progress.subscribe());
                    self.receive(watch).await;
                }
                Err(error) => tracing::debug!(%error, "the record of the prefix cannot be read"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Until the watch ends.
    async fn receive(&self, watch: Watch) {
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
