//! The seats of each priority level: its share, what of it is never lent, and the most that it may hold.

use super::priority_level::LIMITED;

/// How many levels share the seats.
pub(super) const LEVELS: usize = LIMITED.len();

/// How the seats are shared, in the order of [`LIMITED`].
///
/// Seats are not taken away from a request, and a client decides how long its request takes (up to the deadline). A
/// level that lent all its seats would have none for that long, so each keeps a part: as much as the levels of
/// Kubernetes that have the same users (k8s.io/apiserver pkg/apis/flowcontrol/bootstrap/default.go: system,
/// workload-high, workload-low, global-default). Anonymous users are one flow, and borrow nothing.
const PLAN: [Plan; LEVELS] = [
    Plan { percent: 20, lendable_percent: 33, borrows: true },
    Plan { percent: 30, lendable_percent: 50, borrows: true },
    Plan { percent: 45, lendable_percent: 90, borrows: true },
    Plan { percent: 5, lendable_percent: 50, borrows: false },
];

struct Plan {
    /// Of all seats.
    percent: u32,
    /// Of the level's own seats.
    lendable_percent: u32,
    borrows: bool,
}

/// The seats of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Its share. What others have borrowed of it comes back as they end, before any level borrows more.
    pub nominal: u32,
    /// The part of its share that it never lends.
    pub lower: u32,
    /// The most that it may hold, borrowed seats among them.
    pub upper: u32,
}

impl Share {
    /// The most seats of one request (k8s.io/apiserver pkg/util/flowcontrol, maxSeats: 15% of the level's share).
    pub fn widest(self) -> u32 {
        (self.nominal.saturating_mul(15) / 100).max(1)
    }
}

/// Shares `total` seats. Parts of a seat are rounded up, so that every level has one: the sum may be a few more than
/// `total`.
pub fn shares(total: u32) -> [Share; LEVELS] {
    let mut shares = PLAN.map(|plan| {
        let nominal = part(total, plan.percent).max(1);
        Share { nominal, lower: nominal - lent(nominal, plan.lendable_percent), upper: nominal }
    });
    let seats: u32 = shares.iter().map(|share| share.nominal).sum();
    let kept: u32 = shares.iter().map(|share| share.lower).sum();
    for (share, plan) in shares.iter_mut().zip(&PLAN) {
        if plan.borrows {
            share.upper = seats - (kept - share.lower);
        }
    }
    shares
}

fn part(total: u32, percent: u32) -> u32 {
    u32::try_from((u64::from(total) * u64::from(percent)).div_ceil(100)).unwrap_or(u32::MAX)
}

fn lent(nominal: u32, percent: u32) -> u32 {
    u32::try_from(u64::from(nominal) * u64::from(percent) / 100).unwrap_or(nominal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_seats_are_shared_by_percent() {
        let [system, controllers, everybody, anonymous] = shares(600);
        assert_eq!(system, Share { nominal: 120, lower: 81, upper: 600 - 90 - 27 - 15 });
        assert_eq!(controllers, Share { nominal: 180, lower: 90, upper: 600 - 81 - 27 - 15 });
        assert_eq!(everybody, Share { nominal: 270, lower: 27, upper: 600 - 81 - 90 - 15 });
        assert_eq!(anonymous, Share { nominal: 30, lower: 15, upper: 30 });
    }

    #[test]
    fn every_level_has_a_seat_that_it_never_lends() {
        for total in 0..1_000 {
            let shares = shares(total);
            let seats: u32 = shares.iter().map(|share| share.nominal).sum();
            assert!((total..=total + 4).contains(&seats), "{total}: {seats}");
            for share in shares {
                assert!(share.lower >= 1 && share.lower <= share.nominal && share.nominal <= share.upper);
                assert!(share.widest() >= 1 && share.widest() <= share.nominal);
            }
        }
    }
}
