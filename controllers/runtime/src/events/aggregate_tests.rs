//! Every event is written, or counted on one that is.

#![allow(clippy::unwrap_used)]

use super::super::Regarding;
use super::*;

fn event(reason: &'static str, message: &str, second: i64) -> RecordedEvent {
    let regarding = Regarding {
        api_version: "v1".into(),
        kind: "Pod",
        namespace: "ns".into(),
        name: "p".into(),
        uid: "u".into(),
        resource_version: "1".into(),
        creator: String::new(),
        comes_first: false,
    };
    let time = Timestamp::from_second(second).unwrap();
    RecordedEvent {
        regarding,
        related: None,
        severity: Severity::Normal,
        reason,
        message: message.into(),
        time,
    }
}

/// Takes an event, and writes what is to be written; returns that.
fn tell(events: &mut Aggregator, event: RecordedEvent) -> Option<WriteMode> {
    let write = events.take(event)?;
    let name = match &write.how {
        WriteMode::Create { .. } => write.event.message.clone(),
        WriteMode::Count { name, .. } => name.clone(),
    };
    events.written(&write, name);
    Some(write.how)
}

#[test]
fn equal_events_are_counted() {
    let mut events = Aggregator::default();
    assert_eq!(tell(&mut events, event("R", "m", 0)), Some(WriteMode::Create { count: 1 }));
    assert_eq!(tell(&mut events, event("R", "m", 5)), Some(WriteMode::Count { name: "m".into(), count: 2 }));
    assert_eq!(tell(&mut events, event("R", "other", 5)), Some(WriteMode::Create { count: 1 }));
    assert_eq!(tell(&mut events, event("R", "m", 1000)), Some(WriteMode::Create { count: 1 }));
}

#[test]
fn an_event_that_is_gone_is_made_anew() {
    let mut events = Aggregator::default();
    tell(&mut events, event("R", "m", 0));
    let count = events.take(event("R", "m", 5)).unwrap();
    assert_eq!(events.gone(count).how, WriteMode::Create { count: 1 });
    assert_eq!(tell(&mut events, event("R", "m", 6)), Some(WriteMode::Create { count: 1 }));
}

/// All events of an object had 25 tokens together, and each node of a maintenance took one when it was
/// drained: the one warning that its plan was not followed was dropped without a trace.
#[test]
fn many_events_of_one_reason_keep_none_of_another_from_being_written() {
    let mut events = Aggregator::default();
    for node in 0..4000 {
        tell(&mut events, event("NodeDrained", &format!("node-{node}"), 0));
    }
    assert_eq!(tell(&mut events, event("DrainFastForwarded", "m", 0)), Some(WriteMode::Create { count: 1 }));
}

#[test]
fn what_is_beyond_the_pace_is_combined_and_counted_when_it_is_due() {
    let mut events = Aggregator::default();
    let written: Vec<WriteMode> =
        (0..4000).filter_map(|n| tell(&mut events, event("NodeDrained", &format!("node-{n}"), 0))).collect();
    let created = written.iter().filter(|how| **how == WriteMode::Create { count: 1 }).count();
    assert_eq!((written.len(), created), (25, 11), "ten of their own, and the combined one");
    let due = events.next_due().unwrap();
    assert_eq!(due, Timestamp::from_second(300).unwrap());
    assert_eq!(events.due(Timestamp::from_second(299).unwrap()), None);
    let write = events.due(due).unwrap();
    assert_eq!(write.event.message, "(combined from similar events): node-3999");
    assert!(matches!(write.how, WriteMode::Count { count: 3990, .. }), "{:?}", write.how);
    assert_eq!((events.due(due), events.next_due()), (None, None));
}

#[test]
fn object_that_makes_many_is_slowed_down() {
    let mut events = Aggregator::default();
    let written = |events: &mut Aggregator, from: i64, n: i64| {
        (0..n).filter(|i| tell(events, event("R", &format!("{from} {i}"), from)).is_some()).count()
    };
    assert_eq!(written(&mut events, 0, 100), 25);
    assert_eq!(events.due(Timestamp::from_second(300).unwrap()).iter().count(), 1);
    assert_eq!(written(&mut events, 300, 10), 0);
}

#[test]
fn memory_is_bounded_and_what_is_forgotten_is_counted() {
    let mut events = Aggregator::default();
    for i in 0..20_000 {
        for message in 0..30 {
            let mut event = event("R", &message.to_string(), i);
            event.regarding.uid = i.to_string();
            tell(&mut events, event);
        }
    }
    assert!(events.known.len() <= MAX_REMEMBERED && events.paces.len() <= MAX_REMEMBERED);
    let held = u64::try_from(events.paces.len()).unwrap() * 5;
    assert_eq!(events.dropped() + held, 100_000);
    assert_eq!(events.dropped(), 0);
}
