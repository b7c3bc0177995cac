//! The circuit breaker: whether a request may try the route that has failed. Pure: the time is given.
//!
//! Closed, it lets every request through. A failure opens it for a pause, which doubles with each failure in a row. After
//! the pause one request tries, while the others wait no longer than they would without it: it closes the breaker, or
//! opens it again. It is not waited for after the next one may try, so that a server that hangs holds one at a time.

use std::time::Duration;

use tokio::time::Instant;

/// The first pause, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a request that tries may take. After that another one may try.
pub(super) const TRIAL: Duration = Duration::from_secs(10);

/// Whether requests are let through.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker {
    /// Counts the changes of `open_until` between closed and open: a result of an earlier period changes nothing.
    period: u64,
    /// None while it is closed.
    open_until: Option<Instant>,
    failures: u32,
}

/// A request that was let through, until its result is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    period: u64,
    /// When another request may try; none while the breaker is closed.
    pub(super) trial_ends: Option<Instant>,
}

impl CircuitBreaker {
    /// Lets a request through, or returns none.
    pub(super) fn enter(&mut self, now: Instant) -> Option<Attempt> {
        if self.open_until.is_some_and(|until| now < until) {
            return None;
        }
        let trial_ends = self.open_until.map(|_| now + TRIAL);
        self.open_until = trial_ends;
        Some(Attempt { period: self.period, trial_ends })
    }

    /// Closes the breaker. Returns whether that is a change.
    pub(super) fn succeeded(&mut self, attempt: Attempt) -> bool {
        if attempt.period != self.period || self.open_until.is_none() {
            return false;
        }
        self.period += 1;
        (self.open_until, self.failures) = (None, 0);
        true
    }

    /// Opens the breaker, and returns for how long no request is let through. Returns none if it was opened after the
    /// request was let through.
    pub(super) fn failed(&mut self, attempt: Attempt, now: Instant) -> Option<Duration> {
        if attempt.period != self.period {
            return None;
        }
        self.period += 1;
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(LONGEST_PAUSE);
        self.failures += 1;
        self.open_until = Some(now + pause);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn seconds(pause: Option<Duration>) -> Option<u64> {
        pause.map(|pause| pause.as_secs())
    }

    #[test]
    fn it_opens_for_longer_with_each_failure_and_one_request_tries() {
        let (mut breaker, mut now) = (CircuitBreaker::default(), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..7 {
            let attempt = breaker.enter(now).unwrap();
            let pause = breaker.failed(attempt, now).unwrap();
            pauses.push(pause.as_secs());
            assert_eq!(breaker.enter(now + pause / 2), None);
            now += pause;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        let trial = breaker.enter(now).unwrap();
        assert_eq!(breaker.enter(now), None, "one request tries");
        assert!(breaker.succeeded(trial));
        assert!(breaker.enter(now).is_some() && breaker.enter(now).is_some());
        let attempt = breaker.enter(now).unwrap();
        assert_eq!(seconds(breaker.failed(attempt, now)), Some(1), "it starts anew");
    }

    /// Hundreds of requests in flight fail together when a server goes.
    #[test]
    fn requests_that_fail_together_count_once() {
        let (mut breaker, now) = (CircuitBreaker::default(), Instant::now());
        let attempts = [breaker.enter(now), breaker.enter(now), breaker.enter(now)].map(Option::unwrap);
        assert_eq!(attempts.map(|attempt| seconds(breaker.failed(attempt, now))), [Some(1), None, None]);
        assert!(!breaker.succeeded(attempts[0]), "an answer from before does not close it");
        assert_eq!(breaker.enter(now), None);
    }

    /// A request may be dropped by its caller while it tries.
    #[test]
    fn a_trial_without_a_result_does_not_keep_it_open() {
        let (mut breaker, now) = (CircuitBreaker::default(), Instant::now());
        let attempt = breaker.enter(now).unwrap();
        let later = now + breaker.failed(attempt, now).unwrap();
        assert!(breaker.enter(later).is_some());
        assert_eq!(breaker.enter(later + TRIAL / 2), None);
        assert!(breaker.enter(later + TRIAL).is_some());
    }

    /// A request that tried was waited for longer than until the next one tried: a server that hung held eight of them.
    #[test]
    fn no_request_tries_while_another_one_may_be_waited_for() {
        let (mut breaker, now) = (CircuitBreaker::default(), Instant::now());
        let attempt = breaker.enter(now).unwrap();
        assert_eq!(attempt.trial_ends, None, "it does not try what has not failed");
        let mut later = now + breaker.failed(attempt, now).unwrap();
        for _ in 0..3 {
            let ends = breaker.enter(later).unwrap().trial_ends.unwrap();
            assert_eq!(breaker.enter(ends - Duration::from_millis(1)), None);
            later = ends;
        }
    }
}
