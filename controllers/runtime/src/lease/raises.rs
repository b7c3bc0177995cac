//! How often a holder of the Lease may go above a refused term, and what people are told of it.

use std::time::Duration;

use super::RefusedToken;

/// Longest time between two terms of one holder.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// The terms with which the holder has gone above refused ones. Two programs with Leases of their own that write as one user
/// make each other's terms outdated for ever: each time the holder waits twice as long.
#[derive(Debug, Default)]
pub(super) struct Raises {
    count: u32,
    /// When the last one was written, as time since boot.
    last: Duration,
    /// The refused term above which the Lease is written; whether it was, no answer has said yet.
    under_way: Option<RefusedToken>,
    /// The refused term of which people know that none can follow it.
    final_term: Option<u64>,
}

impl Raises {
    /// Whether the holder may write the Lease with another term now. It waits for twice `unit` after the first one.
    pub(super) fn may_begin(&self, now: Duration, unit: Duration) -> bool {
        let wait = unit.saturating_mul(2_u32.saturating_pow(self.count)).min(LONGEST_WAIT);
        self.count == 0 || now.saturating_sub(self.last) >= wait
    }

    /// Notes that the Lease is about to be written.
    pub(super) fn begin(&mut self, refused: RefusedToken) {
        self.under_way = Some(refused);
    }

    /// Returns the refused term above which we have gone, if the Lease that was written last, of this term, is the first one
    /// that shows it: the answer to the write itself may have been lost.
    pub(super) fn end(&mut self, now: Duration, term: u64) -> Option<RefusedToken> {
        let refused = self.under_way.take_if(|refused| refused.term != term)?;
        (self.count, self.last) = (self.count.saturating_add(1), now);
        Some(refused)
    }

    /// Notes that no term can follow this one. Returns whether people have to be told.
    pub(super) fn give_up(&mut self, refused: RefusedToken) -> bool {
        self.final_term.replace(refused.term) != Some(refused.term)
    }

    /// Notes that somebody else holds the Lease.
    pub(super) fn cancel(&mut self) {
        self.under_way = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    /// A holder waits for longer each time that it has to go above a refused term, and learns from the Lease that it has done so
    /// where the answer was lost.
    #[test]
    fn terms_above_refused_ones_become_rarer() {
        let refused = RefusedToken { term: 5, newest: 6, highest: 9 };
        let mut raises = Raises::default();
        assert!(raises.may_begin(S(1000), S(4)), "the first one at once");
        raises.begin(refused);
        assert_eq!(raises.end(S(1000), 5), None, "the Lease was not written");
        assert_eq!(raises.end(S(1000), 7), Some(refused));
        assert_eq!(raises.end(S(1002), 7), None, "it is told once");
        assert!(!raises.may_begin(S(1007), S(4)) && raises.may_begin(S(1008), S(4)));
        for _ in 0..40 {
            raises.begin(refused);
            raises.end(S(2000), 7);
        }
        assert!(!raises.may_begin(S(2599), S(4)) && raises.may_begin(S(2600), S(4)));
        raises.begin(refused);
        raises.cancel();
        assert_eq!(raises.end(S(3000), 7), None);
        assert!(raises.give_up(refused) && !raises.give_up(refused));
    }
}
