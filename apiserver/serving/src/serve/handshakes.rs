//! The order of TLS handshakes.
//!
//! A handshake costs a signature and a key exchange, all at once when the ClientHello has been read, or the second one if
//! the client has to send two ([`super::client_hello`]). Only a few are worked on at a time, on threads that serve no
//! connection: the operating system shares the processor between these and the connections that are established. So a
//! flood of handshakes takes no thread from requests, and a server that is busy with hundreds of requests delays no
//! handshake by all their turns.
//!
//! Addresses take turns, and within one address the newest and the oldest connection alternate: a probe waits neither
//! behind a flood from its own address, nor for as long as clients of that address reconnect at once.
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

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::groups::Id;
use super::handshake_order::{RecentHandshakes, SPAN, WaitingHandshakes};
use crate::clock;
use crate::request::user::Network;

/// How many spans a second has.
const PART: usize = (Duration::from_secs(1).as_millis() / SPAN.as_millis()) as usize;

/// Works on the handshakes of a port, a few at one time.
#[derive(Clone)]
pub(super) struct Handshakes(Arc<Mutex<State>>);

struct State {
    /// Threads that may begin to work.
    free: usize,
    waiting: HandshakeQueue,
    /// Those whose handshake is over, and whose certificates are to be verified.
    verifying: HandshakeQueue,
    begun: RecentHandshakes,
    /// Whether a timer is set that will call [`Handshakes::look`].
    is_timed: bool,
}

/// What a connection wants done on one of the threads.
type Work = Box<dyn FnOnce() + Send>;

type HandshakeQueue = WaitingHandshakes<Work>;

impl Handshakes {
    /// Half as many threads as the processor has work on handshakes, and at least one. An address may begin `most` in a
    /// second.
    pub(super) fn new(most: usize) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self::of(threads / 2, most / PART)
    }

    /// `free` threads, and at least one; `most` in a tenth of a second.
    pub(super) fn of(free: usize, most: usize) -> Self {
        let (waiting, verifying, begun) =
            (HandshakeQueue::default(), HandshakeQueue::default(), RecentHandshakes::new(most));
        Self(Arc::new(Mutex::new(State { free: free.max(1), waiting, verifying, begun, is_timed: false })))
    }

    /// Does the work of a connection's handshake in its turn. Never returns if the work panics.
    pub(super) async fn handshake<R: Send + 'static>(
        &self,
        source: Network,
        id: Id,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        self.wait(source, id, work, |state| &mut state.waiting).await
    }

    /// Does the work of verifying the certificates of a connection whose handshake is over in its turn. Never returns if
    /// the work panics.
    pub(super) async fn verification<R: Send + 'static>(
        &self,
        source: Network,
        id: Id,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        self.wait(source, id, work, |state| &mut state.verifying).await
    }

    /// Whether a connection waits for its turn.
    #[cfg(test)]
    pub(super) fn has_waiting(&self) -> bool {
        !self.0.lock().waiting.is_empty()
    }

    async fn wait<R: Send + 'static>(
        &self,
        source: Network,
        id: Id,
        work: impl FnOnce() -> R + Send + 'static,
        line: fn(&mut State) -> &mut HandshakeQueue,
    ) -> R {
        let (done, result) = oneshot::channel();
        // If the connection is gone, nobody wants the result.
        let work = Box::new(move || drop(done.send(work())));
        line(&mut self.0.lock()).push(source, id, work);
        let _place = InLine { line: self, source, id };
        self.look();
        match result.await {
            Ok(result) => result,
            // The work panicked, or `InLine` took it out of the line.
            Err(_) => std::future::pending().await,
        }
    }

    /// Lets as many threads work as are free and find something to do.
    fn look(&self) {
        while let Some((thread, work)) = self.begin() {
            tokio::task::spawn_blocking(move || thread.work(work));
        }
    }

    fn begin(&self) -> Option<(HandshakeThread, Work)> {
        let state = &mut *self.0.lock();
        state.free.checked_sub(1)?;
        let work = self.next(state)?;
        state.free -= 1;
        Some((HandshakeThread(self.clone()), work))
    }

    /// Takes the work whose turn it is. If there is some that may not begin yet, sets a timer.
    fn next(&self, state: &mut State) -> Option<Work> {
        let now = clock::now();
        state.begun.forget(now);
        if let Some((_, work)) = state.verifying.pop(|_| true) {
            return Some(work);
        }
        if let Some((source, work)) = state.waiting.pop(|source| state.begun.may_begin(source)) {
            state.begun.add(source, now);
            return Some(work);
        }
        if state.waiting.is_empty() {
            return None;
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

/// A thread that works on handshakes, until this is dropped.
struct HandshakeThread(Handshakes);

impl HandshakeThread {
    /// Works until nothing may begin.
    fn work(self, first: Work) {
        first();
        let next = || self.0.next(&mut self.0.0.lock());
        while let Some(work) = next() {
            work();
        }
    }
}

impl Drop for HandshakeThread {
    fn drop(&mut self) {
        self.0.0.lock().free += 1;
        // More may have come since it looked; and work that panicked leaves others behind.
        self.0.look();
    }
}

/// A connection that waits for its work to be done. When this is dropped, the connection leaves both lines.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc;

    use futures::poll;

    use super::*;

    fn source(last: u8) -> Network {
        Network::from(std::net::IpAddr::from([10, 0, 0, last]))
    }

    fn one_at_a_time() -> Handshakes {
        Handshakes::of(1, 1_000)
    }

    /// Keeps a thread busy until the sender is dropped.
    async fn hold(line: &Handshakes) -> mpsc::SyncSender<()> {
        let ((release, held), (began, begins)) = (mpsc::sync_channel(64), oneshot::channel());
        let line = line.clone();
        let work = move || {
            began.send(()).unwrap();
            held.recv().unwrap_err();
        };
        tokio::spawn(async move { line.verification(source(99), 0, work).await });
        begins.await.unwrap();
        release
    }

    fn is_idle(line: &Handshakes) -> bool {
        let state = line.0.lock();
        state.waiting.is_empty() && state.verifying.is_empty()
    }

    #[tokio::test]
    async fn the_next_begins_when_one_is_done() {
        let line = one_at_a_time();
        let held = hold(&line).await;
        let (began, begins) = mpsc::sync_channel(64);
        let second = line.handshake(source(1), 1, move || began.send(()).unwrap());
        tokio::pin!(second);
        assert!(poll!(second.as_mut()).is_pending());
        assert!(begins.try_recv().is_err());
        drop(held);
        second.await;
        assert_eq!(line.handshake(source(2), 2, || "third").await, "third");
    }

    #[tokio::test]
    async fn who_leaves_takes_no_turn_with_them() {
        let line = one_at_a_time();
        let held = hold(&line).await;
        let mut gone: Vec<_> = (1..100)
            .map(|id| Box::pin(line.handshake::<()>(source(2), id, || unreachable!("it is gone"))))
            .collect();
        for waits in &mut gone {
            assert!(poll!(waits).is_pending());
        }
        drop(gone);
        assert!(is_idle(&line));
        drop(held);
        line.handshake(source(3), 100, || ()).await;
    }

    #[tokio::test]
    async fn work_that_panics_holds_up_no_other() {
        let line = one_at_a_time();
        let held = hold(&line).await;
        let panics = line.handshake::<()>(source(1), 1, || panic!("on purpose"));
        let next = line.handshake(source(2), 2, || "next");
        tokio::pin!(panics, next);
        assert!(poll!(panics.as_mut()).is_pending() && poll!(next.as_mut()).is_pending());
        drop(held);
        assert_eq!(next.await, "next");
        assert!(poll!(panics.as_mut()).is_pending());
    }

    /// Clients that reconnect as soon as they are closed used to keep a core busy, and a probe beside them was
    /// closed for them.
    #[tokio::test(start_paused = true)]
    async fn an_address_begins_so_many_in_a_span() {
        let line = Handshakes::of(1, 2);
        let began = clock::now();
        for id in 0..2 {
            line.handshake(source(1), id, || ()).await;
        }
        let (third, newest) =
            (line.handshake(source(1), 2, clock::now), line.handshake(source(1), 3, clock::now));
        tokio::pin!(third, newest);
        assert!(poll!(third.as_mut()).is_pending() && poll!(newest.as_mut()).is_pending());
        line.handshake(source(2), 4, || ()).await;
        assert!(!is_idle(&line), "another address does not wait for them");
        assert!((SPAN..2 * SPAN).contains(&(newest.await - began)));
        assert!((SPAN..2 * SPAN).contains(&(third.await - began)));
    }

    /// The certificate chains of strangers used to be verified without a turn.
    #[tokio::test]
    async fn certificates_are_verified_in_a_turn_before_the_next_handshake() {
        let line = Handshakes::of(1, 2);
        let held = hold(&line).await;
        let (did, done) = mpsc::sync_channel(64);
        let also = did.clone();
        let next = line.handshake(source(2), 1, move || did.send("handshake").unwrap());
        let verified = line.verification(source(1), 2, move || also.send("verification").unwrap());
        tokio::pin!(next, verified);
        assert!(poll!(next.as_mut()).is_pending() && poll!(verified.as_mut()).is_pending());
        drop(held);
        tokio::join!(next, verified);
        assert_eq!(done.iter().take(2).collect::<Vec<_>>(), ["verification", "handshake"]);
        assert!(line.0.lock().begun.may_begin(&source(1)), "it does not count as one that began");
    }

    /// A connection that had its turn used to wait for the turns of all tasks before it worked: a server with hundreds of
    /// requests did a few dozen handshakes in a second, and a probe in the middle of 540 connections of its address waited
    /// for all of them.
    #[tokio::test]
    async fn handshakes_go_on_while_no_connection_has_a_turn() {
        const MANY: Id = 40;
        let line = one_at_a_time();
        let held = hold(&line).await;
        let (did, done) = mpsc::sync_channel(64);
        for id in 1..=MANY {
            let (line, did) = (line.clone(), did.clone());
            tokio::spawn(async move { line.handshake(source(1), id, move || did.send(id).unwrap()).await });
        }
        tokio::task::yield_now().await;
        drop(held);
        // The only thread of the runtime waits here.
        let order: Vec<Id> = done.iter().take(MANY as usize).collect();
        assert_eq!(order[..4], [40, 1, 39, 2]);
    }
}
