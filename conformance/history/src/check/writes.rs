//! Each write that happened was requested, compared what it was to compare, and was made once; no revision
//! is missing.

use std::collections::HashMap;

use super::FoundFaults;
use super::model::WriteModel;
use crate::record::{History, Op, RecordedOperation, RecordedOutcome, RecordedWrite, Rev};

pub fn check(history: &History, model: &WriteModel, faults: &mut FoundFaults) {
    origins(history, model, faults);
    comparisons(history, model, faults);
    if history.exclusive {
        let missing = (history.start + 1..=model.newest()).find(|at| !model.log.contains_key(at));
        if let Some(at) = missing {
            faults.add(format!("no write is known at revision {at}"));
        }
    }
}

/// Each write in the log was asked for by a client that got no failure for it.
fn origins(history: &History, model: &WriteModel, faults: &mut FoundFaults) {
    let writes: Vec<(&Op, &RecordedWrite)> = writes(history).collect();
    let by_value: HashMap<_, _> =
        writes.iter().filter_map(|(_, write)| Some((write.value?, *write))).collect();
    let deletes: HashMap<(&str, Option<Rev>), usize> = writes
        .iter()
        .filter(|(_, write)| write.value.is_none() && may_be_made(write))
        .fold(HashMap::new(), |mut all, (_, write)| {
            *all.entry((write.key.as_str(), write.expected)).or_default() += 1;
            all
        });
    for (at, entry) in &model.log {
        let Some(value) = entry.value else {
            let before = model.at(&entry.key, at - 1).map(|version| version.modified);
            if !deletes.contains_key(&(entry.key.as_str(), before)) {
                faults.add(format!("{} was deleted at {at}, and nobody asked for it", entry.key));
            }
            continue;
        };
        match by_value.get(&value) {
            Some(write) if write.key != entry.key => {
                faults.add(format!("value {value} was for {} and is at {at} in {}", write.key, entry.key));
            }
            Some(write) if !may_be_made(write) => {
                faults.add(format!("{write:?} was not made, and is in the log at {at}"));
            }
            Some(_) => {}
            None => faults.add(format!("{} is {value} at {at}, which nobody wrote", entry.key)),
        }
    }
}

fn may_be_made(write: &RecordedWrite) -> bool {
    matches!(write.outcome, RecordedOutcome::Committed(_) | RecordedOutcome::Made | RecordedOutcome::Unknown)
}

/// A write that was made found what it expected, and one that was not made did not.
fn comparisons(history: &History, model: &WriteModel, faults: &mut FoundFaults) {
    for (op, write) in writes(history) {
        let made = match (&write.outcome, write.value) {
            (RecordedOutcome::Committed(at), _) => Some(*at),
            (RecordedOutcome::Unknown, Some(value)) => model.written_at.get(&value).copied(),
            _ => None,
        };
        let Some(at) = made else { continue };
        let found = model.at(&write.key, at - 1).map(|version| version.modified);
        if found != write.expected {
            faults.add(format!("{}: {write:?} was made at {at} over version {found:?}", op.by));
        }
        if let Some((guard, revision)) = &write.guard {
            let stood = model.at(guard, at - 1).map(|version| version.modified);
            if stood != Some(*revision) {
                faults.add(format!("{}: {write:?} was made at {at} while its guard was {stood:?}", op.by));
            }
        }
    }
}

pub fn writes(history: &History) -> impl Iterator<Item = (&Op, &RecordedWrite)> {
    history.ops.iter().filter_map(|op| match &op.what {
        RecordedOperation::Write(write) => Some((op, write)),
        _ => None,
    })
}
