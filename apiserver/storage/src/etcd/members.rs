//! The members of the cluster, and which of them is asked.
//!
//! All requests and watches of a server go to one member until it fails or falls silent; then to the next one. A channel
//! balanced over all of them would go on sending to one that accepts connections and never answers, as a paused process
//! or a lost route does, and would refuse writes for each one that is down.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use etcd_client::{Client, KvClient, WatchClient};
use tokio::sync::watch;

use super::config::Connector;
use super::contact::Contact;
use crate::backend::Result;

/// Every member.
#[derive(Clone)]
pub(super) struct Members {
    connector: Connector,
    clients: Arc<[KvClient]>,
    members: Arc<[Client]>,
    chosen: watch::Sender<MemberChoice>,
    contact: Contact,
}

/// How often the member that is asked was changed: whoever finds that one has failed says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberChoice(usize);

impl Members {
    /// A channel to each. Servers begin with different ones, so that they share the load.
    pub async fn new(connector: Connector) -> Result<Self> {
        let (mut clients, mut members) = (Vec::new(), Vec::new());
        for member in 0..connector.members() {
            let client = connector.connect(member).await?;
            clients.push(client.kv_client().max_decoding_message_size(usize::MAX));
            members.push(client);
        }
        let first = RandomState::new().build_hasher().finish() % clients.len().max(1) as u64;
        let chosen = watch::Sender::new(MemberChoice(usize::try_from(first).unwrap_or_default()));
        let (clients, members) = (clients.into(), members.into());
        Ok(Self { connector, clients, members, chosen, contact: Contact::new() })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.clients.len()
    }

    /// The member that is asked at present.
    pub fn chosen(&self) -> MemberChoice {
        *self.chosen.borrow()
    }

    /// The member that is asked at present, or the next one after it that is none of `others`; not all of them are.
    pub fn chosen_beside(&self, others: &[MemberChoice]) -> MemberChoice {
        let (present, count) = (self.chosen(), self.count());
        let is_other = |chosen: &MemberChoice| others.iter().any(|other| other.0 % count == chosen.0 % count);
        let choices = (0..count).map(|steps| MemberChoice(present.0.wrapping_add(steps)));
        choices.into_iter().find(|chosen| !is_other(chosen)).unwrap_or(present)
    }

    /// Tells when another one is asked.
    pub fn choices(&self) -> watch::Receiver<MemberChoice> {
        self.chosen.subscribe()
    }

    /// Its channel.
    pub fn client(&self, chosen: MemberChoice) -> KvClient {
        self.clients[chosen.0 % self.clients.len()].clone()
    }

    /// The same channel, for what is about the member itself.
    pub fn member(&self, chosen: MemberChoice) -> Client {
        self.members[chosen.0 % self.members.len()].clone()
    }

    /// A watch's connection of its own to it.
    pub async fn watch_client(&self, chosen: MemberChoice) -> Result<WatchClient> {
        Ok(self.connector.connect(chosen.0 % self.clients.len()).await?.watch_client())
    }

    /// Whether there are answers.
    pub fn contact(&self) -> &Contact {
        &self.contact
    }

    /// It has failed: the next one is asked from now on, unless another request has found that out before.
    pub fn leave(&self, chosen: MemberChoice) {
        let next = MemberChoice(chosen.0.wrapping_add(1));
        let left = self.chosen.send_if_modified(|present| {
            let is_first = *present == chosen;
            if is_first {
                *present = next;
            }
            is_first
        });
        let member = next.0 % self.count();
        match left && self.count() > 1 {
            true if self.contact.turns() => {
                tracing::info!(member, "another member of etcd is asked from now on");
            }
            true => tracing::debug!(member, "another member of etcd is asked"),
            false => {}
        }
    }
}
