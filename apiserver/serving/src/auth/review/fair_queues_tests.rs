//! Which request gets the next permit.

#![allow(clippy::unwrap_used)]

use std::net::IpAddr;

use super::*;

const RATE: Rate = Rate { burst: 4, every: Duration::from_millis(25) };
/// From nothing to a whole burst.
const BURST: Duration = Duration::from_millis(100);
const BOUNDS: ReviewBounds = ReviewBounds {
    in_flight: 100,
    in_flight_per_payer: 100,
    rate: RATE,
    rate_per_payer: RATE,
    waiting: 20,
    waiting_per_payer: 8,
    joined: 8,
    joined_per_payer: 8,
};

fn at(address: u8, connection: u64) -> PermitRequest {
    let payer = Payer::Stranger(Some(IpAddr::from([10, 0, 0, address]).into()));
    PermitRequest { payer, connection }
}

fn queues(bounds: ReviewBounds) -> (FairQueues<String>, Instant) {
    let now = Instant::now();
    (FairQueues::new(bounds, now), now)
}

/// All that get a permit at this moment.
fn limiter(queues: &mut FairQueues<String>, now: Instant) -> Vec<String> {
    let next = || match queues.next(now) {
        NextPermit::Permit(who, _) => Some(who),
        _ => None,
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn whoever_has_had_the_fewest_turns_goes_first() {
    let (mut queues, now) = queues(BOUNDS);
    for i in 0..8 {
        queues.wait(&at(1, 1), format!("junk {i}")).unwrap();
    }
    assert_eq!(limiter(&mut queues, now), ["junk 0", "junk 1", "junk 2", "junk 3"]);
    queues.wait(&at(2, 2), "good".into()).unwrap();
    queues.wait(&at(3, 3), "another".into()).unwrap();
    let later = now + BURST;
    assert_eq!(limiter(&mut queues, later), ["good", "another", "junk 4", "junk 5"]);
}

#[test]
fn the_connections_of_an_address_take_turns() {
    let (mut queues, now) = queues(BOUNDS);
    for i in 0..6 {
        queues.wait(&at(1, 1), format!("junk {i}")).unwrap();
    }
    limiter(&mut queues, now);
    queues.wait(&at(1, 2), "good".into()).unwrap();
    assert_eq!(limiter(&mut queues, now + BURST), ["good", "junk 4", "junk 5"]);
}

#[test]
fn nobody_goes_before_the_pace_allows() {
    let (mut queues, now) = queues(BOUNDS);
    for i in 0..6 {
        queues.wait(&at(i, 1), format!("{i}")).unwrap();
    }
    assert_eq!(limiter(&mut queues, now).len(), 4);
    assert!(matches!(queues.next(now), NextPermit::Not { before } if before == now + RATE.every));
    assert_eq!(limiter(&mut queues, now + RATE.every), ["4"]);
    assert_eq!(limiter(&mut queues, now + BURST), ["5"]);
    assert!(matches!(queues.next(now + BURST), NextPermit::Nobody));
}

#[test]
fn a_turn_that_does_not_count_leaves_nothing_behind() {
    let (mut queues, now) = queues(BOUNDS);
    for i in 0..1000 {
        queues.wait(&at(1, 1), "good".into()).unwrap();
        let NextPermit::Permit(_, request) = queues.next(now) else { panic!("{i} has no permit") };
        queues.end(&request, now, false);
    }
    assert!(
        queues.queues.is_empty() && queues.queued.is_empty() && queues.waiting == 0 && queues.in_flight == 0
    );
}

#[test]
fn one_lane_leaves_places_for_others() {
    let (mut queues, now) = queues(ReviewBounds {
        in_flight: 4,
        in_flight_per_payer: 2,
        rate: Rate { burst: 100, ..RATE },
        ..BOUNDS
    });
    for i in 0..6 {
        queues.wait(&at(1, 1), format!("slow {i}")).unwrap();
    }
    assert_eq!(limiter(&mut queues, now).len(), 2);
    queues.wait(&at(2, 2), "other".into()).unwrap();
    assert_eq!(limiter(&mut queues, now), ["other"]);
    queues.end(&at(1, 1), now, true);
    assert_eq!(limiter(&mut queues, now), ["slow 2"]);
}

#[test]
fn whoever_has_the_most_waiting_makes_room() {
    let (mut queues, _) = queues(BOUNDS);
    for i in 0..20 {
        assert!(queues.wait(&at(i % 3, 1), String::new()).is_some());
    }
    // 7, 7 and 6 wait.
    for i in 0..20 {
        assert!(queues.wait(&at(10 + i % 3, 1), String::new()).is_some() == (i < 9), "{i}");
    }
    assert_eq!(queues.waiting, 20);
    let most = queues.queues.values().map(|queue| queue.waiting()).max();
    assert!(most <= Some(4), "{most:?}");
}

#[test]
fn a_connection_with_many_waiting_makes_room_for_another_of_its_address() {
    let (mut queues, now) = queues(BOUNDS);
    for i in 0..8 {
        queues.wait(&at(1, 1), format!("junk {i}")).unwrap();
    }
    assert!(queues.wait(&at(1, 1), "more junk".into()).is_none());
    assert!(queues.wait(&at(1, 2), "good".into()).is_some());
    assert!(limiter(&mut queues, now).contains(&"good".to_owned()));
}

#[test]
fn what_is_remembered_of_lanes_is_forgotten() {
    let (mut queues, mut now) = queues(BOUNDS);
    for i in 0..200 {
        queues.wait(&at(i, 1), String::new()).unwrap();
        now += BURST;
        let NextPermit::Permit(_, request) = queues.next(now) else { panic!("{i} has no permit") };
        queues.end(&request, now, true);
    }
    assert!(queues.queues.len() <= 101);
    queues.next(now + 2 * OF_LATE);
    assert!(queues.queues.is_empty() && queues.meter.is_empty());
}

#[test]
fn one_who_leaves_has_no_turn() {
    let (mut queues, now) = queues(BOUNDS);
    let ticket = queues.wait(&at(1, 1), "gone".into()).unwrap();
    queues.leave(&at(1, 1).payer, ticket);
    queues.leave(&at(1, 1).payer, ticket);
    assert!(limiter(&mut queues, now).is_empty() && queues.queues.is_empty());
}

/// A client that shared an address with 32 connections of an attacker, each with one unknown token, was refused at once.
#[test]
fn connections_that_have_had_turns_make_room_for_one_that_has_had_none() {
    let (mut queues, mut now) = queues(BOUNDS);
    for i in 0..8 {
        queues.wait(&at(1, i), format!("junk {i}")).unwrap();
    }
    for i in 0..8 {
        now += BURST;
        let NextPermit::Permit(_, request) = queues.next(now) else { panic!("{i} has no permit") };
        queues.end(&request, now, true);
        queues.wait(&request, format!("more junk {i}")).unwrap();
    }
    assert!(queues.wait(&at(1, 3), "even more junk".into()).is_none());
    assert!(queues.wait(&at(1, 99), "good".into()).is_some());
    assert_eq!(limiter(&mut queues, now + BURST)[0], "good");
}

#[test]
fn one_lane_leaves_room_for_others_to_join() {
    let (mut queues, _) = queues(BOUNDS);
    let [ann, bob, cid] = [1, 2, 3].map(|address| at(address, 1).payer);
    let mut all = |payer: &Payer| (0..100).filter(|_| queues.join(payer)).count();
    assert_eq!([all(&ann), all(&bob), all(&cid), all(&ann)], [4, 2, 1, 0]);
    for (payer, joined) in [(&ann, 4), (&bob, 2), (&cid, 1)] {
        (0..joined).for_each(|_| queues.part(payer));
    }
    assert!(queues.queues.is_empty() && queues.joined == 0);
}
