//! The order of TLS handshakes.
//!
//! A handshake costs a signature and a key exchange, all at once when the ClientHello has been read. So only a few
//! may be worked on between two turns of an established connection. Addresses take turns, and within one address the
//! newest and the oldest connection alternate: a probe waits neither behind a flood from its own address, nor for as
//! long as clients of that address reconnect at once.
//!
//! An address may begin as many handshakes in a second as it may have connections that have authenticated no user
//! ([`super::connections`]), a tenth of them in each tenth of a second. So a connection that is closed for others of
//! its address was open for about a second, clients that reconnect as soon as they are closed cause no more
//! handshakes than that, and a probe beside them waits for a few tenths of a second. The handshakes of a tenth of a
//! second may begin together. Reviews are spaced out instead ([`crate::auth::review`]); with that, clients that
//! reconnect at once would be the newest each time.
//!
//! Verifying the certificates that a client has shown costs as much again. Connections that wait for that go before
//! those whose handshake has not begun, and are not counted a second time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::groups::Id;
use crate::request::user::Network;

/// The span of time in which the handshakes of an address are counted, and how many such spans a second has.
const SPAN: Duration = Duration::from_millis(100);
const PART: usize = 10;

/// Permits for each thread. A task that gets one waits for its turn of the runtime before it works: with one permit, a
/// server that has hundreds of requests to work on would do one handshake in all their turns, and a probe in the middle
/// of hundreds of connections of its address would wait for that many rounds.
const EACH_THREAD: usize = 4;

/// Bounds the handshakes of a port that are worked on at one time.
#[derive(Clone)]
pub(super) struct Handshakes(Arc<Mutex<State>>);

struct State {
    free: usize,
    waiting: HandshakeQueue,
    /// Those whose handshake is over, and whose certificates are to be verified.
    verifying: HandshakeQueue,
    begun: RecentHandshakes,
    /// Whether a timer is set that will call [`Handshakes::look`].
    is_timed: bool,
}

type HandshakeQueue = WaitingHandshakes<oneshot::Sender<HandshakePermit>>;

/// The permit to work on a handshake, until it is dropped.
pub(super) struct HandshakePermit(Handshakes);

impl Handshakes {
    /// There are [`EACH_THREAD`] permits for each of the processor's threads. An address may begin `most` in a second.
    pub(super) fn new(most: usize) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self::of(EACH_THREAD * threads, most / PART)
    }

    fn of(free: usize, most: usize) -> Self {
        let (waiting, verifying, begun) =
            (HandshakeQueue::default(), HandshakeQueue::default(), RecentHandshakes::new(most));
        Self(Arc::new(Mutex::new(State { free, waiting, verifying, begun, is_timed: false })))
    }

    /// Waits for a permit for a connection to begin its handshake.
    pub(super) async fn permit(&self, source: Network, id: Id) -> HandshakePermit {
        self.wait(source, id, |state| &mut state.waiting).await
    }

    /// Waits for a permit for a connection whose handshake is over to have its certificates verified.
    pub(super) async fn verification(&self, source: Network, id: Id) -> HandshakePermit {
        self.wait(source, id, |state| &mut state.verifying).await
    }

    async fn wait(
        &self,
        source: Network,
        id: Id,
        line: fn(&mut State) -> &mut HandshakeQueue,
    ) -> HandshakePermit {
        let (grant, granted) = oneshot::channel();
        line(&mut self.0.lock()).push(source, id, grant);
        let _place = InLine { line: self, source, id };
        self.look();
        match granted.await {
            Ok(permit) => permit,
            // The sender is dropped by `InLine` alone.
            Err(_) => std::future::pending().await,
        }
    }

    /// Gives permits to the connections that may have one now.
    fn look(&self) {
        while let Some(grant) = self.next() {
            // If the connection is gone, this drops the permit, which gives it back.
            let _ = grant.send(HandshakePermit(self.clone()));
        }
    }

    fn next(&self) -> Option<oneshot::Sender<HandshakePermit>> {
        let state = &mut *self.0.lock();
        let now = Instant::now();
        state.begun.forget(now);
        if state.free == 0 || (state.waiting.by_source.is_empty() && state.verifying.by_source.is_empty()) {
            return None;
        }
        if let Some((_, grant)) = state.verifying.pop(|_| true) {
            state.free -= 1;
            return Some(grant);
        }
        if let Some((source, grant)) = state.waiting.pop(|source| state.begun.may_begin(source)) {
            state.free -= 1;
            state.begun.add(source, now);
            return Some(grant);
        }
        if let Some(next) =
            state.begun.next_forgotten().filter(|_| !std::mem::replace(&mut state.is_timed, true))
        {
            tokio::spawn(self.clone().look_at(next));
        }
        None
    }

    async fn look_at(self, moment: Instant) {
        tokio::time::sleep_until(moment.into()).await;
        self.0.lock().is_timed = false;
        self.look();
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        self.0.0.lock().free += 1;
        self.0.look();
    }
}

/// A connection that waits for a permit. When this is dropped, the connection leaves both lines.
struct InLine<'a> {
    line: &'a Handshakes,
    source: Network,
    id: Id,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let gone = {
            let state = &mut *self.line.0.lock();
            [&mut state.waiting, &mut state.verifying].map(|line| line.remove(self.source, self.id))
        };
        drop(gone);
    }
}

/// The connections that wait, by source: sources take turns, and of one source the newest and the oldest do.
struct WaitingHandshakes<T> {
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
    fn push(&mut self, source: Network, id: Id, who: T) {
        self.by_source.entry(source).or_default().by_age.insert(id, who);
    }

    fn remove(&mut self, source: Network, id: Id) -> Option<T> {
        let of_source = self.by_source.get_mut(&source)?;
        let who = of_source.by_age.remove(&id);
        if of_source.by_age.is_empty() {
            self.by_source.remove(&source);
        }
        who
    }

    /// Takes the next connection of a source for which `may_begin` holds.
    fn pop(&mut self, may_begin: impl Fn(&Network) -> bool) -> Option<(Network, T)> {
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
struct RecentHandshakes {
    most: usize,
    order: VecDeque<(Instant, Network)>,
    by_source: HashMap<Network, usize>,
}

impl RecentHandshakes {
    fn new(most: usize) -> Self {
        Self { most: most.max(1), order: VecDeque::new(), by_source: HashMap::new() }
    }

    fn may_begin(&self, source: &Network) -> bool {
        self.by_source.get(source).is_none_or(|count| *count < self.most)
    }

    fn add(&mut self, source: Network, now: Instant) {
        self.order.push_back((now, source));
        *self.by_source.entry(source).or_default() += 1;
    }

    fn next_forgotten(&self) -> Option<Instant> {
        self.order.front().map(|(began, _)| *began + SPAN)
    }

    fn forget(&mut self, now: Instant) {
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
    #![allow(clippy::unwrap_used)]

    use std::task::Poll;

    use futures::{FutureExt, poll};

    use super::*;

    fn source(last: u8) -> Network {
        Network::from(std::net::IpAddr::from([10, 0, 0, last]))
    }

    fn one_at_a_time() -> Handshakes {
        Handshakes::of(1, 1_000)
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

    #[tokio::test]
    async fn the_next_begins_when_one_is_done() {
        let line = one_at_a_time();
        let first = line.permit(source(1), 0).await;
        let second = line.permit(source(1), 1);
        tokio::pin!(second);
        assert!(poll!(second.as_mut()).is_pending());
        drop(first);
        assert!(poll!(second.as_mut()).is_ready());
        assert!(line.permit(source(2), 2).now_or_never().is_some(), "the second turn is over");
    }

    #[tokio::test]
    async fn who_leaves_takes_no_turn_with_them() {
        let line = one_at_a_time();
        let first = line.permit(source(1), 0).await;
        let mut gone: Vec<_> = (1..100).map(|id| Box::pin(line.permit(source(2), id))).collect();
        for waits in &mut gone {
            assert!(poll!(waits).is_pending());
        }
        // The newest is granted a permit and leaves before it begins.
        drop(first);
        drop(gone);
        assert!(line.0.lock().waiting.by_source.is_empty());
        assert!(line.permit(source(3), 100).now_or_never().is_some());
    }

    /// Clients that reconnect as soon as they are closed used to keep a core busy, and a probe beside them was
    /// closed for them.
    #[tokio::test]
    async fn an_address_begins_so_many_in_a_span() {
        let line = Handshakes::of(1, 2);
        for id in 0..2 {
            assert!(line.permit(source(1), id).now_or_never().is_some());
        }
        let (third, newest) = (line.permit(source(1), 2), line.permit(source(1), 3));
        tokio::pin!(third, newest);
        assert!(poll!(third.as_mut()).is_pending() && poll!(newest.as_mut()).is_pending());
        assert!(line.permit(source(2), 4).now_or_never().is_some(), "another address does not wait for them");
        drop(newest.await);
        drop(third.await);
        assert!(line.0.lock().begun.order.len() <= 5);
    }

    #[test]
    fn nothing_is_kept_of_a_source_that_began_long_ago() {
        let (mut begun, now) = (RecentHandshakes::new(1), Instant::now());
        begun.add(source(1), now);
        assert!(!begun.may_begin(&source(1)) && begun.may_begin(&source(2)));
        begun.forget(now + SPAN);
        assert!(begun.may_begin(&source(1)) && begun.by_source.is_empty() && begun.order.is_empty());
    }

    /// The certificate chains of strangers used to be verified without a permit.
    #[tokio::test]
    async fn certificates_are_verified_in_a_turn_before_the_next_handshake() {
        let line = Handshakes::of(1, 2);
        let first = line.permit(source(1), 0).await;
        let (next, verified) = (line.permit(source(2), 1), line.verification(source(1), 2));
        tokio::pin!(next, verified);
        assert!(poll!(next.as_mut()).is_pending() && poll!(verified.as_mut()).is_pending());
        drop(first);
        assert!(poll!(next.as_mut()).is_pending());
        assert!(poll!(verified.as_mut()).is_ready());
        assert!(poll!(next.as_mut()).is_ready());
        assert!(line.permit(source(1), 3).now_or_never().is_some(), "it counts as one that began");
    }

    /// With one permit, 40 connections waited for 40 turns of a server that was busy with requests.
    #[tokio::test]
    async fn several_begin_between_two_turns_of_a_busy_server() {
        const MANY: Id = 40;
        let line = Handshakes::new(100 * PART);
        let mut held = Vec::new();
        while let Some(permit) = line.permit(source(1), 0).now_or_never() {
            held.push(permit);
        }
        let waiting: Vec<_> = (1..=MANY)
            .map(|id| {
                let line = line.clone();
                tokio::spawn(async move { drop(line.permit(source(2), id).await) })
            })
            .collect();
        tokio::task::yield_now().await;
        drop(held);
        let mut turns = 0;
        // It goes to the end of the queue of tasks each time, as a task with requests does.
        let busy = tokio::spawn(std::future::poll_fn(move |context| {
            if waiting.iter().all(|connection| connection.is_finished()) {
                return Poll::Ready(turns);
            }
            turns += 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        let turns = busy.await.unwrap();
        assert!(turns <= MANY / EACH_THREAD as Id + 2, "{turns} turns");
    }
}
