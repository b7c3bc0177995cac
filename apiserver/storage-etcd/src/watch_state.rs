//! What etcd has reported on a watch, and what the watch delivers of it.

use drydock_storage::backend::{BackendError, Result, Revision, WatchItem};
use etcd_client::proto::PbWatchResponse;

use crate::assemble::Assembler;
use crate::keys::{Prefix, RevisionOffset};
use crate::requests::header;
use crate::stream_liveness::{self, StreamLiveness};

/// The state of one watch.
pub(super) struct WatchState {
    revision_offset: RevisionOffset,
    assembler: Assembler,
    /// The last round of progress that was requested from etcd.
    asked: u64,
    /// The last round that was answered. A request that a caller makes while etcd is being asked is a later round,
    /// for which etcd is asked again: the answer on its way may be too old for that caller.
    answered: u64,
    /// The revision after which the present stream began.
    after: Revision,
    /// The newest revision that the stream has reported; `None` before its first response.
    seen: Option<Revision>,
}

impl WatchState {
    /// Creates a watch after a revision; `round` is the last round of progress that callers had requested by then.
    pub fn new(prefix: Prefix, after: Revision, round: u64) -> Self {
        let (revision_offset, assembler) = (prefix.revision_offset, Assembler::new(prefix, after));
        Self { revision_offset, assembler, asked: round, answered: round, after, seen: None }
    }

    /// Prepares for a new stream. Returns the revision after which it must begin.
    pub fn restart(&mut self) -> Revision {
        (self.after, self.seen) = (self.assembler.restart(), None);
        self.after
    }

    /// Whether `round` has not been answered.
    pub fn is_unanswered(&self, round: u64) -> bool {
        self.answered != round
    }

    /// The last round that was answered.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// The last round that was requested from etcd.
    pub fn round(&self) -> u64 {
        self.asked
    }

    /// Records that a round is being requested from etcd.
    pub fn asked(&mut self, round: u64) {
        self.asked = round;
    }

    /// Whether etcd may have reached the first revision of the stream: before that it reports no progress.
    pub fn may_report(&self) -> bool {
        self.seen.is_some_and(|seen| seen > self.after)
    }

    /// Returns the item that a response produces, if any. Fails if etcd canceled the watch.
    pub fn receive(
        &mut self,
        response: PbWatchResponse,
        liveness: &mut StreamLiveness,
    ) -> Result<Option<WatchItem>> {
        // The first response is about the stream's own watch.
        let is_pong = self.seen.is_some() && stream_liveness::is_pong(&response);
        if response.canceled && !is_pong {
            return Err(self.canceled(&response));
        }
        let newest = header(&self.revision_offset, response.header.as_ref())?;
        self.seen = self.seen.max(Some(newest));
        if is_pong {
            return Ok(self.pong(newest, liveness.answered()));
        }
        match response.events.is_empty() && !response.fragment {
            true if response.created => Ok(None),
            true => Ok(self.progress(newest, response.watch_id)),
            false => {
                let events = self.assembler.take(response)?;
                Ok((!events.is_empty()).then_some(WatchItem::Events(events)))
            }
        }
    }

    fn progress(&mut self, newest: Revision, of: i64) -> Option<WatchItem> {
        let reached = self.assembler.progress(newest)?;
        if of == stream_liveness::NO_WATCH {
            self.answered = self.asked;
        }
        Some(WatchItem::Progress(reached))
    }

    /// Returns the progress that a ping's answer proves: if etcd's newest revision is that of the watch, no event is
    /// outstanding.
    fn pong(&mut self, newest: Revision, round: Option<u64>) -> Option<WatchItem> {
        let round = round.filter(|round| *round != self.answered && self.assembler.is_at(newest))?;
        self.answered = round;
        Some(WatchItem::Progress(newest))
    }

    fn canceled(&self, response: &PbWatchResponse) -> BackendError {
        match response.compact_revision {
            0 => BackendError::Unavailable(format!("etcd canceled the watch: {}", response.cancel_reason)),
            at => {
                BackendError::Compacted { requested: self.after, oldest: self.revision_offset.revision(at) }
            }
        }
    }
}
