//! Tests of the scheduler: in single situations, and of its invariants under random steps.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const SYSTEM: usize = 0;
const CONTROLLERS: usize = 1;
const EVERYBODY: usize = 2;
const ANONYMOUS: usize = 3;

/// A scheduler that is checked as a whole after each step. A waiting request is known by its number.
struct Checked {
    scheduler: Scheduler<usize>,
    shares: [Share; LEVELS],
    seats: u32,
    arrived: usize,
    held: Vec<Claim>,
    waiting: Vec<(usize, Ticket, Claim)>,
}

impl Checked {
    fn new(total: u32) -> Self {
        let shares = shares(total);
        let seats = shares.iter().map(|share| share.nominal).sum();
        let (held, waiting) = (Vec::new(), Vec::new());
        Self { scheduler: Scheduler::new(total), shares, seats, arrived: 0, held, waiting }
    }

    fn used(&self, level: usize) -> u32 {
        self.held.iter().filter(|claim| claim.level == level).map(|claim| claim.seats).sum()
    }

    fn used_by(&self, level: usize, flow: FlowKey) -> u32 {
        let of = |claim: &&Claim| claim.level == level && claim.flow == flow;
        self.held.iter().filter(of).map(|claim| claim.seats).sum()
    }

    fn free(&self, level: usize) -> u32 {
        let others = (0..LEVELS).filter(|other| *other != level);
        let gone: u32 = others.map(|other| self.used(other).max(self.shares[other].lower)).sum();
        let used = self.used(level);
        (self.seats - gone - used).min(self.shares[level].upper - used)
    }

    /// `Some(true)` if it was granted, `None` if it was refused.
    fn arrive(&mut self, level: usize, flow: FlowKey, seats: u32) -> Option<bool> {
        let claim = Claim { level, flow, seats };
        let of_level: Vec<_> = self.waiting.iter().filter(|(_, _, other)| other.level == level).collect();
        let of_flow = of_level.iter().filter(|(_, _, other)| other.flow == flow).count();
        let is_kept = self.used(level) + seats <= self.shares[level].lower;
        let must = of_level.is_empty() && is_kept && self.used_by(level, flow) == 0;
        let is_crowded = of_level.len() == 1_024 || of_flow >= ((1_024 - of_level.len()) / 16).clamp(1, 50);
        let (mut served, number) = (Vec::new(), self.arrived);
        self.arrived += 1;
        match self.scheduler.arrive(claim, || number, &mut served) {
            Arrival::Granted => {
                self.held.push(claim);
                assert!(served.is_empty());
            }
            Arrival::QueueFull => {
                assert!(is_crowded && !must, "{claim:?} was refused");
                return None;
            }
            Arrival::Waits(ticket) => {
                assert!(!is_crowded);
                self.waiting.push((number, ticket, claim));
                self.take_in(served);
            }
        }
        let granted = !self.waiting.iter().any(|(waiting, _, _)| *waiting == number);
        assert!(granted || !must, "{claim:?} waits for seats that its level never lends");
        self.check();
        Some(granted)
    }

    fn release(&mut self, at: usize) {
        let claim = self.held.swap_remove(at);
        let mut served = Vec::new();
        self.scheduler.release(claim, &mut served);
        self.take_in(served);
        self.check();
    }

    fn leave(&mut self, at: usize) {
        let (_, ticket, claim) = self.waiting.remove(at);
        let mut served = Vec::new();
        assert!(self.scheduler.leave(claim, ticket, &mut served));
        assert!(!self.scheduler.leave(claim, ticket, &mut served), "it is gone");
        self.take_in(served);
        self.check();
    }

    fn take_in(&mut self, served: Vec<Served<usize>>) {
        for (number, claim) in served {
            let at = self.waiting.iter().position(|(waiting, _, _)| *waiting == number).unwrap();
            let (_, ticket, asked) = self.waiting.remove(at);
            assert_eq!(asked, claim);
            self.check_order(claim, ticket);
            self.held.push(claim);
        }
    }

    /// Checks that the request was the first of its flow, and that no flow with fewer seats waits except one that
    /// would leave too little.
    fn check_order(&self, claim: Claim, ticket: Ticket) {
        let free = self.free(claim.level);
        let used = self.used_by(claim.level, claim.flow);
        for (_, other, waiting) in self.waiting.iter().filter(|(_, _, other)| other.level == claim.level) {
            if waiting.flow == claim.flow {
                assert!(*other > ticket, "{claim:?} overtook {waiting:?}");
            } else if self.used_by(waiting.level, waiting.flow) < used {
                let less = self.used_by(waiting.level, waiting.flow);
                let of_flow = |first: &Claim| (first.level, first.flow) == (waiting.level, waiting.flow);
                let others = self.waiting.iter().find(|(_, _, first)| of_flow(first)).unwrap().2;
                let left = free.saturating_sub(others.seats);
                assert!(less > 0 && less + others.seats > 3 * left, "{claim:?} before {waiting:?}");
            }
        }
    }

    fn check(&self) {
        let used: Vec<u32> = (0..LEVELS).map(|level| self.used(level)).collect();
        let taken: u32 = used.iter().zip(&self.shares).map(|(used, share)| share.lower.max(*used)).sum();
        assert!(taken <= self.seats, "{used:?}");
        for (level, share) in self.shares.iter().enumerate() {
            assert_eq!(self.scheduler.level(level).unwrap().used, used[level]);
            assert!(used[level] <= share.upper);
        }
        // If only one request waits and its flow holds no seat, there are too few free seats for it.
        if let [(_, _, claim)] = self.waiting[..] {
            let alone = self.used_by(claim.level, claim.flow) == 0;
            assert!(!alone || claim.seats > self.free(claim.level), "{claim:?} waits for nothing");
        }
    }

    fn end(mut self) {
        while !self.waiting.is_empty() {
            self.leave(self.waiting.len() / 2);
        }
        while !self.held.is_empty() {
            self.release(self.held.len() / 2);
        }
        for level in 0..LEVELS {
            let level = self.scheduler.level(level).unwrap();
            assert_eq!((level.used, level.executing, level.waiting, level.flows()), (0, 0, 0, 0));
        }
    }
}

/// A flow that takes all that it can get, one seat at a time.
fn greedy(checked: &mut Checked, level: usize, flow: FlowKey) -> u32 {
    while checked.arrive(level, flow, 1) == Some(true) {}
    checked.used_by(level, flow)
}

/// Regression: one flow held every seat for a minute. Now a quarter of what its level can have is left to the
/// others.
#[test]
fn one_flow_leaves_seats_to_the_next() {
    let mut checked = Checked::new(600);
    let first = greedy(&mut checked, EVERYBODY, 1);
    assert_eq!((first, checked.free(EVERYBODY)), (310, 104));
    let second = greedy(&mut checked, EVERYBODY, 2);
    assert_eq!(second, 78);
    assert_eq!(checked.arrive(EVERYBODY, 3, 10), Some(true));
}

#[test]
fn whatever_everybody_holds_the_other_levels_get_what_they_never_lend() {
    let mut checked = Checked::new(600);
    for flow in 0..1_000 {
        checked.arrive(EVERYBODY, flow, 1);
    }
    assert_eq!((checked.used(EVERYBODY), checked.free(EVERYBODY)), (414, 0));
    for (level, kept) in [(SYSTEM, 81), (CONTROLLERS, 90), (ANONYMOUS, 15)] {
        for flow in 0..kept {
            assert_eq!(checked.arrive(level, flow, 1), Some(true), "{level} {flow}");
        }
        assert_eq!(checked.arrive(level, kept, 1), Some(false), "{level}");
    }
}

#[test]
fn lent_seats_come_back_before_anybody_borrows_more() {
    let mut checked = Checked::new(600);
    for flow in 0..1_000 {
        checked.arrive(EVERYBODY, flow, 1);
    }
    for flow in 0..100 {
        checked.arrive(CONTROLLERS, flow, 1);
    }
    assert_eq!(checked.used(CONTROLLERS), 90);
    for returned in 1..=10 {
        let at = checked.held.iter().position(|claim| claim.level == EVERYBODY).unwrap();
        checked.release(at);
        assert_eq!((checked.used(CONTROLLERS), checked.used(EVERYBODY)), (90 + returned, 414 - returned));
    }
}

#[test]
fn a_request_of_many_seats_is_not_overtaken_for_ever() {
    let mut checked = Checked::new(600);
    for flow in 0..414 {
        assert_eq!(checked.arrive(EVERYBODY, flow, 1), Some(true));
    }
    assert_eq!(checked.arrive(EVERYBODY, 1_000, 10), Some(false));
    for flow in 2_000..2_020 {
        assert_eq!(checked.arrive(EVERYBODY, flow, 1), Some(false));
    }
    for _ in 0..9 {
        checked.release(0);
        assert_eq!(checked.used_by(EVERYBODY, 1_000), 0);
    }
    checked.release(0);
    assert_eq!(checked.used_by(EVERYBODY, 1_000), 10);
}

/// A user with hundreds of flows gets ever less room in the queues, and the next flow finds some.
#[test]
fn many_flows_leave_places_to_wait_in() {
    let mut checked = Checked::new(2);
    let mut queued = HashMap::<FlowKey, usize>::new();
    for flow in 0..64 {
        while checked.arrive(ANONYMOUS, flow, 1).is_some() {
            *queued.entry(flow).or_default() += 1;
        }
    }
    assert_eq!((queued[&0], queued[&1]), (51, 50), "one of the first has the seat");
    assert!((0..64).all(|flow| queued.get(&flow) >= Some(&1)), "{queued:?}");
    assert_eq!(checked.arrive(ANONYMOUS, 100, 1), Some(false));
    checked.end();
}

#[derive(Clone, Debug)]
enum Step {
    Arrive { level: usize, flow: FlowKey, seats: u32 },
    Release(usize),
    Leave(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..LEVELS, 0..6_u64, prop_oneof![4 => Just(1), 1 => 2..5_u32])
            .prop_map(|(level, flow, seats)| Step::Arrive { level, flow, seats }),
        4 => any::<usize>().prop_map(Step::Release),
        1 => any::<usize>().prop_map(Step::Leave),
    ]
}

proptest! {
    #[test]
    fn what_is_promised_holds_whatever_comes(total in 1..80_u32, steps in prop::collection::vec(step(), 1..400)) {
        let mut checked = Checked::new(total);
        for step in steps {
            match step {
                Step::Arrive { level, flow, seats } => {
                    let seats = seats.min(checked.shares[level].widest());
                    checked.arrive(level, flow, seats);
                }
                Step::Release(at) if !checked.held.is_empty() => checked.release(at % checked.held.len()),
                Step::Leave(at) if !checked.waiting.is_empty() => checked.leave(at % checked.waiting.len()),
                _ => {}
            }
        }
        checked.end();
    }
}
