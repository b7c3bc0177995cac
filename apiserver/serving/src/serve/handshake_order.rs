//! Whose handshake is next, and how many an address has begun. Pure: time comes from the caller.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::time::{Duration, Instant};

use super::groups::Id;
use crate::request::user::Network;

/// The span of time in which the handshakes of an address are counted.
pub(super) const SPAN: Duration = Duration::from_millis(100);

/// The connections that wait, by source: sources take turns, and of one source the newest and the oldest do.
pub(super) struct WaitingHandshakes<T> {
    by_source: BTreeMap<Network, OfSource<T>>,
    last: Option<Network>,
}

struct OfSource<T> {
    by_age: BTreeMap<Id, T>,
    is_oldest_next: bool,
}

impl<T> Default for OfSource<T> {
    fn default() -> Self {
        Self { by_age: BTreeMap::new(), is_oldest_next: false }
    }
}

impl<T> Default for WaitingHandshakes<T> {
    fn default() -> Self {
        Self { by_source: BTreeMap::new(), last: None }
    }
}

impl<T> WaitingHandshakes<T> {
    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.by_source.is_empty()
    }

    pub(super) fn push(&mut self, source: Network, id: Id, who: T) {
        self.by_source.entry(source).or_default().by_age.insert(id, who);
    }

    pub(super) fn remove(&mut self, source: Network, id: Id) -> Option<T> {
        let of_source = self.by_source.get_mut(&source)?;
        let who = of_source.by_age.remove(&id);
        if of_source.by_age.is_empty() {
            self.by_source.remove(&source);
        }
        who
    }

    /// Takes the next connection of a source for which `may_begin` holds.
    pub(super) fn pop(&mut self, may_begin: impl Fn(&Network) -> bool) -> Option<(Network, T)> {
        let after = self.last.map_or(Unbounded, Excluded);
        let later = self.by_source.range((after, Unbounded));
        let source = *later.chain(&self.by_source).find(|(source, _)| may_begin(source))?.0;
        self.last = Some(source);
        let of_source = self.by_source.get_mut(&source)?;
        let ages = &of_source.by_age;
        let next = if of_source.is_oldest_next { ages.first_key_value() } else { ages.last_key_value() };
        let id = *next?.0;
        of_source.is_oldest_next = !of_source.is_oldest_next;
        self.remove(source, id).map(|who| (source, who))
    }
}

/// The handshakes that began within the last [`SPAN`].
pub(super) struct RecentHandshakes {
    most: usize,
    order: VecDeque<(Instant, Network)>,
    by_source: HashMap<Network, usize>,
}

impl RecentHandshakes {
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), order: VecDeque::new(), by_source: HashMap::new() }
    }

    pub(super) fn may_begin(&self, source: &Network) -> bool {
        self.by_source.get(source).is_none_or(|count| *count < self.most)
    }

    pub(super) fn add(&mut self, source: Network, now: Instant) {
        self.order.push_back((now, source));
        *self.by_source.entry(source).or_default() += 1;
    }

    pub(super) fn next_forgotten(&self) -> Option<Instant> {
        self.order.front().map(|(began, _)| *began + SPAN)
    }

    pub(super) fn forget(&mut self, now: Instant) {
        while self.next_forgotten().is_some_and(|moment| moment <= now) {
            let Some((_, source)) = self.order.pop_front() else { return };
            if let Some(count) = self.by_source.get_mut(&source) {
                *count -= 1;
                if *count == 0 {
                    self.by_source.remove(&source);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(last: u8) -> Network {
        Network::from(std::net::IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn an_address_with_thousands_delays_no_other() {
        let mut waiting = WaitingHandshakes::default();
        for id in 0..5_000 {
            waiting.push(source(1), id, ("flood", id));
        }
        waiting.push(source(2), 5_000, ("other", 5_000));
        waiting.push(source(3), 5_001, ("another", 5_001));
        let order: Vec<_> = std::iter::from_fn(|| Some(waiting.pop(|_| true)?.1)).take(4).collect();
        assert_eq!(order, [("flood", 4_999), ("other", 5_000), ("another", 5_001), ("flood", 0)]);
    }

    /// Eight clients that came again as soon as they were served were each time the newest, and a probe from their
    /// address waited for three seconds.
    #[test]
    fn who_waits_beside_clients_that_come_again_at_once_is_next_but_one() {
        let mut waiting = WaitingHandshakes::default();
        (0..9).for_each(|id| waiting.push(source(1), id, id));
        let mut served = Vec::new();
        for id in 9..12 {
            served.extend(waiting.pop(|_| true).map(|(_, id)| id));
            waiting.push(source(1), id, id);
        }
        assert_eq!(served, [8, 0, 10]);
    }

    #[test]
    fn nothing_is_kept_of_a_source_that_began_long_ago() {
        let (mut begun, now) = (RecentHandshakes::new(1), Instant::now());
        begun.add(source(1), now);
        assert!(!begun.may_begin(&source(1)) && begun.may_begin(&source(2)));
        begun.forget(now + SPAN);
        assert!(begun.may_begin(&source(1)) && begun.by_source.is_empty() && begun.order.is_empty());
    }
}
