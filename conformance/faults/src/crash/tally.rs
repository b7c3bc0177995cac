//! What was done, for the end of a run.

use std::collections::BTreeMap;
use std::fmt;

use crate::model::CheckedCounts;

/// Counts.
#[derive(Default)]
pub struct Tally {
    /// Writes that were acknowledged.
    pub writes: u64,
    crashes: BTreeMap<String, u64>,
    faults: BTreeMap<&'static str, u64>,
    checked: CheckedCounts,
}

impl Tally {
    /// Counts a crash, and what the check after it covered.
    pub fn crash(&mut self, point: &str, checked: CheckedCounts) {
        *self.crashes.entry(point.to_owned()).or_default() += 1;
        self.checked.events += checked.events;
        self.checked.appeared += checked.appeared;
    }

    /// Counts an error without a crash.
    pub fn fault(&mut self, what: &'static str) {
        *self.faults.entry(what).or_default() += 1;
    }

    /// Crashes of all kinds.
    pub fn crashes(&self) -> u64 {
        self.crashes.values().sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckedCounts { events, appeared } = self.checked;
        let (crashes, writes) = (self.crashes(), self.writes);
        writeln!(f, "{crashes} crashes, {writes} writes acknowledged, {events} events compared")?;
        writeln!(f, "{appeared} writes without an answer were there afterwards")?;
        for (point, count) in &self.crashes {
            writeln!(f, "  {count:>7} {point}")?;
        }
        self.faults.iter().try_for_each(|(what, count)| writeln!(f, "  {count:>7} errors: {what}"))
    }
}
