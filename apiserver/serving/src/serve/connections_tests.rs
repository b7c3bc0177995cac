//! Tests of which connection is closed for another one.

#![allow(clippy::unwrap_used)]
use std::net::{IpAddr, Ipv4Addr};

use super::*;

fn source(text: &str) -> Network {
    text.parse::<IpAddr>().unwrap().into()
}

/// Opens connections from an address, and returns the numbers of those and of the ones that were closed.
fn open(table: &mut Connections<Id>, from: &str, count: u64) -> (Vec<Id>, Vec<Id>) {
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (id, loses) = table.take(source(from), table.next);
        opened.push(id);
        closed.extend(loses);
    }
    (opened, closed)
}

/// The same with those whose handshake has begun.
fn shake(table: &mut Connections<Id>, from: &str, count: u64) -> (Vec<Id>, Vec<Id>) {
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (id, lost) = open(table, from, 1);
        closed.extend(lost);
        closed.extend(pass(table, id[0], &ALL[..2]));
        opened.extend(id);
    }
    (opened, closed)
}

#[test]
fn an_address_at_its_bound_loses_its_oldest() {
    let mut table = Connections::new(100, 4);
    let (other, _) = shake(&mut table, "10.0.0.2", 1);
    let (opened, closed) = shake(&mut table, "10.0.0.1", 6);
    assert_eq!(closed, opened[..2]);
    assert!(table.leave(other[0]).is_some(), "nobody else's was closed");
}

#[test]
fn those_without_a_handshake_have_a_quarter_of_all_places() {
    let mut table = Connections::new(40, 4);
    let (opened, closed) = open(&mut table, "10.0.0.1", 12);
    assert_eq!(closed, opened[..2]);
}

fn pass(table: &mut Connections<Id>, id: Id, stages: &[ConnectionStage]) -> Vec<Id> {
    stages.iter().filter_map(|stage| table.enter_stage(*stage, id)).collect()
}

const ALL: [ConnectionStage; 4] = [
    ConnectionStage::Waiting,
    ConnectionStage::Handshaking,
    ConnectionStage::Established,
    ConnectionStage::Requesting,
];

/// A probe from the address of an attacker was closed as the oldest, before it was answered.
#[test]
fn a_probe_passes_each_stage_in_which_others_stand_still() {
    for still in 0..ALL.len() {
        let mut table = Connections::new(1_000, 8);
        for attacker in open(&mut table, "10.0.0.1", 8).0 {
            pass(&mut table, attacker, &ALL[..=still]);
        }
        let (probe, _) = open(&mut table, "10.0.0.1", 1);
        for stage in ALL {
            for newcomer in open(&mut table, "10.0.0.1", 2).0 {
                pass(&mut table, newcomer, &ALL[..=still]);
            }
            table.enter_stage(stage, probe[0]);
            assert!(table.open.contains_key(&probe[0]), "{stage:?} beside those in {:?}", ALL[still]);
        }
    }
}

#[test]
fn of_the_stage_with_the_most_the_one_that_is_there_for_longest_is_closed() {
    let mut table = Connections::new(100, 6);
    let (ids, _) = open(&mut table, "10.0.0.1", 6);
    for id in &ids[..4] {
        pass(&mut table, *id, &ALL);
    }
    for id in &ids[4..] {
        pass(&mut table, *id, &ALL[..2]);
    }
    // The first of them asks again.
    assert_eq!(table.enter_stage(ConnectionStage::Requesting, ids[0]), None);
    assert_eq!(shake(&mut table, "10.0.0.1", 1).1, [ids[1]]);
    assert_eq!(shake(&mut table, "10.0.0.1", 1).1, [ids[2]], "as many shake hands, who came to it later");
}

/// Waiting connections used to be closed for each other, and reconnected at once: no handshake was completed, not
/// even a probe's.
#[test]
fn who_waits_for_the_server_is_not_closed_for_the_bound_of_an_address() {
    let mut table = Connections::new(400, 4);
    for id in 0..100 {
        assert_eq!(open(&mut table, "10.0.0.1", 1), (vec![table.next - 1], vec![]), "{id}");
        assert_eq!(table.enter_stage(ConnectionStage::Waiting, table.next - 1), None);
    }
    let (last, closed) = open(&mut table, "10.0.0.1", 1);
    assert_eq!(closed, [0], "a quarter of all permits may wait");
    let last = last[0];
    assert!(
        pass(&mut table, last, &ALL[1..]).is_empty(),
        "none of those whose handshake has begun was there"
    );
}

#[test]
fn when_all_places_are_taken_the_address_with_the_most_loses() {
    let mut table = Connections::new(8, 6);
    let (many, _) = shake(&mut table, "10.0.0.1", 6);
    let (_, closed) = open(&mut table, "10.0.0.2", 2);
    assert!(closed.is_empty());
    let (_, closed) = open(&mut table, "10.0.0.3", 2);
    assert_eq!(closed, many[..2]);
}

#[test]
fn who_is_authenticated_is_not_closed_for_strangers() {
    let mut table = Connections::new(8, 2);
    let (known, _) = open(&mut table, "10.0.0.1", 1);
    assert_eq!(table.authenticated(known[0], "ann"), None);
    let (opened, closed) = shake(&mut table, "10.0.0.1", 50);
    assert_eq!(closed.len(), 48);
    assert!(closed.iter().all(|id| opened.contains(id)));
    assert!(table.leave(known[0]).is_some());
}

#[test]
fn a_user_may_have_what_others_leave_and_gives_it_back() {
    let mut table = Connections::new(16, 16);
    let mut ids = Vec::new();
    for _ in 0..12 {
        let (id, _) = table.take(source("10.0.0.1"), table.next);
        assert_eq!(table.authenticated(id, "ann"), None);
        ids.push(id);
    }
    // Three quarters of the permits are for users.
    let (thirteenth, _) = table.take(source("10.0.0.1"), table.next);
    assert_eq!(table.authenticated(thirteenth, "ann"), Some(thirteenth));
    let (bob, _) = table.take(source("10.0.0.2"), table.next);
    assert_eq!(table.authenticated(bob, "bob"), ids.pop(), "the newest of who has the most");
    assert_eq!(table.authenticated(bob, "bob"), None, "it counts once");
}

/// The agents of all nodes are one account, which has the most connections of all.
#[test]
fn who_comes_with_many_from_one_address_does_not_take_the_places_of_an_account_on_every_node() {
    let mut table = Connections::new(16, 16);
    let mut agents = Vec::new();
    for node in 0..8 {
        let (id, _) = table.take(source(&format!("10.0.0.{node}")), table.next);
        assert_eq!(table.authenticated(id, "agents"), None);
        agents.push(id);
    }
    for user in ["eve", "mallory"].repeat(20) {
        let (id, _) = table.take(source("10.0.1.1"), table.next);
        let loses = table.authenticated(id, user);
        assert!(loses.is_none_or(|id| !agents.contains(&id)), "{loses:?} of {agents:?}");
    }
    assert_eq!(table.users.total(), 12);
}

#[test]
fn a_front_proxy_takes_no_place() {
    let mut table = Connections::new(4, 4);
    for _ in 0..20 {
        let (proxy, loses) = table.take(source("10.0.0.1"), table.next);
        assert_eq!(loses, None);
        table.exempt(proxy);
    }
    assert_eq!(shake(&mut table, "10.0.0.2", 4).1, [] as [Id; 0]);
    assert_eq!((table.open.len(), table.strangers.total()), (24, 4));
}

#[test]
fn one_place_is_enough_for_a_user() {
    let mut table = Connections::new(1, 4);
    let (only, _) = table.take(source("10.0.0.1"), 0);
    assert_eq!(table.authenticated(only, "ann"), None);
    assert_eq!(table.take(source("10.0.0.2"), 1).1, Some(0));
}

#[test]
fn nothing_is_left_of_those_who_left() {
    let mut table = Connections::new(1_000, 10);
    for number in 0..500_u32 {
        let address = IpAddr::from(Ipv4Addr::from(number));
        let (id, _) = table.take(address.into(), 0);
        match number % 3 {
            0 => drop(table.authenticated(id, &number.to_string())),
            1 => table.exempt(id),
            _ => {}
        }
        assert!(table.leave(id).is_some() && table.leave(id).is_none());
    }
    assert_eq!((table.open.len(), table.strangers.total(), table.users.total()), (0, 0, 0));
}
