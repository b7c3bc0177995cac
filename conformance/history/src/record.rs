//! What was asked and what came back, in the order in which it happened.
//!
//! A stamp is taken before a request is made and after its answer came: an operation whose answer has an earlier stamp
//! than another's request was over before that one began. All strings are whole keys of the backend, whichever layer
//! was asked.

use std::collections::BTreeMap;
use std::ops::Range;

/// A moment: greater is later.
pub type Moment = u64;
/// A revision of the store.
pub type Rev = u64;
/// What a write wrote: no two write the same.
pub type Value = u64;

/// A version of a key, as a reader saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The key.
    pub key: String,
    /// The value that was written.
    pub value: Value,
    /// The revision of the write.
    pub modified: Rev,
    /// When the key was created, if the layer says so.
    pub created: Option<Rev>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Op {
    /// Before it was made.
    pub called: Moment,
    /// After its answer; none if there was none, or one that leaves open what happened.
    pub returned: Option<Moment>,
    /// Who asked, for messages.
    pub by: &'static str,
    /// The operation.
    pub what: RecordedOperation,
}

/// What was asked, and the answer.
#[derive(Clone, Debug)]
pub enum RecordedOperation {
    /// A compare-and-swap.
    Write(RecordedWrite),
    /// The latest state of one key.
    Get { key: String, found: Option<Pair>, revision: Option<Rev> },
    /// One key or more as of a revision that the answer names; `least` is what the reader asked for at least.
    Range { keys: Range<String>, found: Vec<Pair>, revision: Rev, latest: bool, least: Rev, whole: bool },
    /// One key in any state that is not older than a revision.
    NotOlder { key: String, found: Option<Pair>, least: Rev },
    /// "This revision is compacted."
    Expired { asked: Rev },
}

/// A compare-and-swap.
#[derive(Clone, Debug)]
pub struct RecordedWrite {
    /// The key.
    pub key: String,
    /// The version that it must have.
    pub expected: Option<Rev>,
    /// The new value; none deletes.
    pub value: Option<Value>,
    /// Another key that must have this version.
    pub guard: Option<(String, Rev)>,
    /// What came of it.
    pub outcome: RecordedOutcome,
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedOutcome {
    /// It was made, at this revision.
    Committed(Rev),
    /// It was made, at an unknown revision.
    Made,
    /// It was not made, because this was stored there.
    Conflict(Present),
    /// It was not made, because the guard had another version.
    Guarded,
    /// It was not made.
    Refused,
    /// It is unknown whether it was made.
    Unknown,
}

/// What stood in a write's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Present {
    /// This version, or nothing.
    Version(Option<Rev>),
    /// Something.
    Something,
}

/// One watch, from its start to its end.
#[derive(Clone, Debug)]
pub struct RecordedWatch {
    /// Who watched, for messages.
    pub by: &'static str,
    /// The keys.
    pub keys: Range<String>,
    /// Where it starts.
    pub from: WatchStart,
    /// Whether it gets even values only.
    pub even: bool,
    /// Whether it gets the version before.
    pub tells_previous: bool,
    /// What came, and when.
    pub items: Vec<(Moment, DeliveredItem)>,
}

/// Where a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStart {
    /// Above a revision.
    After(Rev),
    /// With the present objects, at least this new.
    Initial(Rev),
}

/// What a watcher gets.
#[derive(Clone, Debug)]
pub enum DeliveredItem {
    /// An object that was there at the start.
    Present(Pair),
    /// The end of those, which are the state at this revision.
    InitialEnd(Rev),
    /// A change.
    Event(DeliveredEvent),
    /// Everything up to here has been delivered.
    Progress(Rev),
    /// The history is gone.
    Expired,
    /// The watch is over for another reason.
    Failed,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredEvent {
    /// The revision of the change.
    pub revision: Rev,
    /// The key that changed.
    pub key: String,
    /// How it looks to the watcher.
    pub kind: DeliveredKind,
    /// The new value, or the last one of a deleted object, if it is delivered.
    pub value: Option<Value>,
    /// The version before, if the layer delivers it.
    pub previous: Option<Pair>,
}

/// How a change looks to a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveredKind {
    Added,
    Modified,
    Deleted,
}

/// A compaction that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct RecordedCompaction {
    pub called: Moment,
    pub at: Rev,
}

/// A read that failed.
#[derive(Clone, Debug)]
pub struct UnansweredRead {
    pub called: Moment,
    pub returned: Moment,
    pub by: &'static str,
    /// Whether the store tried for as long as it may.
    pub had_its_time: bool,
    pub why: String,
}

/// Everything that happened.
#[derive(Debug, Default)]
pub struct History {
    pub ops: Vec<Op>,
    pub streams: Vec<RecordedWatch>,
    pub compactions: Vec<RecordedCompaction>,
    /// The revision before everything, and whether all revisions above it are ours.
    pub start: Rev,
    pub exclusive: bool,
    /// Reads that got no answer in time, and the periods in which that is allowed, because most of the
    /// store's members were gone. It is never a fault for a store of one member.
    pub unanswered: Vec<UnansweredRead>,
    /// Whether a read that had its time is a fault too: on a busy machine it is none.
    pub judges_deadlines: bool,
    pub outages: Option<Vec<(Moment, Moment)>>,
    /// Counts of everything else: faults by kind, requests that failed.
    pub counts: BTreeMap<&'static str, u64>,
}
