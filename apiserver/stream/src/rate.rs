//! The rate of a drain: evictions per minute over the last minutes, computed from a growing count.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// The time over which the rate is computed.
const WINDOW: SignedDuration = SignedDuration::from_mins(5);
/// Minimum time between two samples, except the oldest two. It limits the samples to 61.
const STEP: SignedDuration = SignedDuration::from_secs(5);
/// Minimum time and evictions for a rate.
const LEAST_TIME: SignedDuration = SignedDuration::from_secs(10);
const LEAST_EVICTIONS: i32 = 3;

/// The rate of a drain, and when it ends at this rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DrainRate {
    /// Evictions per minute.
    pub evictions_per_minute: Option<f64>,
    /// When the last pod leaves.
    pub finish_time: Option<Timestamp>,
}

/// The recent values of one count.
#[derive(Clone, Debug, Default)]
pub struct RateSamples {
    /// Times, and the count from then on, oldest first. The first sample may be older than the window.
    samples: VecDeque<(Timestamp, i32)>,
}

impl RateSamples {
    /// Records the count as of `now`. If the count or the clock went back, earlier samples are dropped.
    pub fn record(&mut self, now: Timestamp, evicted: i32) {
        match self.samples.back().copied() {
            Some((time, count)) if evicted < count || now < time => self.samples.clear(),
            Some((_, count)) if evicted == count => return,
            Some((time, _)) if self.samples.len() > 1 && now.duration_since(time) < STEP => {
                if let Some(last) = self.samples.back_mut() {
                    last.1 = evicted;
                }
                return;
            }
            _ => {}
        }
        self.samples.push_back((now, evicted));
        // The last sample before the window has the count at its start.
        while self.samples.get(1).is_some_and(|(time, _)| now.duration_since(*time) >= WINDOW) {
            self.samples.pop_front();
        }
    }

    /// Returns the evictions per minute, to one decimal; `None` if too little has happened.
    pub fn per_minute(&self, now: Timestamp) -> Option<f64> {
        let age = |time: Timestamp| now.duration_since(time);
        let newest = self.samples.back()?.1;
        let before = self.samples.iter().rev().find(|(time, _)| age(*time) >= WINDOW);
        let (since, count) = before.or(self.samples.front())?;
        let (time, evicted) = (age(*since).min(WINDOW), newest - count);
        if time < LEAST_TIME || evicted < LEAST_EVICTIONS {
            return None;
        }
        Some((f64::from(evicted) * 600.0 / time.as_secs_f64()).round() / 10.0)
    }

    /// Returns the drain rate of a drain with `left` pods to go; `left` is `None` if no pod can leave. Without a rate there
    /// is no finish time.
    pub fn drain_rate(&self, now: Timestamp, left: Option<i32>) -> DrainRate {
        let evictions_per_minute = self.per_minute(now).filter(|rate| *rate > 0.0);
        let seconds = evictions_per_minute.zip(left).map(|(rate, left)| f64::from(left) * 60.0 / rate);
        let finish = |seconds: f64| {
            let whole = SignedDuration::try_from_secs_f64(seconds.ceil()).ok()?;
            Timestamp::from_second(now.as_second()).ok()?.checked_add(whole).ok()
        };
        DrainRate { evictions_per_minute, finish_time: seconds.and_then(finish) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn steady() -> RateSamples {
        let mut rate = RateSamples::default();
        (0..=60).for_each(|n| rate.record(at(n * 2), n as i32));
        rate
    }

    #[test]
    fn a_steady_drain_has_its_rate_and_a_finish() {
        let drain_rate = steady().drain_rate(at(120), Some(15));
        assert_eq!((drain_rate.evictions_per_minute, drain_rate.finish_time), (Some(30.0), Some(at(150))));
    }

    #[test]
    fn it_fades_when_nothing_happens_any_more() {
        let rate = steady();
        assert_eq!(rate.per_minute(at(240)), Some(15.0));
        let later = rate.per_minute(at(400)).unwrap();
        assert!(later < 6.0, "{later}");
        assert_eq!(rate.per_minute(at(430)), None);
    }

    #[test]
    fn there_is_none_without_a_basis() {
        let mut rate = RateSamples::default();
        assert_eq!(rate.per_minute(at(0)), None);
        rate.record(at(0), 500);
        assert_eq!(rate.per_minute(at(100)), None, "what was evicted before is not known");
        rate.record(at(101), 502);
        assert_eq!(rate.per_minute(at(102)), None, "two evictions are no rate");
        assert_eq!(steady().drain_rate(at(120), None).finish_time, None, "nothing can leave");
        let mut short = RateSamples::default();
        (0..9).for_each(|n| short.record(at(n), n as i32 * 10));
        assert_eq!(short.per_minute(at(9)), None, "nine seconds are too few");
    }

    #[test]
    fn a_count_that_went_back_begins_anew() {
        let mut rate = steady();
        rate.record(at(121), 0);
        assert_eq!(rate.per_minute(at(150)), None);
    }

    #[test]
    fn samples_are_bounded() {
        let mut rate = RateSamples::default();
        (0..100_000).for_each(|n| rate.record(at(n / 10), n as i32));
        assert!(rate.samples.len() <= 62, "{}", rate.samples.len());
        assert_eq!(rate.per_minute(at(9999)).unwrap().round(), 600.0);
    }
}
