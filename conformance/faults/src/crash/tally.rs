//! What was done, for the end of a run.

use std::collections::BTreeMap;
use std::fmt;

use crate::model::Looked;

/// Counts.
#[derive(Default)]
pub struct Tally {
    /// Writes that were acknowledged.
    pub writes: u64,
    crashes: BTreeMap<String, u64>,
    faults: BTreeMap<&'static str, u64>,
    looked: Looked,
}

impl Tally {
    /// A crash, and what the look after it found.
    pub fn crash(&mut self, point: &str, looked: Looked) {
        *self.crashes.entry(point.to_owned()).or_default() += 1;
        self.looked.events += looked.events;
        self.looked.appeared += looked.appeared;
    }

    /// Something that failed without a crash.
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
        let Looked { events, appeared } = self.looked;
        let (crashes, writes) = (self.crashes(), self.writes);
        writeln!(f, "{crashes} crashes, {writes} writes acknowledged, {events} events compared")?;
        writeln!(f, "{appeared} writes without an answer were there afterwards")?;
        for (point, count) in &self.crashes {
            writeln!(f, "  {count:>7} {point}")?;
        }
        self.faults.iter().try_for_each(|(what, count)| writeln!(f, "  {count:>7} errors: {what}"))
    }
}
