//! How far the API server's clock is from ours. The server refuses times that are not the present (KEP-4563:
//! give or take 10 seconds): with clocks further apart no turn begins and no interceptor reports.
//!
//! The difference is measured, not read from the refusal: every answer carries the server's time in its Date header.

use std::sync::Arc;
use std::time::Duration;

use drydock_api::eviction_request::transitions::CLOCK_SKEW;
use http::header::DATE;
use http::{HeaderMap, Request};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::warn;

use crate::cache::Cacheable;
use crate::clock::Clock;
use crate::events::{EventRecorder, reasons};

/// The difference is measured at most once in this time, however many writes are refused.
const MEASURE_INTERVAL: Duration = Duration::from_secs(60);
/// A difference that stays is reported again after this.
const REPORT_INTERVAL: Duration = Duration::from_secs(3600);
/// A difference that has changed by more than this is reported again.
const SUBSTANTIAL_CHANGE: SignedDuration = SignedDuration::from_secs(10);
/// A Date header has whole seconds.
const HALF_SECOND: SignedDuration = SignedDuration::from_millis(500);

/// What was measured and reported of the API server's clock. Clones share it.
#[derive(Clone, Default)]
pub struct Skew {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    measured: Option<Instant>,
    reported: Option<(SignedDuration, Instant)>,
}

impl Skew {
    /// Measures the difference, because a write with times to `object` was refused as invalid. If the clocks
    /// are too far apart, publishes a Warning event on the object that names the difference: once, and again
    /// when the difference has changed by more than 10 seconds, or after an hour.
    pub(crate) async fn report<T: Cacheable>(
        &self,
        client: &Client,
        recorder: &EventRecorder,
        clock: Clock,
        object: &T,
    ) {
        if !self.state.lock().must_measure(Instant::now()) {
            return;
        }
        let Some(ahead) = measure::<T>(client, clock).await else { return };
        if !self.state.lock().must_report(ahead, Instant::now()) {
            return;
        }
        let seconds = ahead.abs().as_secs();
        let side = if ahead.is_positive() { "ahead of" } else { "behind" };
        let message = format!(
            "The API server's clock is {seconds} s {side} this controller's, and may be {} s apart at most: the server \
             refuses the times of turns and reports. Synchronize the clocks.",
            CLOCK_SKEW.as_secs()
        );
        warn!(object = %object.key(), message);
        recorder.warning(object, reasons::CLOCK_SKEW, message);
    }
}

impl State {
    fn must_measure(&mut self, now: Instant) -> bool {
        let is_due = self.measured.is_none_or(|at| now.saturating_duration_since(at) >= MEASURE_INTERVAL);
        if is_due {
            self.measured = Some(now);
        }
        is_due
    }

    fn must_report(&mut self, ahead: SignedDuration, now: Instant) -> bool {
        let is_due = self.reported.is_none_or(|(reported, at)| {
            (ahead - reported).abs() > SUBSTANTIAL_CHANGE
                || now.saturating_duration_since(at) >= REPORT_INTERVAL
        });
        if is_due {
            self.reported = Some((ahead, now));
        }
        is_due
    }
}

/// Returns how far the clock of the kind's server is ahead of ours (negative if behind), if that is too far,
/// however the time that the answer took was divided between the two ways.
async fn measure<T: Cacheable>(client: &Client, clock: Clock) -> Option<SignedDuration> {
    // Every account may read this path.
    let path = format!("/apis/{}/{}", T::GROUP, T::VERSION);
    let request = Request::get(path).body(Body::empty()).ok()?;
    let before = clock.now();
    let answer = client.send(request).await.ok()?;
    let server = date(answer.headers())?.checked_add(HALF_SECOND).ok()?;
    let uncertain = clock.now().duration_since(before) / 2;
    let ahead = server.duration_since(before.checked_add(uncertain).ok()?);
    let most = SignedDuration::try_from(CLOCK_SKEW).ok()?;
    (ahead.abs() + HALF_SECOND >= most + uncertain).then_some(ahead)
}

fn date(headers: &HeaderMap) -> Option<Timestamp> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    PARSER.parse_timestamp(headers.get(DATE)?.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_api::eviction_request::EvictionRequest;

    use super::*;
    use crate::testing::{context_ahead, failure};

    async fn events(seconds: i64) -> Vec<String> {
        let context = context_ahead(SignedDuration::from_secs(seconds), |_, _, _| failure(404, "NotFound"));
        let request = EvictionRequest::named("ns", "r");
        for _ in 0..3 {
            context.report_skew(&request).await;
        }
        context.recorder.take_all().into_iter().map(|(_, message)| message).collect()
    }

    /// No event said why no request ever started.
    #[tokio::test]
    async fn clocks_that_are_too_far_apart_are_reported_once_with_the_difference() {
        for (seconds, words) in [(42, "s ahead of"), (-3600, "s behind")] {
            let events = events(seconds).await;
            assert!(events.len() == 1 && events[0].contains(words), "{events:?}");
            let named: i64 = events[0].split(' ').find_map(|word| word.parse().ok()).unwrap();
            assert!((named - seconds.abs()).abs() <= 1, "{events:?}");
        }
        for seconds in [-8, 0, 8] {
            assert_eq!(events(seconds).await, Vec::<String>::new(), "{seconds}");
        }
    }

    #[test]
    fn a_difference_is_measured_once_a_minute_and_reported_again_when_it_changes_or_after_an_hour() {
        let (mut state, start) = (State::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let due = [0, 59, 60, 61].map(|second| state.must_measure(at(second)));
        assert_eq!(due, [true, false, true, false]);
        let mut reports =
            |difference, second| state.must_report(SignedDuration::from_secs(difference), at(second));
        assert_eq!(
            [reports(42, 0), reports(50, 60), reports(53, 120), reports(53, 3000)],
            [true, false, true, false]
        );
        assert_eq!([reports(-53, 3060), reports(-53, 6659), reports(-53, 6660)], [true, false, true]);
    }
}
