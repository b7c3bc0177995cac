//! Counts how often others have lately undone a change of a controller, and decides when that is to be
//! reported.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// How long it counts that the change was undone.
const UNDONE_WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// Least time between two reports.
const REPORT_INTERVAL: SignedDuration = SignedDuration::from_secs(60);
/// Most times that are remembered.
const MAX_TIMES: usize = 16;

/// How often others have undone one change of ours lately.
#[derive(Clone, Debug, Default)]
pub struct UndoneByOthers {
    undone: VecDeque<Timestamp>,
    /// When the change was undone for the first time, and how often since then; none once nothing was undone
    /// for [`UNDONE_WINDOW`].
    streak: Option<(Timestamp, usize)>,
    reported: Option<Timestamp>,
}

impl UndoneByOthers {
    /// Takes in that others undid the change `times` times since the last call.
    pub fn undone(&mut self, times: usize, now: Timestamp) {
        self.forget(now);
        self.undone.extend(std::iter::repeat_n(now, times.min(MAX_TIMES)));
        let (began, before) = self.streak.unwrap_or((now, 0));
        self.streak = Some((began, before.saturating_add(times)));
        self.forget(now);
    }

    /// Forgets what was more than ten minutes ago.
    pub fn forget(&mut self, now: Timestamp) {
        let is_old = |at: &Timestamp| now.duration_since(*at) > UNDONE_WINDOW;
        while self.undone.len() > MAX_TIMES || self.undone.front().is_some_and(is_old) {
            self.undone.pop_front();
        }
        if self.undone.is_empty() {
            self.streak = None;
        }
    }

    /// How often the change was undone, and since when; none if it was only once, which may be a mistake. A
    /// stored text may contain it: it changes only when the change is undone again, or has not been undone
    /// for ten minutes.
    pub fn since(&self) -> Option<(usize, Timestamp)> {
        self.streak.filter(|(_, times)| *times > 1).map(|(began, times)| (times, began))
    }

    /// How often the change was undone within the last ten minutes; 16 at most.
    pub fn times(&self) -> usize {
        self.undone.len()
    }

    /// When the change was undone last.
    pub fn last(&self) -> Option<Timestamp> {
        self.undone.back().copied()
    }

    /// Like [`UndoneByOthers::since`], but none if the last report is less than a minute ago.
    pub fn report(&mut self, now: Timestamp) -> Option<(usize, Timestamp)> {
        let is_due = self.reported.is_none_or(|at| now.duration_since(at) >= REPORT_INTERVAL);
        let since = self.since().filter(|_| is_due)?;
        self.reported = Some(now);
        Some(since)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_conflict_is_reported_from_the_second_time_on_and_once_a_minute() {
        let mut conflict = UndoneByOthers::default();
        let mut report = |second| {
            conflict.undone(1, at(second));
            conflict.report(at(second))
        };
        assert_eq!(
            [report(0), report(1), report(60), report(61)],
            [None, Some((2, at(0))), None, Some((4, at(0)))]
        );
        assert_eq!(report(700), None, "the others are long ago");
    }

    /// The number fell as time passed, and each change of it was a write.
    #[test]
    fn what_is_said_of_it_changes_only_when_it_is_undone_again_or_over() {
        let mut conflict = UndoneByOthers::default();
        conflict.undone(1, at(0));
        assert_eq!(conflict.since(), None, "once may be a mistake");
        conflict.undone(1, at(500));
        for second in [500, 601, 1000, 1100] {
            conflict.forget(at(second));
            assert_eq!(conflict.since(), Some((2, at(0))), "at {second}");
        }
        conflict.undone(20, at(1100));
        assert_eq!(conflict.since(), Some((22, at(0))));
        conflict.forget(at(1701));
        assert_eq!(conflict.since(), None);
    }

    /// An event said 16 times, and the condition beside it 40.
    #[test]
    fn what_is_told_and_what_is_stored_have_one_count() {
        let mut conflict = UndoneByOthers::default();
        for second in [0, 300, 600, 900] {
            conflict.undone(10, at(second));
            assert_eq!(conflict.report(at(second)), conflict.since());
        }
        assert_eq!(conflict.since(), Some((40, at(0))));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut conflict = UndoneByOthers::default();
        conflict.undone(1000, at(0));
        conflict.undone(1000, at(1));
        assert_eq!((conflict.times(), conflict.last()), (MAX_TIMES, Some(at(1))));
        conflict.forget(at(602));
        assert_eq!((conflict.times(), conflict.last()), (0, None));
    }
}
