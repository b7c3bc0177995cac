//! The table of a port's connections: which one gets a permit, and which one is closed for it.
//!
//! A connection counts for the address that it came from until a request on it has been authenticated, then for the
//! user. A new one always gets a permit, so that a probe is answered however many others connect:
//!
//! - an address at its bound loses a connection that has authenticated no user: the one that has been longest in the
//!   [`ConnectionStage`] in which the address has the most. So a probe, which passes each stage at once, is not
//!   closed for connections that stop in the middle of the handshake, ask for nothing, or send slowly;
//! - those whose handshake has not begun do not count for that bound: they cost little, and if they were closed,
//!   their clients would reconnect at once and displace others that wait. An address may have a quarter of all
//!   permits for them;
//! - when all permits are taken, the address with the most connections in one stage loses one in the same way; of
//!   addresses with equally many, the one whose connection has been there longest. So hundreds of addresses do not
//!   close a probe that has an address of its own;
//! - there are few handshakes at one time in which the client has sent much: the address with the most of them loses the
//!   one that is open for longest;
//! - a quarter of all permits is for connections that have authenticated no user yet. When users take the rest, the user
//!   with the most connections from one address loses the newest of those: an account that has a client on every node
//!   keeps them, and the long-lived connections stay.
//!
//! So no address and no user can take all permits, and no user has a bound while others leave permits free. Connections
//! of a verified front proxy are not counted: it has few, for all users.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use crate::request::user::Network;

use super::groups::{BoundedGroups, Groups, Id, Member};
use super::unfinished_heads::{Owner, unfinished_heads};

/// Handshakes at one time in which the client has sent much ([`super::client_stream`]): 16 MiB, if each is as long as may be.
pub(super) const LONG_HANDSHAKES_MAX: usize = 256;

/// The stage of a connection that has authenticated no user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ConnectionStage {
    /// It is open, and no ClientHello has come.
    Open,
    /// Its ClientHello has come, and its handshake waits for a permit ([`super::handshakes`]).
    Waiting,
    /// Its handshake is under way.
    Handshaking,
    /// Its handshake is done, and no request has come.
    Established,
    /// A request has come.
    Requesting,
}

impl ConnectionStage {
    /// The stages that have a bound in common with this one.
    fn bounded_with(self) -> &'static [Self] {
        match self {
            Self::Open | Self::Waiting => &[Self::Open, Self::Waiting],
            Self::Handshaking | Self::Established | Self::Requesting => {
                &[Self::Handshaking, Self::Established, Self::Requesting]
            }
        }
    }
}

/// The connections of a port. A `T` closes a connection.
pub(super) struct Connections<T> {
    permits: usize,
    per_address: usize,
    /// Number of the next step. A connection's id is the number of its first step.
    next: u64,
    open: HashMap<Id, OpenConnection<T>>,
    /// Those that have authenticated no user.
    strangers: Groups<(Network, ConnectionStage)>,
    /// Those that have, by the flow of the user and the address.
    users: Groups<(Arc<str>, Network)>,
    heads: BoundedGroups<Owner>,
    long_handshakes: BoundedGroups<Network>,
}

/// A connection that has a permit.
struct OpenConnection<T> {
    holder: Holder,
    /// Number of its last step: that it came to its stage, or began another request.
    step: u64,
    /// The owner that its unfinished head counts for, if it has one.
    unfinished_head: Option<Owner>,
    closes: T,
}

/// The holder for whom a connection counts.
enum Holder {
    Address(Network, ConnectionStage),
    User(Arc<str>, Network),
    Nobody,
}

impl Holder {
    /// The owner of the connection; `None` for a front proxy's.
    fn owner(&self) -> Option<Owner> {
        match self {
            Self::Address(source, _) => Some(Owner::Address(*source)),
            Self::User(flow, _) => Some(Owner::User(flow.clone())),
            Self::Nobody => None,
        }
    }
}

impl<T> Connections<T> {
    /// `permits` in all, and `per_address` for those from one address whose handshake has begun and that have
    /// authenticated no user.
    pub(super) fn new(permits: usize, per_address: usize) -> Self {
        let (open, strangers, users) = (HashMap::new(), Groups::default(), Groups::default());
        let (permits, per_address) = (permits.max(1), per_address.max(1));
        let (heads, long_handshakes) = (unfinished_heads(), BoundedGroups::new(LONG_HANDSHAKES_MAX));
        Self { permits, per_address, next: 0, open, strangers, users, heads, long_handshakes }
    }

    /// Gives a permit to a new connection. Returns its id, and the connection that lost its permit to it, if any.
    pub(super) fn take(&mut self, source: Network, closes: T) -> (Id, Option<T>) {
        let is_full = self.strangers.total() + self.users.total() >= self.permits;
        let loses = self
            .lost_by(source, ConnectionStage::Open)
            .or_else(|| is_full.then(|| self.cheapest()).flatten());
        let loses = loses.and_then(|id| self.leave(id));
        let id = self.number();
        let holder = Holder::Address(source, ConnectionStage::Open);
        self.open.insert(id, OpenConnection { holder, step: id, unfinished_head: None, closes });
        self.strangers.insert(&(source, ConnectionStage::Open), (id, id));
        (id, loses)
    }

    /// Records that a connection has come to a stage, or begins another request. Returns the connection that loses
    /// its permit because of this, if any. Does nothing once the connection has authenticated a user.
    pub(super) fn enter_stage(&mut self, stage: ConnectionStage, id: Id) -> Option<T> {
        let step = self.number();
        let OpenConnection { holder: Holder::Address(source, now), step: last, .. } =
            self.open.get_mut(&id)?
        else {
            return None;
        };
        let source = *source;
        let before = (std::mem::replace(now, stage), std::mem::replace(last, step));
        self.strangers.remove(&(source, before.0), (before.1, id));
        let loses = self.lost_by(source, stage);
        self.strangers.insert(&(source, stage), (step, id));
        loses.and_then(|id| self.leave(id))
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Records that a connection has authenticated a user of this flow. If it counted for its address, it counts
    /// for the flow from now on. Returns the connection that loses its permit because of this, if any; it may be
    /// the same one.
    pub(super) fn authenticated(&mut self, id: Id, flow: &str) -> Option<T> {
        let OpenConnection { holder, step, .. } = self.open.get_mut(&id)?;
        let Holder::Address(source, stage) = holder else { return None };
        let (source, stage, flow) = (*source, *stage, Arc::<str>::from(flow));
        *holder = Holder::User(flow.clone(), source);
        let last = std::mem::replace(step, id);
        self.strangers.remove(&(source, stage), (last, id));
        self.users.insert(&(flow, source), (id, id));
        let for_users = self.permits - self.permits / 4;
        let is_full = self.users.total() > for_users;
        is_full.then(|| self.newest_of_the_largest_user()).flatten().and_then(|id| self.leave(id))
    }

    /// Stops counting a connection, because it is a verified front proxy's.
    pub(super) fn exempt(&mut self, id: Id) {
        let Some(OpenConnection { holder, step, .. }) = self.open.get_mut(&id) else { return };
        let (before, step) = (std::mem::replace(holder, Holder::Nobody), *step);
        self.uncount(&before, (step, id));
    }

    /// Records whether a head on a connection has begun and not ended. Returns the connection that loses its permit
    /// because of this, if any.
    pub(super) fn has_unfinished_head(&mut self, id: Id, is_unfinished: bool) -> Option<T> {
        let open = self.open.get_mut(&id)?;
        if let Some(before) = open.unfinished_head.take() {
            self.heads.end(&before, id);
        }
        let owner = open.holder.owner().filter(|_| is_unfinished)?;
        let loses = self.heads.begin(&owner, id);
        open.unfinished_head = Some(owner);
        loses.and_then(|id| self.leave(id))
    }

    /// Records whether a connection has a handshake in which its client has sent much. Returns the connection that loses
    /// its permit because of this, if any.
    pub(super) fn has_long_handshake(&mut self, id: Id, is_long: bool) -> Option<T> {
        let Holder::Address(source, _) = &self.open.get(&id)?.holder else { return None };
        if !is_long {
            self.long_handshakes.end(source, id);
            return None;
        }
        let loses = self.long_handshakes.begin(source, id);
        loses.and_then(|id| self.leave(id))
    }

    /// Removes a connection; `None` if it has been removed before.
    pub(super) fn leave(&mut self, id: Id) -> Option<T> {
        let OpenConnection { holder, step, unfinished_head, closes } = self.open.remove(&id)?;
        if let Some(owner) = unfinished_head {
            self.heads.end(&owner, id);
        }
        if let Holder::Address(source, _) = &holder {
            self.long_handshakes.end(source, id);
        }
        self.uncount(&holder, (step, id));
        Some(closes)
    }

    /// Takes the permit from a connection that has authenticated no user, if there is one, because the process cannot
    /// open another.
    pub(super) fn relieve(&mut self) -> Option<T> {
        self.strangers_oldest().and_then(|id| self.leave(id))
    }

    fn uncount(&mut self, holder: &Holder, member: Member) {
        match holder {
            Holder::Address(source, stage) => self.strangers.remove(&(*source, *stage), member),
            Holder::User(flow, source) => self.users.remove(&(flow.clone(), *source), member),
            Holder::Nobody => {}
        }
    }

    /// The connection that an address loses when another one of it comes to a stage, if it has its bound already.
    fn lost_by(&self, source: Network, stage: ConnectionStage) -> Option<Id> {
        let (stages, of_handshakes) = (stage.bounded_with(), stage >= ConnectionStage::Handshaking);
        let bound = if of_handshakes { self.per_address } else { (self.permits / 4).max(1) };
        let sizes = || stages.iter().map(|stage| (self.strangers.size(&(source, *stage)), *stage));
        if sizes().map(|(size, _)| size).sum::<usize>() < bound {
            return None;
        }
        // Of two stages with equally many, the one whose oldest connection is older.
        let oldest = |(size, stage)| Some((size, Reverse(self.strangers.oldest(&(source, stage))?)));
        sizes().filter_map(oldest).max().map(|(_, Reverse((_, id)))| id)
    }

    /// The connection whose loss costs least: a stranger's if there is one.
    fn cheapest(&self) -> Option<Id> {
        self.strangers_oldest().or_else(|| self.newest_of_the_largest_user())
    }

    fn strangers_oldest(&self) -> Option<Id> {
        let group = self.strangers.largest()?;
        self.strangers.oldest(group).map(|(_, id)| id)
    }

    fn newest_of_the_largest_user(&self) -> Option<Id> {
        self.users.largest_and_newest().and_then(|flow| self.users.newest(flow))
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
