//! Tests of which users get a view, and whose views end.

use super::*;
use crate::filter::Entity;
use crate::log::TombstoneLimit;
use crate::token::Position;
use crate::view::Subscription;

fn open(views: &mut Views, user: &str, namespace: &str) -> Result<Subscription, Full> {
    let filter = Filter { namespace: namespace.to_owned(), ..Filter::all(Entity::Eviction) };
    let limit = TombstoneLimit { count: 0, bytes: 0 };
    let view = views.get(filter, user, |_| Log::of_view(limit, Position::START))?;
    Ok(Subscription::new(view, user.into()))
}

fn with(views: usize) -> Views {
    Views::new(ViewLimits { views, ..ViewLimits::default() })
}

#[test]
fn whoever_has_fewer_views_gets_room_from_whoever_has_most() {
    let mut views = with(4);
    let mut greedy = ["a", "b", "c"].map(|namespace| open(&mut views, "greedy", namespace).unwrap());
    let mut modest = open(&mut views, "modest", "d").unwrap();
    let mut new = open(&mut views, "new", "e").unwrap();
    assert_eq!(greedy.iter_mut().filter_map(|it| it.has_ended().then_some(())).count(), 1);
    assert!(!modest.has_ended() && !new.has_ended());
    // A user whose view was ended cannot end the views of others in turn.
    assert_eq!(open(&mut views, "greedy", "f").err(), Some(Full::All));
    let _second = open(&mut views, "new", "f");
    assert!(!modest.has_ended() && !new.has_ended());
    assert_eq!(open(&mut views, "greedy", "g").err(), Some(Full::All));
}

#[test]
fn two_users_that_read_each_others_views_are_ended_all_the_same_and_before_a_view_of_many() {
    let mut views = with(6);
    let mut of_all = ["a", "b", "x", "y", "z"].map(|user| open(&mut views, user, "of-all").unwrap());
    let shared = ["1", "2", "3", "4", "5"];
    let mut pair: Vec<Subscription> = Vec::new();
    for user in ["a", "b"] {
        pair.extend(shared.map(|namespace| open(&mut views, user, namespace).unwrap()));
    }
    let _new = open(&mut views, "new", "n").unwrap();
    assert_eq!(pair.iter_mut().filter_map(|it| it.has_ended().then_some(())).count(), 2);
    assert!(!of_all.iter_mut().any(Subscription::has_ended));
}

#[test]
fn views_that_nobody_reads_are_bounded_and_the_oldest_go_first() {
    let mut views = with(10_000);
    let _read = open(&mut views, "other", "read").unwrap();
    for n in 0..2 * MOST_IDLE {
        drop(open(&mut views, "user", &n.to_string()).unwrap());
    }
    let is_kept = |n: usize| views.by_filter.values().any(|view| view.filter.namespace == n.to_string());
    assert!(views.by_filter.len() <= MOST_IDLE + 2, "{}", views.by_filter.len());
    assert!(is_kept(2 * MOST_IDLE - 1) && !is_kept(0));
    assert!(views.by_filter.values().any(|view| view.filter.namespace == "read"));
}
