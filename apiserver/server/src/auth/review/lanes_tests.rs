//! Whose turn it is.

#![allow(clippy::unwrap_used)]

use std::net::IpAddr;

use super::*;

const PACE: Pace = Pace { burst: 4, every: Duration::from_millis(25) };
/// From nothing to a whole burst.
const BURST: Duration = Duration::from_millis(100);
const BOUNDS: Bounds = Bounds {
    in_flight: 100,
    in_flight_per_lane: 100,
    pace: PACE,
    pace_per_lane: PACE,
    waiting: 20,
    waiting_per_lane: 8,
    joined: 8,
    joined_per_lane: 8,
};

fn at(address: u8, connection: u64) -> Wish {
    let payer = Payer::Stranger(Some(IpAddr::from([10, 0, 0, address]).into()));
    Wish { payer, connection }
}

fn lanes(bounds: Bounds) -> (Lanes<String>, Instant) {
    let now = Instant::now();
    (Lanes::new(bounds, now), now)
}

/// All whose turn it is at this moment.
fn turns(lanes: &mut Lanes<String>, now: Instant) -> Vec<String> {
    let next = || match lanes.next(now) {
        Next::Turn(who, _) => Some(who),
        _ => None,
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn whoever_has_had_the_fewest_turns_goes_first() {
    let (mut lanes, now) = lanes(BOUNDS);
    for i in 0..8 {
        lanes.wait(&at(1, 1), format!("junk {i}")).unwrap();
    }
    assert_eq!(turns(&mut lanes, now), ["junk 0", "junk 1", "junk 2", "junk 3"]);
    lanes.wait(&at(2, 2), "good".into()).unwrap();
    lanes.wait(&at(3, 3), "another".into()).unwrap();
    let later = now + BURST;
    assert_eq!(turns(&mut lanes, later), ["good", "another", "junk 4", "junk 5"]);
}

#[test]
fn the_connections_of_an_address_take_turns() {
    let (mut lanes, now) = lanes(BOUNDS);
    for i in 0..6 {
        lanes.wait(&at(1, 1), format!("junk {i}")).unwrap();
    }
    turns(&mut lanes, now);
    lanes.wait(&at(1, 2), "good".into()).unwrap();
    assert_eq!(turns(&mut lanes, now + BURST), ["good", "junk 4", "junk 5"]);
}

#[test]
fn nobody_goes_before_the_pace_allows() {
    let (mut lanes, now) = lanes(BOUNDS);
    for i in 0..6 {
        lanes.wait(&at(i, 1), format!("{i}")).unwrap();
    }
    assert_eq!(turns(&mut lanes, now).len(), 4);
    assert!(matches!(lanes.next(now), Next::Not { before } if before == now + PACE.every));
    assert_eq!(turns(&mut lanes, now + PACE.every), ["4"]);
    assert_eq!(turns(&mut lanes, now + BURST), ["5"]);
    assert!(matches!(lanes.next(now + BURST), Next::Nobody));
}

#[test]
fn a_turn_that_does_not_count_leaves_nothing_behind() {
    let (mut lanes, now) = lanes(BOUNDS);
    for i in 0..1000 {
        lanes.wait(&at(1, 1), "good".into()).unwrap();
        let Next::Turn(_, wish) = lanes.next(now) else { panic!("{i} has no turn") };
        lanes.end(&wish, now, false);
    }
    assert!(lanes.lanes.is_empty() && lanes.queued.is_empty() && lanes.waiting == 0 && lanes.in_flight == 0);
}

#[test]
fn one_lane_leaves_places_for_others() {
    let (mut lanes, now) =
        lanes(Bounds { in_flight: 4, in_flight_per_lane: 2, pace: Pace { burst: 100, ..PACE }, ..BOUNDS });
    for i in 0..6 {
        lanes.wait(&at(1, 1), format!("slow {i}")).unwrap();
    }
    assert_eq!(turns(&mut lanes, now).len(), 2);
    lanes.wait(&at(2, 2), "other".into()).unwrap();
    assert_eq!(turns(&mut lanes, now), ["other"]);
    lanes.end(&at(1, 1), now, true);
    assert_eq!(turns(&mut lanes, now), ["slow 2"]);
}

#[test]
fn whoever_has_the_most_waiting_makes_room() {
    let (mut lanes, _) = lanes(BOUNDS);
    for i in 0..20 {
        assert!(lanes.wait(&at(i % 3, 1), String::new()).is_some());
    }
    // 7, 7 and 6 wait.
    for i in 0..20 {
        assert!(lanes.wait(&at(10 + i % 3, 1), String::new()).is_some() == (i < 9), "{i}");
    }
    assert_eq!(lanes.waiting, 20);
    let most = lanes.lanes.values().map(|lane| lane.waiting()).max();
    assert!(most <= Some(4), "{most:?}");
}

#[test]
fn a_connection_with_many_waiting_makes_room_for_another_of_its_address() {
    let (mut lanes, now) = lanes(BOUNDS);
    for i in 0..8 {
        lanes.wait(&at(1, 1), format!("junk {i}")).unwrap();
    }
    assert!(lanes.wait(&at(1, 1), "more junk".into()).is_none());
    assert!(lanes.wait(&at(1, 2), "good".into()).is_some());
    assert!(turns(&mut lanes, now).contains(&"good".to_owned()));
}

#[test]
fn what_is_remembered_of_lanes_is_forgotten() {
    let (mut lanes, mut now) = lanes(BOUNDS);
    for i in 0..200 {
        lanes.wait(&at(i, 1), String::new()).unwrap();
        now += BURST;
        let Next::Turn(_, wish) = lanes.next(now) else { panic!("{i} has no turn") };
        lanes.end(&wish, now, true);
    }
    assert!(lanes.lanes.len() <= 101);
    lanes.next(now + 2 * OF_LATE);
    assert!(lanes.lanes.is_empty() && lanes.starts.is_empty());
}

#[test]
fn one_who_leaves_has_no_turn() {
    let (mut lanes, now) = lanes(BOUNDS);
    let ticket = lanes.wait(&at(1, 1), "gone".into()).unwrap();
    lanes.leave(&at(1, 1).payer, ticket);
    lanes.leave(&at(1, 1).payer, ticket);
    assert!(turns(&mut lanes, now).is_empty() && lanes.lanes.is_empty());
}

/// Whoever shared an address with 32 connections of an attacker, each with one unknown token, was refused at once.
#[test]
fn connections_that_have_had_turns_make_room_for_one_that_has_had_none() {
    let (mut lanes, mut now) = lanes(BOUNDS);
    for i in 0..8 {
        lanes.wait(&at(1, i), format!("junk {i}")).unwrap();
    }
    for i in 0..8 {
        now += BURST;
        let Next::Turn(_, wish) = lanes.next(now) else { panic!("{i} has no turn") };
        lanes.end(&wish, now, true);
        lanes.wait(&wish, format!("more junk {i}")).unwrap();
    }
    assert!(lanes.wait(&at(1, 3), "even more junk".into()).is_none());
    assert!(lanes.wait(&at(1, 99), "good".into()).is_some());
    assert_eq!(turns(&mut lanes, now + BURST)[0], "good");
}

#[test]
fn one_lane_leaves_room_for_others_to_join() {
    let (mut lanes, _) = lanes(BOUNDS);
    let [ann, bob, cid] = [1, 2, 3].map(|address| at(address, 1).payer);
    let mut all = |payer: &Payer| (0..100).filter(|_| lanes.join(payer)).count();
    assert_eq!([all(&ann), all(&bob), all(&cid), all(&ann)], [4, 2, 1, 0]);
    for (payer, joined) in [(&ann, 4), (&bob, 2), (&cid, 1)] {
        (0..joined).for_each(|_| lanes.part(payer));
    }
    assert!(lanes.lanes.is_empty() && lanes.joined == 0);
}
