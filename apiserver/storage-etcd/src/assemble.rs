//! Assembles the responses of a watch into whole revisions.
//!
//! etcd sends a large response in fragments, which may split the events of one revision. So the last revision of a
//! fragment is held back until the next fragment arrives. Events that were delivered before are dropped: a store that
//! was restored, or a server with the fault of etcd issue 19675, may send them again.

use bytes::Bytes;
use drydock_storage::backend::{BackendEvent, Result, Revision};
use etcd_client::proto::{PbEvent, PbWatchResponse};

use crate::keys::Prefix;

/// The revision up to which events are delivered, and the events that are held back.
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

    /// Discards the events that are held back, and returns the revision after which a new stream must start: it
    /// delivers them again.
    pub fn restart(&mut self) -> Revision {
        self.held.clear();
        self.delivered
    }

    /// Returns the events that are complete with this response. Fails if a key is not under the prefix.
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

    /// Returns the progress to report; `None` if it is below what was delivered, or if events are held back.
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
            _ => self.prefix.revision_offset.revision(pair.create_revision),
        };
        Ok(Some(BackendEvent {
            revision: self.prefix.revision_offset.revision(pair.mod_revision),
            create_revision: created,
            key: self.prefix.strip(pair.key)?,
            value: (!deleted).then(|| Bytes::from(pair.value)),
            previous,
        }))
    }
}

#[cfg(test)]
mod tests;
