//! The members of the cluster, and which of them is in use.
//!
//! All requests and watches of a server go to one member until it fails or falls silent, and then to the next one. A
//! channel that is balanced over all members would keep sending to one that accepts connections and never answers, as
//! with a paused process or a lost route, and would fail writes for each member that is down.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use drydock_storage::backend::Result;
use etcd_client::{Client, KvClient, WatchClient};
use tokio::sync::watch;

use crate::config::Connector;
use crate::quorum_contact::QuorumContact;

/// How long one of several members may be silent before another is asked.
pub(super) const SILENCE: Duration = Duration::from_secs(2);
/// The first pause before a retry; it doubles up to the longest.
pub(super) const PAUSE: Duration = Duration::from_millis(20);
/// The longest pause: an election takes about a second.
const LONGEST_PAUSE: Duration = Duration::from_millis(300);

/// The clients of all members; clones share which member is in use.
#[derive(Clone)]
pub(super) struct Members {
    connector: Connector,
    clients: Arc<[KvClient]>,
    members: Arc<[Client]>,
    chosen: watch::Sender<MemberChoice>,
    contact: QuorumContact,
}

/// Which member is in use: the number of switches so far. A request that failed names the choice it used, so that
/// several failures of one member cause one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberChoice(usize);

impl Members {
    /// Creates a channel to each member. Each server begins with a random one, so that servers share the load.
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
        Ok(Self { connector, clients, members, chosen, contact: QuorumContact::new() })
    }

    /// Number of members.
    pub fn count(&self) -> usize {
        self.clients.len()
    }

    /// The member in use.
    pub fn chosen(&self) -> MemberChoice {
        *self.chosen.borrow()
    }

    /// Returns the first member that is not in `others`, starting with the member in use. There must be one.
    pub fn chosen_beside(&self, others: &[MemberChoice]) -> MemberChoice {
        let (present, count) = (self.chosen(), self.count());
        let is_other = |chosen: &MemberChoice| others.iter().any(|other| other.0 % count == chosen.0 % count);
        let choices = (0..count).map(|steps| MemberChoice(present.0.wrapping_add(steps)));
        choices.into_iter().find(|chosen| !is_other(chosen)).unwrap_or(present)
    }

    /// Returns a receiver that is notified of each switch.
    pub fn choices(&self) -> watch::Receiver<MemberChoice> {
        self.chosen.subscribe()
    }

    /// Returns the channel of a member.
    pub fn client(&self, chosen: MemberChoice) -> KvClient {
        self.clients[chosen.0 % self.clients.len()].clone()
    }

    /// Returns the same channel for requests about the member itself.
    pub fn member(&self, chosen: MemberChoice) -> Client {
        self.members[chosen.0 % self.members.len()].clone()
    }

    /// Opens a connection to a member for one watch alone.
    pub async fn watch_client(&self, chosen: MemberChoice) -> Result<WatchClient> {
        Ok(self.connector.connect(chosen.0 % self.clients.len()).await?.watch_client())
    }

    /// The record of whether etcd answers.
    pub fn contact(&self) -> &QuorumContact {
        &self.contact
    }

    /// Switches from a member that has failed to the next one, unless another request has already switched.
    pub fn switch_from(&self, chosen: MemberChoice) {
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
            true if self.contact.record_switch() => {
                tracing::info!(member, "another member of etcd is asked from now on");
            }
            true => tracing::debug!(member, "another member of etcd is asked"),
            false => {}
        }
    }
}

/// Returns the pause after `pause`.
pub(super) fn longer(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
}
