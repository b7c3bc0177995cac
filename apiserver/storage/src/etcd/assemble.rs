//! Whole revisions out of a watch's responses.
//!
//! A large response comes in fragments, which may part the events of one revision. The last revision of a
//! fragment is therefore held back until the next one comes. What was delivered before is dropped: a store that
//! was restored, or a server with the fault of etcd issue 19675, may send it again.

use bytes::Bytes;
use etcd_client::proto::{PbEvent, PbWatchResponse};

use super::keys::Prefix;
use crate::backend::{BackendEvent, Result, Revision};

/// What has been delivered and what is held back.
pub(super) struct Assembler {
    prefix: Prefix,
    /// Everything up to here has been delivered.
    delivered: Revision,
    held: Vec<BackendEvent>,
}

impl Assembler {
    /// Starts after a revision.
    pub fn new(prefix: Prefix, delivered: Revision) -> Self {
        Self { prefix, delivered, held: Vec::new() }
    }

    /// After which revision a new stream goes on; what is held back will come again.
    pub fn restart(&mut self) -> Revision {
        self.held.clear();
        self.delivered
    }

    /// The events that are complete with this response.
    pub fn take(&mut self, response: PbWatchResponse) -> Result<Vec<BackendEvent>> {
        for event in response.events {
            let event = self.event(event)?;
            self.held.extend(event.filter(|event| event.revision > self.delivered));
        }
        let ready = match (response.fragment, self.held.last()) {
            (true, Some(last)) => {
                let open = last.revision;
                let split = self.held.partition_point(|event| event.revision < open);
                let rest = self.held.split_off(split);
                std::mem::replace(&mut self.held, rest)
            }
            _ => std::mem::take(&mut self.held),
        };
        if let Some(last) = ready.last() {
            self.delivered = last.revision;
        }
        Ok(ready)
    }

    /// The progress to tell, unless it is behind what was told.
    pub fn progress(&mut self, upto: Revision) -> Option<Revision> {
        if upto < self.delivered || !self.held.is_empty() {
            return None;
        }
        self.delivered = upto;
        Some(upto)
    }

    /// Whether everything up to a revision has been delivered, and nothing beyond.
    pub fn is_at(&self, revision: Revision) -> bool {
        self.delivered == revision && self.held.is_empty()
    }

    fn event(&self, event: PbEvent) -> Result<Option<BackendEvent>> {
        let Some(pair) = event.kv else { return Ok(None) };
        let deleted = event.r#type == etcd_client::EventType::Delete as i32;
        let previous = event.prev_kv.map(|pair| self.prefix.pair(pair)).transpose()?;
        let created = match (deleted, &previous) {
            (true, Some(previous)) => previous.create_revision,
            _ => self.prefix.origin.revision(pair.create_revision),
        };
        Ok(Some(BackendEvent {
            revision: self.prefix.origin.revision(pair.mod_revision),
            create_revision: created,
            key: self.prefix.strip(pair.key)?,
            value: (!deleted).then(|| Bytes::from(pair.value)),
            previous,
        }))
    }
}

#[cfg(test)]
mod tests;
