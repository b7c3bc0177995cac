//! The order in which creations, watch events and a new filling of the cache arrive does not change the count.

#![allow(clippy::unwrap_used)]

use drydock_machinery::Object;
use drydock_machinery::kind::BytesQuota;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const BYTES: u64 = 100;

/// A quota of `hard` objects for each namespace.
fn usage(hard: usize) -> Arc<QuotaUsage> {
    let counts = |object: &Object| object.0.get("spec").and_then(|spec| spec.get("open")).is_some();
    let bytes = BytesQuota { name: "bytes", hard: BYTES, counts_status: true, remedy: "" };
    let usage =
        QuotaUsage::new(Quota { name: "open", hard, reads: &["spec.open"], counts, remedy: "", bytes });
    usage.fill(&[], Revision(1));
    Arc::new(usage)
}

fn stored(key: &str, open: bool, revision: u64) -> Arc<Stored> {
    let spec = if open { json!({"spec": {"open": true}}) } else { json!({"spec": {}}) };
    let object = Object::from(spec.as_object().unwrap().clone());
    Arc::new(Stored::new(key.to_owned(), object, Revision(revision)))
}

fn used(usage: &QuotaUsage, namespace: &str) -> usize {
    usage.state.lock().claims.get(namespace).map_or(0, HashMap::len)
}

/// What controllers wrote into statuses left no room for others to change a stage.
#[test]
fn where_the_status_does_not_count_only_the_rest_of_an_object_does() {
    let counts = |_: &Object| true;
    let bytes = BytesQuota { name: "bytes", hard: BYTES, counts_status: false, remedy: "" };
    let usage = QuotaUsage::new(Quota { name: "all", hard: 9, reads: &[], counts, remedy: "", bytes });
    let item = |padding: usize, status: usize| {
        let fields =
            json!({"subresource": "status", "manager": "m", "fieldsV1": {"f:x": "x".repeat(status)}});
        let object = json!({
            "metadata": {"name": "a", "managedFields": [fields]}, "spec": {"p": "x".repeat(padding)},
            "status": {"s": "x".repeat(status)},
        });
        let object = Object::from_json(object.to_string().as_bytes()).unwrap();
        Arc::new(Stored::new("ns/a".to_owned(), object, Revision(2)))
    };
    usage.fill(&[item(1, 1000)], Revision(2));
    usage.check_bytes("ns/b").unwrap();
    usage.note("ns/a", Some(&item(1, 1000)), Some(&item(90, 0)), Revision(3));
    assert!(matches!(usage.check_bytes("ns/b"), Err(ReservationError::Used(_))));
    usage.note("ns/a", Some(&item(90, 0)), Some(&item(1, 5000)), Revision(4));
    usage.check_bytes("ns/b").unwrap();
    usage.note("ns/a", Some(&item(1, 5000)), None, Revision(5));
    assert!(usage.state.lock().bytes.is_empty());
}

#[test]
fn reservations_count_from_the_beginning_and_no_longer_than_they_are_held() {
    let usage = usage(3);
    let held: Vec<_> = (0..3).map(|n| usage.reserve(&format!("ns/{n}")).unwrap()).collect();
    assert!(matches!(usage.reserve("ns/x"), Err(ReservationError::Used(3))));
    drop(usage.reserve("other/x").unwrap());
    drop(held);
    assert!(usage.state.lock().claims.is_empty());
}

#[test]
fn what_was_made_counts_until_the_watch_shows_otherwise() {
    let usage = usage(1);
    usage.reserve("ns/a").unwrap().made(Revision(5));
    usage.note("ns/b", None, None, Revision(4));
    usage.note("ns/a", None, None, Revision(4));
    assert_eq!(used(&usage, "ns"), 1, "what an older revision shows is of another object");
    usage.note("ns/a", None, Some(&stored("ns/a", true, 5)), Revision(5));
    assert!(matches!(usage.reserve("ns/c"), Err(ReservationError::Used(1))));
    usage.note("ns/a", None, Some(&stored("ns/a", false, 6)), Revision(6));
    assert_eq!(used(&usage, "ns"), 0);
}

#[test]
fn a_watch_that_is_ahead_of_the_answer_is_believed() {
    let usage = usage(1);
    let reservation = usage.reserve("ns/a").unwrap();
    usage.note("ns/a", None, Some(&stored("ns/a", true, 5)), Revision(5));
    usage.note("ns/a", None, Some(&stored("ns/a", false, 6)), Revision(6));
    reservation.made(Revision(5));
    assert_eq!(used(&usage, "ns"), 0, "it was taken up before its creator was answered");
}

#[test]
fn of_two_that_want_one_name_the_loser_does_not_free_the_winners_place() {
    let usage = usage(2);
    let (winner, loser) = (usage.reserve("ns/a"), usage.reserve("ns/a"));
    drop(loser);
    assert_eq!(used(&usage, "ns"), 1);
    winner.unwrap().made(Revision(5));
    assert_eq!(used(&usage, "ns"), 1);
}

#[test]
fn nothing_is_reserved_while_the_cache_is_not_filled() {
    let usage = usage(9);
    let reservation = usage.reserve("ns/wanted").unwrap();
    usage.reserve("ns/early").unwrap().made(Revision(3));
    usage.reserve("ns/late").unwrap().made(Revision(8));
    usage.abandon();
    assert!(matches!(usage.reserve("ns/x"), Err(ReservationError::Unknown(StorageError::NotReady))));
    usage.fill(&[stored("ns/there", true, 4), stored("ns/closed", false, 5)], Revision(7));
    assert_eq!(used(&usage, "ns"), 3, "there, late, wanted; the early one is gone");
    drop(reservation);
    assert_eq!(used(&usage, "ns"), 2);
}

#[test]
fn a_namespace_that_has_its_bytes_gets_no_more_until_something_goes() {
    let usage = usage(9);
    let all: Vec<_> = (0..9).map(|n| stored(&format!("ns/{n}"), true, 2)).collect();
    usage.fill(&all, Revision(2));
    assert!(matches!(usage.check_bytes("ns/x"), Err(ReservationError::Used(used)) if used >= BYTES));
    usage.check_bytes("other/x").unwrap();
    for gone in &all {
        usage.note(&gone.key, Some(gone), None, Revision(3));
    }
    usage.check_bytes("ns/x").unwrap();
    assert!(usage.state.lock().bytes.is_empty());
}

/// What happens to one key, in the order of revisions.
#[derive(Clone, Copy, Debug)]
enum ObjectLife {
    Created { taken_up: bool, deleted: bool },
    Failed,
}

fn life() -> impl Strategy<Value = ObjectLife> {
    prop_oneof![
        (any::<bool>(), any::<bool>())
            .prop_map(|(taken_up, deleted)| ObjectLife::Created { taken_up, deleted }),
        Just(ObjectLife::Failed)
    ]
}

proptest! {
    /// Creators are answered early, late, or after a filling: in the end exactly the objects count that exist and are
    /// open, and at no time fewer than those that are committed.
    #[test]
    fn in_the_end_the_count_is_exact(lives in prop::collection::vec((life(), 0u8..4, 0u8..3), 1..20), fill_at in 0usize..40) {
        let usage = usage(usize::MAX);
        let (mut revision, mut events, mut held) = (1, Vec::new(), Vec::new());
        for (n, (life, answered, _)) in lives.iter().enumerate() {
            let key = format!("ns/{n}");
            let reservation = usage.reserve(&key).unwrap();
            let ObjectLife::Created { taken_up, deleted } = life else { drop(reservation); continue };
            revision += 1;
            let made = Revision(revision);
            events.push((key.clone(), Some(true), revision));
            if *answered == 0 { reservation.made(made) } else { held.push((*answered, reservation, made)) }
            if *taken_up { revision += 1; events.push((key.clone(), Some(false), revision)); }
            if *deleted { revision += 1; events.push((key.clone(), None, revision)); }
        }
        let mut state = HashMap::new();
        for (place, (key, open, at)) in events.iter().enumerate() {
            let before = state.get(key).map(|(open, at)| stored(key, *open, *at));
            match open {
                Some(open) => { state.insert(key.clone(), (*open, *at)); }
                None => { state.remove(key); }
            }
            if place == fill_at {
                let items: Vec<_> = state.iter().map(|(key, (open, at))| stored(key, *open, *at)).collect();
                usage.fill(&items, Revision(*at));
            } else {
                usage.note(key, before.as_deref(), open.map(|open| stored(key, open, *at)).as_deref(), Revision(*at));
            }
            let committed = state.values().filter(|(open, _)| *open).count();
            prop_assert!(used(&usage, "ns") >= committed);
            if let Some(late) = held.iter().position(|(answered, ..)| usize::from(*answered) * 3 < place) {
                let (_, reservation, made) = held.swap_remove(late);
                reservation.made(made);
            }
        }
        held.into_iter().for_each(|(_, reservation, made)| reservation.made(made));
        let open = state.values().filter(|(open, _)| *open).count();
        prop_assert_eq!(used(&usage, "ns"), open);
        let bytes: u64 = state.iter().map(|(key, (open, at))| stored(key, *open, *at).json_len() as u64).sum();
        prop_assert_eq!(usage.state.lock().bytes.get("ns").copied().unwrap_or_default(), bytes);
    }
}
