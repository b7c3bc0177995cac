//! The table of a port's connections: who gets a place, and which connection is closed for it.
//!
//! A connection counts for the address that it came from until a request on it has been authenticated, then for the
//! user. A new one always gets a place, so that a probe is answered whoever else connects:
//!
//! - an address at its bound loses the connection that took no step for longest, of those that have authenticated nobody;
//!   a step is that it opens, that its client says hello, that the handshake ends, and that a request begins. So a probe
//!   that goes on is not closed for those who wait, say nothing or send slowly;
//! - when all places are taken, the address with the most such connections loses one in the same way;
//! - a quarter of all places is for connections that have authenticated nobody yet. When users take the rest, the user
//!   with the most connections loses the newest one: the long-lived connections of many clients stay.
//!
//! So no address and no user can take all places, and no user has a bound while others leave places free. Connections
//! of a verified front proxy are not counted: it has few, for all users.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::groups::{Groups, Id, Member};

/// Where a connection comes from: an IPv4 address, or the /64 network of an IPv6 address, of which a host has all
/// addresses. Many hosts share one behind a masquerading NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Source {
    V4(Ipv4Addr),
    V6([u8; 8]),
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                Self::V6([a, b, c, d, e, f, g, h])
            }
        }
    }
}

/// The connections of a port; `T` is what a connection is closed by.
pub(super) struct Connections<T> {
    places: usize,
    per_address: usize,
    /// Number of the next step; that of its first one is a connection's own.
    next: u64,
    open: HashMap<Id, Open<T>>,
    /// Those that have authenticated nobody.
    strangers: Groups<Source>,
    /// Those that have, by the flow of the user.
    users: Groups<Arc<str>>,
}

/// A connection that has a place.
struct Open<T> {
    holder: Holder,
    /// Number of its last step.
    step: u64,
    closes: T,
}

/// Whom a connection counts for.
enum Holder {
    Address(Source),
    User(Arc<str>),
    Nobody,
}

impl<T> Connections<T> {
    /// `places` in all, and `per_address` for those from one address that have authenticated nobody.
    pub(super) fn new(places: usize, per_address: usize) -> Self {
        let (open, strangers, users) = (HashMap::new(), Groups::default(), Groups::default());
        Self { places: places.max(1), per_address: per_address.max(1), next: 0, open, strangers, users }
    }

    /// Gives a place to a new connection. The second is one that has lost its place for it.
    pub(super) fn take(&mut self, source: Source, closes: T) -> (Id, Option<T>) {
        let loses = if self.strangers.size(&source) >= self.per_address {
            self.strangers.oldest(&source)
        } else if self.strangers.total() + self.users.total() >= self.places {
            self.least_wanted().or_else(|| self.newest_of_the_largest_user())
        } else {
            None
        };
        let loses = loses.and_then(|id| self.leave(id));
        let id = self.number();
        self.open.insert(id, Open { holder: Holder::Address(source), step: id, closes });
        self.strangers.insert(&source, (id, id));
        (id, loses)
    }

    /// A connection that has authenticated nobody took a step.
    pub(super) fn stepped(&mut self, id: Id) {
        let step = self.number();
        let Some(Open { holder: Holder::Address(source), step: last, .. }) = self.open.get_mut(&id) else {
            return;
        };
        self.strangers.remove(source, (*last, id));
        self.strangers.insert(source, (step, id));
        *last = step;
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// A connection has authenticated a user of this flow: it counts for that flow from now on, if it counted for its
    /// address. Returns a connection that has lost its place for it, which may be the same one.
    pub(super) fn authenticated(&mut self, id: Id, flow: &str) -> Option<T> {
        let Open { holder, step, .. } = self.open.get_mut(&id)?;
        let Holder::Address(source) = holder else { return None };
        let (source, flow) = (*source, Arc::<str>::from(flow));
        *holder = Holder::User(flow.clone());
        let last = std::mem::replace(step, id);
        self.strangers.remove(&source, (last, id));
        self.users.insert(&flow, (id, id));
        let for_users = self.places - self.places / 4;
        let is_full = self.users.total() > for_users;
        is_full.then(|| self.newest_of_the_largest_user()).flatten().and_then(|id| self.leave(id))
    }

    /// A connection is a verified front proxy's: it is not counted from now on.
    pub(super) fn exempt(&mut self, id: Id) {
        let Some(Open { holder, step, .. }) = self.open.get_mut(&id) else { return };
        let (before, step) = (std::mem::replace(holder, Holder::Nobody), *step);
        self.uncount(&before, (step, id));
    }

    /// A connection has ended, if it had not lost its place before.
    pub(super) fn leave(&mut self, id: Id) -> Option<T> {
        let Open { holder, step, closes } = self.open.remove(&id)?;
        self.uncount(&holder, (step, id));
        Some(closes)
    }

    /// Takes the place of a connection whose loss costs least, if there is one: the process cannot open another.
    pub(super) fn relieve(&mut self) -> Option<T> {
        self.least_wanted().and_then(|id| self.leave(id))
    }

    fn uncount(&mut self, holder: &Holder, member: Member) {
        match holder {
            Holder::Address(source) => self.strangers.remove(source, member),
            Holder::User(flow) => self.users.remove(flow, member),
            Holder::Nobody => {}
        }
    }

    fn least_wanted(&self) -> Option<Id> {
        self.strangers.largest().and_then(|source| self.strangers.oldest(source))
    }

    fn newest_of_the_largest_user(&self) -> Option<Id> {
        self.users.largest().and_then(|flow| self.users.newest(flow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        text.parse::<IpAddr>().map_or(Source::V6([0; 8]), Source::from)
    }

    /// Opens connections from an address, and returns the numbers of those and of the ones that were closed.
    fn open(table: &mut Connections<Id>, from: &str, count: u64) -> (Vec<Id>, Vec<Id>) {
        let (mut opened, mut closed) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (id, loses) = table.take(source(from), table.next);
            opened.push(id);
            closed.extend(loses);
        }
        (opened, closed)
    }

    #[test]
    fn an_address_at_its_bound_loses_its_oldest() {
        let mut table = Connections::new(100, 4);
        let (other, _) = open(&mut table, "10.0.0.2", 1);
        let (opened, closed) = open(&mut table, "10.0.0.1", 6);
        assert_eq!(closed, opened[..2]);
        assert!(table.leave(other[0]).is_some(), "nobody else's was closed");
    }

    /// A probe from the address of an attacker was closed as the oldest, before it was answered.
    #[test]
    fn who_takes_steps_is_not_closed_for_those_who_wait() {
        let mut table = Connections::new(100, 4);
        let (probe, _) = open(&mut table, "10.0.0.1", 1);
        for _ in 0..20 {
            let (_, closed) = open(&mut table, "10.0.0.1", 3);
            assert!(!closed.contains(&probe[0]));
            table.stepped(probe[0]);
        }
        let (_, closed) = open(&mut table, "10.0.0.1", 4);
        assert!(closed.contains(&probe[0]), "until it waits itself");
        table.stepped(probe[0]);
        assert_eq!((table.open.len(), table.strangers.total()), (4, 4));
    }

    #[test]
    fn when_all_places_are_taken_the_address_with_the_most_loses() {
        let mut table = Connections::new(8, 6);
        let (many, _) = open(&mut table, "10.0.0.1", 6);
        let (_, closed) = open(&mut table, "10.0.0.2", 2);
        assert!(closed.is_empty());
        let (_, closed) = open(&mut table, "10.0.0.3", 2);
        assert_eq!(closed, many[..2]);
    }

    #[test]
    fn who_is_authenticated_is_not_closed_for_strangers() {
        let mut table = Connections::new(8, 2);
        let (known, _) = open(&mut table, "10.0.0.1", 1);
        assert_eq!(table.authenticated(known[0], "ann"), None);
        let (opened, closed) = open(&mut table, "10.0.0.1", 50);
        assert_eq!(closed, opened[..48]);
        assert!(table.leave(known[0]).is_some());
    }

    #[test]
    fn a_user_may_have_what_others_leave_and_gives_it_back() {
        let mut table = Connections::new(16, 16);
        let mut ids = Vec::new();
        for _ in 0..12 {
            let (id, _) = table.take(source("10.0.0.1"), table.next);
            assert_eq!(table.authenticated(id, "ann"), None);
            ids.push(id);
        }
        // Three quarters of the places are for users.
        let (thirteenth, _) = table.take(source("10.0.0.1"), table.next);
        assert_eq!(table.authenticated(thirteenth, "ann"), Some(thirteenth));
        let (bob, _) = table.take(source("10.0.0.2"), table.next);
        assert_eq!(table.authenticated(bob, "bob"), ids.pop(), "the newest of who has the most");
        assert_eq!(table.authenticated(bob, "bob"), None, "it counts once");
    }

    #[test]
    fn a_front_proxy_takes_no_place() {
        let mut table = Connections::new(4, 4);
        for _ in 0..20 {
            let (proxy, loses) = table.take(source("10.0.0.1"), table.next);
            assert_eq!(loses, None);
            table.exempt(proxy);
        }
        assert_eq!(open(&mut table, "10.0.0.2", 4).1, [] as [Id; 0]);
        assert_eq!((table.open.len(), table.strangers.total()), (24, 4));
    }

    #[test]
    fn one_place_is_enough_for_a_user() {
        let mut table = Connections::new(1, 4);
        let (only, _) = table.take(source("10.0.0.1"), 0);
        assert_eq!(table.authenticated(only, "ann"), None);
        assert_eq!(table.take(source("10.0.0.2"), 1).1, Some(0));
    }

    #[test]
    fn nothing_is_left_of_those_who_left() {
        let mut table = Connections::new(1_000, 10);
        for number in 0..500_u32 {
            let address = IpAddr::from(Ipv4Addr::from(number));
            let (id, _) = table.take(address.into(), 0);
            match number % 3 {
                0 => drop(table.authenticated(id, &number.to_string())),
                1 => table.exempt(id),
                _ => {}
            }
            assert!(table.leave(id).is_some() && table.leave(id).is_none());
        }
        assert_eq!((table.open.len(), table.strangers.total(), table.users.total()), (0, 0, 0));
    }

    #[test]
    fn a_network_of_ipv6_is_one_source_and_a_mapped_address_is_its_ipv4() {
        assert_eq!(source("2001:db8:1:2::1"), source("2001:db8:1:2:ffff::9"));
        assert_ne!(source("2001:db8:1:2::1"), source("2001:db8:1:3::1"));
        assert_eq!(source("::ffff:10.0.0.1"), source("10.0.0.1"));
    }
}
