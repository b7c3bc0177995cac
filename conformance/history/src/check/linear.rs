//! Linearizability of each key as a register with compare-and-swap.
//!
//! The search of Wing and Gong with Lowe's memory of what was tried, as in porcupine: an order of the
//! operations that keeps real time and in which every answer is right. A write of unknown outcome may have
//! happened at any time after it was asked for, or never. Nothing here trusts the order of revisions: they
//! only name versions. (Crates: stateright's tester remembers nothing of what it tried and does not end on
//! histories this long; todc-utils is no longer kept up.)

use std::collections::{BTreeMap, HashSet};

use super::FoundFaults;
use super::model::WriteModel;
use crate::record::{History, Moment, Op, Present, RecordedOperation, RecordedOutcome, Rev};

/// What the register holds: a version, named by its revision, or nothing.
type State = Option<Rev>;

/// What an operation does to the register.
#[derive(Clone, Copy, Debug)]
enum RegisterStep {
    /// Finds this and leaves that.
    Swap(State, State),
    /// Finds this.
    Read(State),
    /// Finds anything at all.
    Something,
}

/// One operation on one key.
struct RegisterCall {
    called: Moment,
    returned: Option<Moment>,
    step: RegisterStep,
}

pub fn check(history: &History, model: &WriteModel, faults: &mut FoundFaults) {
    let mut keys: BTreeMap<&str, Vec<RegisterCall>> = BTreeMap::new();
    for op in &history.ops {
        if let Some((key, step)) = step(op, model) {
            keys.entry(key).or_default().push(RegisterCall {
                called: op.called,
                returned: op.returned,
                step,
            });
        }
    }
    for (key, calls) in keys {
        if !linearizable(&calls) {
            faults.add(format!("{key}: no order of its {} operations explains their answers", calls.len()));
        }
    }
}

fn step<'h>(op: &'h Op, model: &WriteModel) -> Option<(&'h str, RegisterStep)> {
    match &op.what {
        RecordedOperation::Get { key, found, .. } => {
            Some((key, RegisterStep::Read(found.as_ref().map(|pair| pair.modified))))
        }
        RecordedOperation::Write(write) => {
            let made = |at| write.value.map(|_| at);
            let step = match (&write.outcome, write.value) {
                (RecordedOutcome::Committed(at), _) => RegisterStep::Swap(write.expected, made(*at)),
                (RecordedOutcome::Conflict(Present::Version(found)), _) => RegisterStep::Read(*found),
                (RecordedOutcome::Conflict(Present::Something), _) => RegisterStep::Something,
                (RecordedOutcome::Guarded | RecordedOutcome::Refused, _) => return None,
                (RecordedOutcome::Unknown | RecordedOutcome::Made, None) => {
                    RegisterStep::Swap(write.expected, None)
                }
                // A write whose value was never seen explains nothing that was seen.
                (RecordedOutcome::Unknown | RecordedOutcome::Made, Some(value)) => {
                    RegisterStep::Swap(write.expected, Some(*model.written_at.get(&value)?))
                }
            };
            Some((&write.key, step))
        }
        _ => None,
    }
}

/// Whether an order exists.
fn linearizable(calls: &[RegisterCall]) -> bool {
    let mut list = CallList::of(calls);
    let mut tried = HashSet::new();
    let mut done = vec![0_u64; calls.len().div_ceil(64)];
    let mut taken: Vec<(usize, State)> = Vec::new();
    let mut state: State = None;
    let mut at = list.first();
    while list.returns > 0 {
        if let Some(call) = at.and_then(|at| list.call(at))
            && let Some(next) = calls[call].step.applied(state)
        {
            done[call / 64] |= 1 << (call % 64);
            if tried.insert((done.clone(), next)) {
                taken.push((call, state));
                state = next;
                list.remove(call);
                at = list.first();
                continue;
            }
            done[call / 64] &= !(1 << (call % 64));
        }
        match at.filter(|at| list.call(*at).is_some()) {
            Some(here) => at = list.after(here),
            // This answer fits no remaining order: an earlier choice was wrong.
            None => {
                let Some((call, before)) = taken.pop() else { return false };
                state = before;
                done[call / 64] &= !(1 << (call % 64));
                list.restore(call);
                at = list.after(list.calls[call]);
            }
        }
    }
    true
}

impl RegisterStep {
    fn applied(self, state: State) -> Option<State> {
        match self {
            Self::Swap(expected, next) => (state == expected).then_some(next),
            Self::Read(found) => (state == found).then_some(state),
            Self::Something => state.map(|_| state),
        }
    }
}

/// Calls and returns by time, from which operations can be taken out and put back in reverse order.
struct CallList {
    /// Each entry's operation, and whether it is its call.
    entries: Vec<(usize, bool)>,
    next: Vec<usize>,
    previous: Vec<usize>,
    /// Where each operation's call and return are.
    calls: Vec<usize>,
    ends: Vec<Option<usize>>,
    /// Returns that are still in.
    returns: usize,
}

impl CallList {
    fn of(calls: &[RegisterCall]) -> Self {
        let mut moments: Vec<(Moment, usize, bool)> = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            moments.push((call.called, index, true));
            moments.extend(call.returned.map(|returned| (returned, index, false)));
        }
        moments.sort_unstable();
        // Entry 0 is before all; the end points to it.
        let mut entries = vec![(usize::MAX, false)];
        entries.extend(moments.iter().map(|(_, index, is_call)| (*index, *is_call)));
        let count = entries.len();
        let (mut starts, mut ends) = (vec![0; calls.len()], vec![None; calls.len()]);
        for (at, (index, is_call)) in entries.iter().enumerate().skip(1) {
            match is_call {
                true => starts[*index] = at,
                false => ends[*index] = Some(at),
            }
        }
        let returns = ends.iter().flatten().count();
        let next = (0..count).map(|at| (at + 1) % count).collect();
        let previous = (0..count).map(|at| (at + count - 1) % count).collect();
        Self { entries, next, previous, calls: starts, ends, returns }
    }

    fn first(&self) -> Option<usize> {
        self.after(0)
    }

    fn after(&self, at: usize) -> Option<usize> {
        Some(self.next[at]).filter(|next| *next != 0)
    }

    /// The operation whose call stands there.
    fn call(&self, at: usize) -> Option<usize> {
        let (index, is_call) = self.entries[at];
        is_call.then_some(index)
    }

    fn remove(&mut self, call: usize) {
        self.unlink(self.calls[call]);
        if let Some(end) = self.ends[call] {
            self.unlink(end);
            self.returns -= 1;
        }
    }

    fn restore(&mut self, call: usize) {
        if let Some(end) = self.ends[call] {
            self.link(end);
            self.returns += 1;
        }
        self.link(self.calls[call]);
    }

    fn unlink(&mut self, at: usize) {
        let (previous, next) = (self.previous[at], self.next[at]);
        self.next[previous] = next;
        self.previous[next] = previous;
    }

    fn link(&mut self, at: usize) {
        let (previous, next) = (self.previous[at], self.next[at]);
        self.next[previous] = at;
        self.previous[next] = at;
    }
}
