//! Whether a store that keeps its promises could have given all the answers that were recorded.

mod linear;
mod model;
mod order;
mod reads;
mod watches;
mod writes;

use std::collections::BTreeMap;
use std::fmt;

use crate::record::{DeliveredItem, History, RecordedOperation, RecordedOutcome};
use model::WriteModel;

/// What was found wrong.
#[derive(Debug, Default)]
pub struct FoundFaults(pub Vec<String>);

impl FoundFaults {
    pub fn add(&mut self, fault: String) {
        self.0.push(fault);
    }
}

/// Checks a history.
pub fn check(history: &History) -> FoundFaults {
    let mut faults = FoundFaults::default();
    let model = WriteModel::of(history, &mut faults);
    writes::check(history, &model, &mut faults);
    order::check(history, &model, &mut faults);
    reads::check(history, &model, &mut faults);
    watches::check(history, &model, &mut faults);
    linear::check(history, &model, &mut faults);
    faults
}

/// How much was checked, by what it is.
pub fn counts(history: &History) -> CheckCounts {
    let is_unknown = |what: &RecordedOperation| matches!(what, RecordedOperation::Write(write) if write.outcome == RecordedOutcome::Unknown);
    let items = || history.streams.iter().flat_map(|stream| &stream.items).map(|(_, item)| item);
    let counted = [
        ("operations", history.ops.len()),
        ("writes", history.ops.iter().filter(|op| matches!(op.what, RecordedOperation::Write(_))).count()),
        ("unknown outcomes", history.ops.iter().filter(|op| is_unknown(&op.what)).count()),
        ("watches", history.streams.len()),
        (
            "events",
            items()
                .filter(|item| matches!(item, DeliveredItem::Event(_) | DeliveredItem::Present(_)))
                .count(),
        ),
        (
            "bookmarks",
            items()
                .filter(|item| matches!(item, DeliveredItem::Progress(_) | DeliveredItem::InitialEnd(_)))
                .count(),
        ),
        ("compactions", history.compactions.len()),
    ];
    let mut counts = CheckCounts(history.counts.clone());
    counts.0.extend(counted.map(|(what, count)| (what, count as u64)));
    counts
}

/// How many of what.
#[derive(Clone, Debug, Default)]
pub struct CheckCounts(BTreeMap<&'static str, u64>);

impl CheckCounts {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }
}

impl fmt::Display for CheckCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(|(what, count)| format!("{count} {what}")).collect();
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests;
