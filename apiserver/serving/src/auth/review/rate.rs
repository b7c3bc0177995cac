//! A rate: how many may start, at once and in the long run.

use std::time::{Duration, Instant};

/// A bound on starts: within any time `t` there are at most `burst + t / every`.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Starts that may come at once; at least one does.
    pub burst: u32,
    /// Time between starts in the long run; zero is no bound.
    pub every: Duration,
}

/// The starts so far, as the moment at which all of them are paid for; `None` if none counts any more (a leaky bucket
/// as a meter; ITU-T I.371, generic cell rate algorithm).
#[derive(Debug, Default)]
pub struct RateMeter(Option<Instant>);

impl RateMeter {
    /// When the next start may be: now or later.
    pub fn next(&self, rate: Rate, now: Instant) -> Instant {
        let ahead = self.0.map_or(Duration::ZERO, |paid| paid.saturating_duration_since(now));
        now + ahead.saturating_sub(rate.every * rate.burst.saturating_sub(1))
    }

    /// Counts a start.
    pub fn start(&mut self, rate: Rate, now: Instant) {
        let paid = self.0.map_or(now, |paid| paid.max(now));
        self.0 = Some(paid + rate.every);
    }

    /// Stops counting a start at `start`.
    pub(super) fn take_back(&mut self, rate: Rate, start: Instant) {
        self.0 = self.0.and_then(|paid| paid.checked_sub(rate.every)).filter(|paid| *paid > start);
    }

    /// Forgets starts that are paid for by now.
    pub fn forget(&mut self, now: Instant) {
        self.0.take_if(|paid| *paid <= now);
    }

    /// Whether no start counts.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { burst: 3, every: Duration::from_millis(10) };

    /// How many may start at this moment.
    fn at_once(meter: &mut RateMeter, now: Instant) -> usize {
        let free = || {
            let may = meter.next(RATE, now) == now;
            if may {
                meter.start(RATE, now);
            }
            may.then_some(())
        };
        std::iter::from_fn(free).take(100).count()
    }

    #[test]
    fn a_burst_is_followed_by_the_pace() {
        let (mut meter, now) = (RateMeter::default(), Instant::now());
        let at = |millis| now + Duration::from_millis(millis);
        assert_eq!(at_once(&mut meter, now), 3);
        assert_eq!(meter.next(RATE, at(1)), at(10));
        assert_eq!((at_once(&mut meter, at(10)), at_once(&mut meter, at(10))), (1, 0));
        assert_eq!(at_once(&mut meter, at(30)), 2);
        assert_eq!(at_once(&mut meter, at(1000)), 3);
    }

    #[test]
    fn no_second_has_more_starts_than_the_burst_and_the_pace() {
        let (mut meter, now) = (RateMeter::default(), Instant::now());
        let in_a_second =
            (0..1000).map(|millis| at_once(&mut meter, now + Duration::from_millis(millis))).sum::<usize>();
        assert_eq!(in_a_second, 3 + 99);
    }

    #[test]
    fn a_start_that_is_taken_back_leaves_nothing() {
        let (mut meter, now) = (RateMeter::default(), Instant::now());
        for _ in 0..10 {
            meter.start(RATE, now);
            meter.take_back(RATE, now);
        }
        assert!(meter.is_empty() && at_once(&mut meter, now) == 3);
    }

    #[test]
    fn without_a_time_between_starts_there_is_no_bound() {
        let (mut meter, now) = (RateMeter::default(), Instant::now());
        let any = Rate { burst: 1, every: Duration::ZERO };
        (0..1000).for_each(|_| meter.start(any, now));
        assert_eq!(meter.next(any, now), now);
    }
}
