//! Tests of the checks: a correct history passes, and each way to break it is found.

use super::check;
use crate::record::{
    DeliveredEvent, DeliveredItem, DeliveredKind, History, Op, Pair, Present, RecordedCompaction,
    RecordedOperation, RecordedOutcome, RecordedWatch, RecordedWrite, Rev, Value, WatchStart,
};

const KEY: &str = "/k";

fn pair(value: Value, modified: Rev, created: Rev) -> Pair {
    Pair { key: KEY.to_owned(), value, modified, created: Some(created) }
}

fn write(expected: Option<Rev>, value: Option<Value>, outcome: RecordedOutcome) -> RecordedOperation {
    RecordedOperation::Write(RecordedWrite { key: KEY.to_owned(), expected, value, guard: None, outcome })
}

fn get(found: Option<Pair>, revision: Rev) -> RecordedOperation {
    RecordedOperation::Get { key: KEY.to_owned(), found, revision: Some(revision) }
}

fn event(revision: Rev, kind: DeliveredKind, value: Value, previous: Option<Pair>) -> DeliveredItem {
    DeliveredItem::Event(DeliveredEvent { revision, key: KEY.to_owned(), kind, value: Some(value), previous })
}

/// One operation after the other: created at 2, changed at 3, deleted at 4.
fn right() -> History {
    let all = [
        write(None, Some(10), RecordedOutcome::Committed(2)),
        get(Some(pair(10, 2, 2)), 2),
        write(Some(2), Some(11), RecordedOutcome::Committed(3)),
        write(Some(2), Some(12), RecordedOutcome::Conflict(Present::Version(Some(3)))),
        get(Some(pair(11, 3, 2)), 3),
        write(Some(3), None, RecordedOutcome::Committed(4)),
        get(None, 4),
    ];
    let ops = all.into_iter().zip(0..).map(|(what, at)| op(at, Some(at * 10 + 5), what)).collect();
    let items = [
        event(2, DeliveredKind::Added, 10, None),
        event(3, DeliveredKind::Modified, 11, Some(pair(10, 2, 2))),
        event(4, DeliveredKind::Deleted, 11, Some(pair(11, 3, 2))),
        DeliveredItem::Progress(4),
    ];
    let items = items.into_iter().map(|item| (100, item)).collect();
    let keys = "/".to_owned().."0".to_owned();
    let stream = RecordedWatch {
        by: "a test",
        keys,
        from: WatchStart::After(1),
        even: false,
        tells_previous: true,
        items,
    };
    History { ops, streams: vec![stream], start: 1, exclusive: true, ..History::default() }
}

fn op(at: u64, returned: Option<u64>, what: RecordedOperation) -> Op {
    Op { called: at * 10, returned, by: "a test", what }
}

fn found(history: &History) -> String {
    check(history).0.join("\n")
}

#[test]
fn a_right_history_passes() {
    assert_eq!(found(&right()), "");
}

#[test]
fn a_lost_write_is_found() {
    let mut history = right();
    history.ops[4].what = get(Some(pair(10, 2, 2)), 3);
    let found = found(&history);
    assert!(found.contains("a read at 3 found") && found.contains("no order of its 7 operations"), "{found}");
}

#[test]
fn a_read_of_the_past_is_found_by_real_time() {
    let mut history = right();
    history.ops[4].what = get(Some(pair(10, 2, 2)), 2);
    let found = found(&history);
    assert!(found.contains("is at 2, though 3 had been answered"), "{found}");
}

#[test]
fn events_out_of_order_missing_and_twice_are_found() {
    let mut swapped = right();
    swapped.streams[0].items.swap(0, 1);
    assert!(found(&swapped).contains("came after everything up to 3"));
    let mut missing = right();
    missing.streams[0].items.remove(1);
    assert!(found(&missing).contains("was delivered where Some(DeliveredEvent { revision: 3"));
    let mut twice = right();
    twice.streams[0].items.insert(1, (100, event(2, DeliveredKind::Added, 10, None)));
    assert!(found(&twice).contains("came after everything up to 2"));
    let mut early = right();
    early.streams[0].items.insert(1, (100, DeliveredItem::Progress(3)));
    assert!(found(&early).contains("came after everything up to 3"));
}

#[test]
fn an_unknown_write_may_have_been_made_or_not_but_once() {
    let unknown = || write(Some(2), Some(11), RecordedOutcome::Unknown);
    let mut made = right();
    made.ops[2] = op(2, None, unknown());
    assert_eq!(found(&made), "");
    let mut never = right();
    never.ops.push(op(7, None, write(Some(3), Some(13), RecordedOutcome::Unknown)));
    assert_eq!(found(&never), "");
    let mut twice = right();
    twice.ops.push(op(7, Some(75), get(Some(pair(11, 5, 5)), 5)));
    assert!(found(&twice).contains("was written at 3 and again at 5"));
}

#[test]
fn a_refused_write_that_was_made_is_found() {
    let mut history = right();
    history.ops[2].what = write(Some(2), Some(11), RecordedOutcome::Refused);
    assert!(found(&history).contains("was not made, and is in the log at 3"));
}

#[test]
fn an_expired_watch_without_compaction_is_found() {
    let mut history = right();
    history.streams[0].items.push((100, DeliveredItem::Expired));
    assert!(found(&history).contains("expired at 4, which was never compacted"));
}

#[test]
fn the_state_before_the_next_change_may_be_compacted_and_nothing_later() {
    let expired = |at, tells_previous| {
        let mut history = right();
        history.compactions.push(RecordedCompaction { called: 90, at });
        history.streams[0].tells_previous = tells_previous;
        history.streams[0].items.push((100, DeliveredItem::Expired));
        found(&history)
    };
    assert_eq!(expired(6, true), "");
    assert!(expired(5, true).contains("expired at 4"));
    assert_eq!(expired(5, false), "");
    assert!(expired(4, false).contains("expired at 4"));
}
