//! Whose TLS handshake is next.
//!
//! A handshake costs a signature and a key exchange, all at once when the client's hello has been read. So many of them
//! are worked on at one time that requests find a free worker, and those that wait are taken one of each address in
//! turn: an address that opens thousands of connections delays its own alone. Of one address the newest comes first,
//! since under a flood the oldest lose their places ([`super::connections`]): who came first would be closed in the
//! middle of the handshake, and none would ever end.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::connections::Source;
use super::groups::Id;

/// Bounds the handshakes of a port that are worked on at one time.
#[derive(Clone)]
pub(super) struct Handshakes(Arc<Mutex<State>>);

struct State {
    free: usize,
    waiting: Waiting<oneshot::Sender<Turn>>,
}

/// The right to work on a handshake, until it is dropped.
pub(super) struct Turn(Handshakes);

impl Handshakes {
    /// Half of the processor's threads work on handshakes, and at least one.
    pub(super) fn new() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let state = State { free: (threads / 2).max(1), waiting: Waiting::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Waits for the turn of a connection.
    pub(super) async fn turn(&self, source: Source, id: Id) -> Turn {
        let granted = {
            let mut state = self.0.lock();
            if state.free > 0 {
                state.free -= 1;
                return Turn(self.clone());
            }
            let (grant, granted) = oneshot::channel();
            state.waiting.push(source, id, grant);
            granted
        };
        let _place = InLine { line: self, source, id };
        match granted.await {
            Ok(turn) => turn,
            // The sender is dropped by `InLine` alone.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.0.lock();
            let next = state.waiting.pop();
            if next.is_none() {
                state.free += 1;
            }
            next
        };
        if let Some(next) = next {
            // Whoever has gone gives it back by dropping it.
            let _ = next.send(Turn(self.0.clone()));
        }
    }
}

/// A connection that waits, or has waited: nothing is kept of one that is closed.
struct InLine<'a> {
    line: &'a Handshakes,
    source: Source,
    id: Id,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let gone = self.line.0.lock().waiting.remove(self.source, self.id);
        drop(gone);
    }
}

/// Who waits, by source: sources take turns, and of one source the newest is next.
struct Waiting<T> {
    by_source: BTreeMap<Source, BTreeMap<Id, T>>,
    last: Option<Source>,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { by_source: BTreeMap::new(), last: None }
    }
}

impl<T> Waiting<T> {
    fn push(&mut self, source: Source, id: Id, who: T) {
        self.by_source.entry(source).or_default().insert(id, who);
    }

    fn remove(&mut self, source: Source, id: Id) -> Option<T> {
        let of_source = self.by_source.get_mut(&source)?;
        let who = of_source.remove(&id);
        if of_source.is_empty() {
            self.by_source.remove(&source);
        }
        who
    }

    fn pop(&mut self) -> Option<T> {
        let after = self.last.and_then(|last| self.by_source.range((Excluded(last), Unbounded)).next());
        let (source, of_source) = after.or_else(|| self.by_source.iter().next())?;
        let (source, id) = (*source, *of_source.last_key_value()?.0);
        self.last = Some(source);
        self.remove(source, id)
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, poll};

    use super::*;

    fn source(last: u8) -> Source {
        Source::from(std::net::IpAddr::from([10, 0, 0, last]))
    }

    fn one_at_a_time() -> Handshakes {
        let state = State { free: 1, waiting: Waiting::default() };
        Handshakes(Arc::new(Mutex::new(state)))
    }

    #[test]
    fn an_address_with_thousands_delays_no_other() {
        let mut waiting = Waiting::default();
        for id in 0..5_000 {
            waiting.push(source(1), id, ("flood", id));
        }
        waiting.push(source(2), 5_000, ("other", 5_000));
        waiting.push(source(3), 5_001, ("another", 5_001));
        let order: Vec<_> = std::iter::from_fn(|| waiting.pop()).take(4).collect();
        assert_eq!(order, [("flood", 4_999), ("other", 5_000), ("another", 5_001), ("flood", 4_998)]);
    }

    #[tokio::test]
    async fn the_next_begins_when_one_is_done() {
        let line = one_at_a_time();
        let first = line.turn(source(1), 0).await;
        let second = line.turn(source(1), 1);
        tokio::pin!(second);
        assert!(poll!(second.as_mut()).is_pending());
        drop(first);
        assert!(poll!(second.as_mut()).is_ready());
        assert!(line.turn(source(2), 2).now_or_never().is_some(), "the second turn is over");
    }

    #[tokio::test]
    async fn who_leaves_takes_no_turn_with_them() {
        let line = one_at_a_time();
        let first = line.turn(source(1), 0).await;
        let mut gone: Vec<_> = (1..100).map(|id| Box::pin(line.turn(source(2), id))).collect();
        for waits in &mut gone {
            assert!(poll!(waits).is_pending());
        }
        // The newest is granted a turn and leaves before it begins.
        drop(first);
        drop(gone);
        assert!(line.0.lock().waiting.by_source.is_empty());
        assert!(line.turn(source(3), 100).now_or_never().is_some());
    }
}
