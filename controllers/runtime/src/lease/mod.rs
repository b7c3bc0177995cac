//! Leader election over a coordination.k8s.io/v1 Lease: one process writes, and stops writing before another may start.
//!
//! The holder measures its own time from before each renewal, with a clock that counts sleep, and stops
//! [`LeaseConfig::renew_deadline`] after the last success; others wait [`LeaseConfig::duration`] from when
//! they last saw the Lease change, by their own clocks, so clocks need not agree. Each term has a number that
//! is higher than those before: the time at which it was acquired, or a microsecond after that of the term before.
//!
//! The number is also the fencing token of writes to our API server. Where the server refuses it and the Lease is
//! ours, a clock was wrong: the holder begins another term, of the nearest number that the server takes and that no
//! earlier term had. Where the Lease is another one's, the term is over.

mod decide;
mod earlier;
mod elector;
mod fencing;
mod raises;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use drydock_api::RefusedToken;
pub use elector::{Elector, LeadershipEnd};
pub use fencing::with_term;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::clock::Clock;

/// Names and times of a lease. The times are those of kube-controller-manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are; unique per process.
    pub identity: String,
    /// How long others wait for a silent holder.
    pub duration: Duration,
    /// How long a holder that cannot renew keeps working.
    pub renew_deadline: Duration,
    /// How often to renew, or to try.
    pub retry_period: Duration,
}

impl LeaseConfig {
    /// Returns the default times: 15 s, 10 s and 2 s.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// No lease is held.
const NO_TERM: u64 = u64::MAX;
/// The lease needs no renewal.
const FOREVER: u64 = u64::MAX;

/// Knows whether writes may be sent. Clones share the state; a check costs one reading of the clock.
#[derive(Clone, Debug)]
pub struct LeaseHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    term: AtomicU64,
    /// Milliseconds since boot.
    valid_until: AtomicU64,
    /// When the previous holder last renewed, in seconds since 1970.
    previous_renewal: AtomicI64,
    refused: Mutex<Option<RefusedToken>>,
    clock: Clock,
}

impl LeaseHandle {
    /// Returns a handle that is not valid until an [`Elector`] acquires the lease.
    pub fn pending(clock: Clock) -> Self {
        let shared = Shared {
            term: AtomicU64::new(NO_TERM),
            valid_until: AtomicU64::new(0),
            previous_renewal: AtomicI64::new(clock.now().as_second()),
            refused: Mutex::default(),
            clock,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns a handle that is always valid and has no number of a term, for a process that runs without election.
    pub fn unelected(clock: Clock) -> Self {
        let handle = Self::pending(clock);
        handle.shared.valid_until.store(FOREVER, Ordering::Release);
        handle
    }

    /// Returns a handle in a term whose writes our API server has refused, for tests of what follows.
    #[cfg(any(test, feature = "test-util"))]
    pub fn refused(clock: Clock) -> Self {
        let handle = Self::pending(clock);
        handle.extend(1, clock.since_boot() + Duration::from_secs(10));
        handle.refuse(RefusedToken { term: 1, newest: 2, highest: 3 });
        handle
    }

    /// Whether the lease is held at this moment.
    pub fn is_valid(&self) -> bool {
        let until = self.shared.valid_until.load(Ordering::Acquire);
        until == FOREVER || millis(self.shared.clock.since_boot()) < until
    }

    /// The number of our last term, also when that is over; none before the first.
    pub fn term(&self) -> Option<u64> {
        let term = self.shared.term.load(Ordering::Acquire);
        (term != NO_TERM).then_some(term)
    }

    /// When the previous holder last renewed, in whole seconds of its clock; the start of this process if
    /// there was no other holder. Events about what happened before were published by that holder.
    pub fn previous_renewal(&self) -> Timestamp {
        let second = self.shared.previous_renewal.load(Ordering::Acquire);
        Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
    }

    /// The token of our term, if our API server refuses it. `None` as soon as the server has taken it, or another term begins.
    pub fn refused_token(&self) -> Option<RefusedToken> {
        self.shared.refused.lock().filter(|refused| Some(refused.term) == self.term())
    }

    /// Notes that a write was refused; one of another term than ours says nothing of it. Returns whether it is the first one
    /// of our term.
    fn refuse(&self, token: RefusedToken) -> bool {
        if Some(token.term) != self.term() {
            return false;
        }
        let before = self.shared.refused.lock().replace(token);
        before.is_none_or(|before| before.term != token.term)
    }

    /// Notes that a write of this term was taken: if it is the refused one, somebody has removed the newest term from the
    /// server.
    fn accept(&self, term: u64) {
        self.shared.refused.lock().take_if(|refused| refused.term == term);
    }

    fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// A renewal that lies in the future, by a clock that was wrong, counts as one of now.
    fn follow(&self, previous_renewal: Timestamp) {
        let previous_renewal = previous_renewal.min(self.shared.clock.now());
        self.shared.previous_renewal.store(previous_renewal.as_second(), Ordering::Release);
    }

    fn extend(&self, term: u64, until: Duration) {
        self.shared.term.store(term, Ordering::Release);
        self.shared.valid_until.store(millis(until), Ordering::Release);
    }

    fn end(&self) {
        self.shared.valid_until.store(0, Ordering::Release);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(FOREVER - 1)
}

#[cfg(test)]
mod fencing_tests;
#[cfg(test)]
mod tests;
