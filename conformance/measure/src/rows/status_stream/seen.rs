//! The writes of one measurement, and what all subscribers together saw of them.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;

use super::objects::FIRST;

/// The writes, and when their states came.
pub struct SubscribersSeen {
    first: u64,
    objects: usize,
    /// How many writes there are.
    pub writes: usize,
    sent: RefCell<Vec<Instant>>,
    latency: RefCell<Histogram<u64>>,
}

/// What one subscriber knows, and what has come to it.
#[derive(Default)]
pub struct Ledger {
    /// The newest write of each object that it knows of.
    known: RefCell<Vec<u64>>,
    /// Whether its times do not count.
    is_stalled: Cell<bool>,
    /// Objects whose last write it does not know of.
    behind: Cell<usize>,
    /// Responses about a write that was not known.
    pub delivered: Cell<u64>,
    /// Why the stream ended, if it did.
    pub ended: RefCell<Option<String>>,
}

impl Ledger {
    /// Creates the ledger of a subscriber who knows nothing of so many objects.
    pub fn new(objects: usize) -> Self {
        Self { known: RefCell::new(vec![0; objects]), ..Self::default() }
    }

    /// Records a state, unless a newer one has come; returns the writes that it is the first to show.
    pub fn note(&self, object: u64, beat: u64) -> Result<Range<u64>> {
        let index = object.checked_sub(FIRST).context("an object that is not ours")?;
        let mut known = self.known.borrow_mut();
        let known = known.get_mut(usize::try_from(index)?).context("an object that nobody made")?;
        ensure!(beat >= *known, "write {beat} of object {index} came after {known}");
        let fresh = *known + 1..beat + 1;
        *known = beat;
        Ok(fresh)
    }

    /// It does not read for a while: what it sees late is not the server's doing.
    pub fn stall(&self) {
        self.is_stalled.set(true);
    }

    /// How many objects have not come in their last state.
    pub fn behind(&self) -> usize {
        self.behind.get()
    }
}

impl SubscribersSeen {
    /// So many writes, from `first` on, of objects in turn.
    pub fn new(first: u64, writes: usize, objects: usize) -> Result<Self> {
        let latency = RefCell::new(Histogram::new(3)?);
        Ok(Self { first, objects, writes, sent: RefCell::default(), latency })
    }

    /// The numbers of the writes.
    pub fn beats(&self) -> Range<u64> {
        self.first..self.first + self.writes as u64
    }

    /// The next write is sent now.
    pub fn send(&self) {
        self.sent.borrow_mut().push(Instant::now());
    }

    /// Begins to count for a subscriber that knows the states before the first write.
    pub fn begin(&self, ledger: &Ledger) {
        ledger.behind.set(self.writes.min(self.objects));
    }

    /// Records that a state came: the time that it took counts for each write that it is the first to show.
    pub fn came(&self, ledger: &Ledger, object: u64, beat: u64) -> Result<()> {
        let fresh = ledger.note(object, beat)?;
        if fresh.is_empty() {
            return Ok(());
        }
        ledger.delivered.set(ledger.delivered.get() + 1);
        self.time(ledger, fresh, beat)?;
        if beat + self.objects as u64 >= self.beats().end {
            ledger.behind.set(ledger.behind.get().saturating_sub(1));
        }
        Ok(())
    }

    /// Notes the time since each write up to `beat` that is among the fresh ones.
    fn time(&self, ledger: &Ledger, fresh: Range<u64>, beat: u64) -> Result<()> {
        let (sent, mut latency) = (self.sent.borrow(), self.latency.borrow_mut());
        // Writes of one object are as far apart as there are objects.
        for beat in (0..).map_while(|turn| beat.checked_sub(turn * self.objects as u64)) {
            if beat < fresh.start.max(self.first) {
                break;
            }
            let sent = sent.get(usize::try_from(beat - self.first)?).context("a state before its write")?;
            if !ledger.is_stalled.get() {
                latency.record(u64::try_from(sent.elapsed().as_nanos())?)?;
            }
        }
        Ok(())
    }

    /// How long the states took to come to those who read, for each write.
    pub fn latency(&self) -> Histogram<u64> {
        self.latency.borrow().clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_state_counts_for_the_writes_that_it_overtook_and_the_last_ones_end_it() {
        // Writes 10, 12, 14 of object 0, and 11, 13 of object 1.
        let (seen, ledger) = (SubscribersSeen::new(10, 5, 2).unwrap(), Ledger::new(2));
        (0..5).for_each(|_| seen.send());
        ledger.note(FIRST, 8).unwrap();
        seen.begin(&ledger);
        let steps = [(0, 10, 1, 2), (0, 14, 3, 1), (0, 14, 3, 1), (1, 13, 5, 0)];
        for (object, beat, latencies, behind) in steps {
            seen.came(&ledger, FIRST + object, beat).unwrap();
            assert_eq!((seen.latency().len(), ledger.behind()), (latencies, behind), "after write {beat}");
        }
        assert_eq!(ledger.delivered.get(), 3);
        let stalled = Ledger::new(2);
        stalled.stall();
        seen.begin(&stalled);
        seen.came(&stalled, FIRST, 14).unwrap();
        assert_eq!((seen.latency().len(), stalled.behind(), stalled.delivered.get()), (5, 1, 1));
    }

    #[test]
    fn an_older_state_after_a_newer_one_is_an_error() {
        let (seen, ledger) = (SubscribersSeen::new(1, 4, 1).unwrap(), Ledger::new(1));
        (0..4).for_each(|_| seen.send());
        seen.came(&ledger, FIRST, 3).unwrap();
        assert!(seen.came(&ledger, FIRST, 2).is_err());
        assert!(seen.came(&ledger, FIRST + 1, 4).is_err(), "an object that nobody made");
        assert!(seen.came(&ledger, FIRST, 9).is_err(), "a write that nobody made");
    }
}
