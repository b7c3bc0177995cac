//! Records operations, watches and faults during a run.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use parking_lot::Mutex;

use crate::record::{
    History, Moment, Op, RecordedCompaction, RecordedOperation, RecordedOutcome, RecordedWatch,
    RecordedWrite, Rev, UnansweredRead, Value,
};

/// Records what happens in a run.
#[derive(Default)]
pub struct Recorder {
    clock: AtomicU64,
    values: AtomicU64,
    newest: AtomicU64,
    /// When the last fault began.
    fault: AtomicU64,
    history: Mutex<History>,
}

impl Recorder {
    pub fn new(start: Rev, exclusive: bool, judges_deadlines: bool) -> Self {
        let recorder = Self::default();
        recorder.newest.store(start, SeqCst);
        *recorder.history.lock() = History { start, exclusive, judges_deadlines, ..History::default() };
        recorder
    }

    /// Returns the present moment.
    pub fn stamp(&self) -> Moment {
        self.clock.fetch_add(1, SeqCst)
    }

    /// A value that has not been written yet.
    pub fn value(&self) -> Value {
        self.values.fetch_add(1, SeqCst)
    }

    /// Notes an operation.
    pub fn op(&self, by: &'static str, called: Moment, what: RecordedOperation) {
        let open =
            matches!(&what, RecordedOperation::Write(write) if write.outcome == RecordedOutcome::Unknown);
        if let RecordedOperation::Write(RecordedWrite {
            outcome: RecordedOutcome::Committed(revision), ..
        }) = what
        {
            self.reached(revision);
        }
        let returned = (!open).then(|| self.stamp());
        self.history.lock().ops.push(Op { called, returned, by, what });
    }

    /// Notes a watch that is over.
    pub fn stream(&self, stream: RecordedWatch) {
        self.history.lock().streams.push(stream);
    }

    /// Notes a compaction before it is asked for.
    pub fn compaction(&self, at: Rev) {
        let called = self.stamp();
        self.history.lock().compactions.push(RecordedCompaction { called, at });
    }

    /// Notes a read that failed. `had_its_time` says whether the store tried for as long as it may.
    pub fn unanswered(
        &self,
        by: &'static str,
        called: Moment,
        had_its_time: bool,
        why: impl std::fmt::Display,
    ) {
        self.count(if had_its_time { "reads that failed at their deadline" } else { "reads that failed" });
        let (returned, why) = (self.stamp(), why.to_string());
        self.history.lock().unanswered.push(UnansweredRead { called, returned, by, had_its_time, why });
    }

    /// Notes a time in which reads could not be answered.
    pub fn outage(&self, from: Moment) {
        let upto = self.stamp();
        self.history.lock().outages.get_or_insert_default().push((from, upto));
    }

    /// Records that the last fault was interrupted: it is unknown whether reads could be answered since it
    /// began.
    pub fn interrupted(&self) {
        let from = self.fault.load(SeqCst);
        let mut history = self.history.lock();
        if let Some(outages) = &mut history.outages {
            outages.push((from, Moment::MAX));
        }
    }

    /// Records that a fault begins; returns the moment.
    pub fn fault(&self) -> Moment {
        let now = self.stamp();
        self.fault.store(now, SeqCst);
        now
    }

    /// Records that reads must be answered at all times but the outages.
    pub fn survives(&self) {
        self.history.lock().outages.get_or_insert_default();
    }

    /// Adds one to the count of `what`.
    pub fn count(&self, what: &'static str) {
        *self.history.lock().counts.entry(what).or_default() += 1;
    }

    /// The newest revision that a client has received.
    pub fn newest(&self) -> Rev {
        self.newest.load(SeqCst)
    }

    /// Records that a client has received a revision.
    pub fn reached(&self, revision: Rev) {
        self.newest.fetch_max(revision, SeqCst);
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.history.lock().ops.len()
    }

    /// Ends the recording, and returns the history.
    pub fn finish(&self) -> History {
        std::mem::take(&mut *self.history.lock())
    }
}
