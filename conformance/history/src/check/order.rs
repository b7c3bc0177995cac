//! Strict serializability by revision: what began after something else was over comes after it.

use super::FoundFaults;
use super::model::WriteModel;
use crate::record::{DeliveredItem, History, Moment, RecordedOperation, RecordedOutcome, Rev};

/// Something with a place in the order of revisions.
struct Point {
    called: Moment,
    /// When its revision had been answered; none if never.
    answered: Option<Moment>,
    revision: Rev,
    is_write: bool,
    what: String,
}

pub fn check(history: &History, model: &WriteModel, faults: &mut FoundFaults) {
    let points = points(history, model);
    let mut answered: Vec<(Moment, Rev)> =
        points.iter().filter_map(|point| Some((point.answered?, point.revision))).collect();
    answered.extend(history.streams.iter().flat_map(|stream| &stream.items).filter_map(|(stamp, item)| {
        match item {
            DeliveredItem::Event(event) => Some((*stamp, event.revision)),
            DeliveredItem::Progress(revision) => Some((*stamp, *revision)),
            _ => None,
        }
    }));
    answered.sort_unstable();
    let mut calls: Vec<&Point> = points.iter().collect();
    calls.sort_unstable_by_key(|point| point.called);
    let (mut highest, mut next) = (0, 0);
    for point in calls {
        while next < answered.len() && answered[next].0 < point.called {
            highest = highest.max(answered[next].1);
            next += 1;
        }
        if point.revision < highest || (point.is_write && point.revision == highest) {
            let (what, at) = (&point.what, point.revision);
            faults.add(format!("{what} is at {at}, though {highest} had been answered before it began"));
        }
    }
}

fn points(history: &History, model: &WriteModel) -> Vec<Point> {
    let mut points = Vec::new();
    for op in &history.ops {
        let (revision, is_write) = match &op.what {
            RecordedOperation::Write(write) => match (&write.outcome, write.value) {
                (RecordedOutcome::Committed(at), _) => (Some(*at), true),
                (RecordedOutcome::Unknown, Some(value)) => (model.written_at.get(&value).copied(), true),
                _ => (None, true),
            },
            RecordedOperation::Get { revision, .. } => (*revision, false),
            RecordedOperation::Range { revision, latest: true, .. } => (Some(*revision), false),
            _ => (None, false),
        };
        if let Some(revision) = revision {
            let what = format!("{}: {:?}", op.by, brief(&op.what));
            points.push(Point { called: op.called, answered: op.returned, revision, is_write, what });
        }
    }
    points
}

/// An operation without the lists of what it found.
fn brief(what: &RecordedOperation) -> String {
    match what {
        RecordedOperation::Range { keys, .. } => format!("list {keys:?}"),
        other => format!("{other:?}"),
    }
}
