//! Strict serializability by revision: what began after something else was over comes after it.

use super::Faults;
use super::model::WriteModel;
use crate::record::{History, Item, Rev, Stamp, What, Written};

/// Something with a place in the order of revisions.
struct Point {
    called: Stamp,
    /// When its revision had been told; none if never.
    told: Option<Stamp>,
    revision: Rev,
    is_write: bool,
    what: String,
}

pub fn check(history: &History, model: &WriteModel, faults: &mut Faults) {
    let points = points(history, model);
    let mut told: Vec<(Stamp, Rev)> =
        points.iter().filter_map(|point| Some((point.told?, point.revision))).collect();
    told.extend(history.streams.iter().flat_map(|stream| &stream.items).filter_map(
        |(stamp, item)| match item {
            Item::Event(event) => Some((*stamp, event.revision)),
            Item::Progress(revision) => Some((*stamp, *revision)),
            _ => None,
        },
    ));
    told.sort_unstable();
    let mut calls: Vec<&Point> = points.iter().collect();
    calls.sort_unstable_by_key(|point| point.called);
    let (mut highest, mut next) = (0, 0);
    for point in calls {
        while next < told.len() && told[next].0 < point.called {
            highest = highest.max(told[next].1);
            next += 1;
        }
        if point.revision < highest || (point.is_write && point.revision == highest) {
            let (what, at) = (&point.what, point.revision);
            faults.add(format!("{what} is at {at}, though {highest} had been told before it began"));
        }
    }
}

fn points(history: &History, model: &WriteModel) -> Vec<Point> {
    let mut points = Vec::new();
    for op in &history.ops {
        let (revision, is_write) = match &op.what {
            What::Write(write) => match (&write.outcome, write.value) {
                (Written::Committed(at), _) => (Some(*at), true),
                (Written::Unknown, Some(value)) => (model.written_at.get(&value).copied(), true),
                _ => (None, true),
            },
            What::Get { revision, .. } => (*revision, false),
            What::Range { revision, latest: true, .. } => (Some(*revision), false),
            _ => (None, false),
        };
        if let Some(revision) = revision {
            let what = format!("{}: {:?}", op.by, brief(&op.what));
            points.push(Point { called: op.called, told: op.returned, revision, is_write, what });
        }
    }
    points
}

/// An operation without the lists of what it found.
fn brief(what: &What) -> String {
    match what {
        What::Range { keys, .. } => format!("list {keys:?}"),
        other => format!("{other:?}"),
    }
}
