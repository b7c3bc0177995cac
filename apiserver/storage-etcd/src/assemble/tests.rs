//! Events of a revision are delivered together and once, however etcd splits its responses.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use etcd_client::proto::PbKeyValue;

use super::*;

fn put(key: &str, at: i64) -> PbEvent {
    let kv = PbKeyValue { key: key.into(), mod_revision: at, create_revision: at, ..Default::default() };
    PbEvent { kv: Some(kv), ..Default::default() }
}

fn response(fragment: bool, events: Vec<PbEvent>) -> PbWatchResponse {
    PbWatchResponse { fragment, events, ..Default::default() }
}

fn names(events: Vec<BackendEvent>) -> Vec<String> {
    events.into_iter().map(|event| format!("{}@{}", event.key, event.revision.0)).collect()
}

fn assembler() -> Assembler {
    Assembler::new(Prefix::new("p", Default::default()), Revision(1))
}

#[test]
fn a_whole_response_is_delivered_at_once() {
    let events = assembler().take(response(false, vec![put("/p/a", 2), put("/p/b", 2), put("/p/c", 3)]));
    assert_eq!(names(events.unwrap()), ["a@2", "b@2", "c@3"]);
}

#[test]
fn a_revision_parted_by_fragments_is_delivered_whole() {
    let mut assembler = assembler();
    let first = assembler.take(response(true, vec![put("/p/a", 2), put("/p/b", 3)])).unwrap();
    assert_eq!(names(first), ["a@2"]);
    assert_eq!(assembler.progress(Revision(3)), None, "part of revision 3 is still to come");
    let second = assembler.take(response(true, vec![put("/p/c", 3)])).unwrap();
    assert!(second.is_empty());
    let third = assembler.take(response(false, vec![put("/p/d", 3), put("/p/e", 4)])).unwrap();
    assert_eq!(names(third), ["b@3", "c@3", "d@3", "e@4"]);
}

#[test]
fn a_stream_that_breaks_within_a_revision_starts_before_it() {
    let mut assembler = assembler();
    assembler.take(response(true, vec![put("/p/a", 2), put("/p/b", 3)])).unwrap();
    assert_eq!(assembler.restart(), Revision(2));
    let again = assembler.take(response(false, vec![put("/p/b", 3), put("/p/c", 3)])).unwrap();
    assert_eq!(names(again), ["b@3", "c@3"]);
}

#[test]
fn nothing_is_delivered_twice() {
    let mut assembler = assembler();
    assembler.take(response(false, vec![put("/p/a", 5)])).unwrap();
    let old = assembler.take(response(false, vec![put("/p/a", 5), put("/p/b", 4)])).unwrap();
    assert!(old.is_empty());
    assert_eq!(assembler.progress(Revision(4)), None);
    assert_eq!(assembler.progress(Revision(6)), Some(Revision(6)));
    assert!(assembler.take(response(false, vec![put("/p/a", 6)])).unwrap().is_empty());
}

#[test]
fn a_key_outside_the_prefix_is_damage_and_no_panic() {
    assert!(assembler().take(response(false, vec![put("/q/a", 2)])).is_err());
    assert!(assembler().take(response(false, vec![PbEvent::default()])).unwrap().is_empty());
}
