//! What a watch has been told by etcd, and what of that it tells.

use etcd_client::proto::PbWatchResponse;

use super::assemble::Assembler;
use super::keys::Prefix;
use super::requests::header;
use super::revision_offset::RevisionOffset;
use super::stream_liveness::{self, StreamLiveness};
use crate::backend::{BackendError, Result, Revision, WatchItem};

/// What was told.
pub(super) struct WatchState {
    origin: RevisionOffset,
    assembler: Assembler,
    /// The round of progress that etcd was asked for last.
    asked: u64,
    /// The last round that was answered. A request that comes while etcd is being asked is a later round, and
    /// etcd is asked once more: the answer on its way may be older than what the caller wants to know of.
    answered: u64,
    /// After which revision the present stream began.
    after: Revision,
    /// The newest revision that it has told of; none before it was made.
    seen: Option<Revision>,
}

impl WatchState {
    /// A watch after a revision, which begins when `round` is the last round of progress.
    pub fn new(prefix: Prefix, after: Revision, round: u64) -> Self {
        let (origin, assembler) = (prefix.origin, Assembler::new(prefix, after));
        Self { origin, assembler, asked: round, answered: round, after, seen: None }
    }

    /// After which revision a new stream begins.
    pub fn restart(&mut self) -> Revision {
        (self.after, self.seen) = (self.assembler.restart(), None);
        self.after
    }

    /// Whether a round is not answered.
    pub fn owes(&self, round: u64) -> bool {
        self.answered != round
    }

    /// The last round that was answered.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// The last round that etcd was asked for.
    pub fn round(&self) -> u64 {
        self.asked
    }

    /// etcd is being asked for a round.
    pub fn asked(&mut self, round: u64) {
        self.asked = round;
    }

    /// Whether etcd can be at the first revision of the stream: before that it tells no progress.
    pub fn may_be_told(&self) -> bool {
        self.seen.is_some_and(|seen| seen > self.after)
    }

    /// What a response tells.
    pub fn receive(
        &mut self,
        response: PbWatchResponse,
        liveness: &mut StreamLiveness,
    ) -> Result<Option<WatchItem>> {
        // The first response is about the watch itself.
        let is_pong = self.seen.is_some() && stream_liveness::is_pong(&response);
        if response.canceled && !is_pong {
            return Err(self.canceled(&response));
        }
        let newest = header(&self.origin, response.header.as_ref())?;
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
        let told = self.assembler.progress(newest)?;
        if of == stream_liveness::NO_WATCH {
            self.answered = self.asked;
        }
        Some(WatchItem::Progress(told))
    }

    /// What a ping's answer tells of progress: where etcd is where the watch is, there is nothing more to come.
    fn pong(&mut self, newest: Revision, round: Option<u64>) -> Option<WatchItem> {
        let round = round.filter(|round| *round != self.answered && self.assembler.is_at(newest))?;
        self.answered = round;
        Some(WatchItem::Progress(newest))
    }

    fn canceled(&self, response: &PbWatchResponse) -> BackendError {
        match response.compact_revision {
            0 => BackendError::Unavailable(format!("etcd canceled the watch: {}", response.cancel_reason)),
            at => BackendError::Compacted { requested: self.after, oldest: self.origin.revision(at) },
        }
    }
}
