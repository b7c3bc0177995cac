//! One priority level: the seats that its flows hold, and the requests that wait, a queue for each flow.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};

use super::share::Share;

/// Maximum requests of one flow that wait (k8s.io/apiserver pkg/apis/flowcontrol/bootstrap, queueLengthLimit).
const QUEUE: usize = 50;
/// Maximum requests of a level that wait.
const WAITING: usize = 1_024;
/// When the level's waiting room gets scarce, each flow gets less of it: what is left, divided by this.
const PART_OF_WAITING: usize = 16;
/// A flow that holds seats may take more only if it then holds at most this many times the seats that are left to its
/// level: alone it gets three quarters, and the next flow finds seats free.
const OF_WHAT_IS_LEFT: u32 = 3;

/// A flow: its name, hashed with a secret key.
pub type FlowKey = u64;

/// The number of a request that waits. Later ones are higher.
pub type Ticket = u64;

/// The requests of one level; a `W` wakes a request that waits.
pub struct LevelQueues<W> {
    /// Its seats.
    pub share: Share,
    /// Seats that its requests hold.
    pub used: u32,
    /// Requests that hold them.
    pub executing: u32,
    /// Requests that wait.
    pub waiting: usize,
    /// Flows that hold seats or wait; others are forgotten.
    flows: HashMap<FlowKey, FlowQueue<W>>,
    /// Flows that wait, the next one first.
    line: BTreeSet<Turn>,
}

struct FlowQueue<W> {
    used: u32,
    queue: VecDeque<QueuedRequest<W>>,
}

struct QueuedRequest<W> {
    ticket: Ticket,
    seats: u32,
    waiter: W,
}

/// The order of flows: by the seats that they hold, then by how long their first request waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    used: u32,
    ticket: Ticket,
    flow: FlowKey,
}

/// The request that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its flow.
    pub flow: FlowKey,
    /// The seats that it takes.
    pub seats: u32,
}

impl<W> LevelQueues<W> {
    /// A level without requests.
    pub fn new(share: Share) -> Self {
        let (flows, line) = (HashMap::new(), BTreeSet::new());
        Self { share, used: 0, executing: 0, waiting: 0, flows, line }
    }

    /// Whether a flow may hold so many seats more, where `free` are left to the level.
    pub fn may_take(&self, flow: FlowKey, seats: u32, free: u32) -> bool {
        seats <= free && leaves_enough(self.flows.get(&flow).map_or(0, |flow| flow.used), seats, free)
    }

    /// Whether one more request of a flow may wait.
    pub fn has_room(&self, flow: FlowKey) -> bool {
        let queued = self.flows.get(&flow).map_or(0, |flow| flow.queue.len());
        let left = WAITING.saturating_sub(self.waiting);
        left > 0 && queued < QUEUE.min((left / PART_OF_WAITING).max(1))
    }

    /// The request that is next, where `free` seats are left to the level. Flows that hold too much are passed over.
    /// A request that takes more seats than are free is not passed over, or it would never get them.
    pub fn next(&self, free: u32) -> Option<Head> {
        for turn in &self.line {
            let seats = self.flows.get(&turn.flow)?.queue.front()?.seats;
            if seats > free || leaves_enough(turn.used, seats, free) {
                return Some(Head { flow: turn.flow, seats });
            }
            if !leaves_enough(turn.used, 1, free) {
                // The flows after it hold no less, so they may take none either.
                return None;
            }
        }
        None
    }

    /// A request of a flow takes seats.
    pub fn take(&mut self, flow: FlowKey, seats: u32) {
        self.used += seats;
        self.executing += 1;
        self.change(flow, |flow| flow.used += seats);
    }

    /// A request of a flow gives its seats back.
    pub fn give_back(&mut self, flow: FlowKey, seats: u32) {
        self.used = self.used.saturating_sub(seats);
        self.executing = self.executing.saturating_sub(1);
        self.change(flow, |flow| flow.used = flow.used.saturating_sub(seats));
    }

    /// A request of a flow begins to wait.
    pub fn enqueue(&mut self, flow: FlowKey, seats: u32, ticket: Ticket, waiter: W) {
        self.waiting += 1;
        self.change(flow, |flow| flow.queue.push_back(QueuedRequest { ticket, seats, waiter }));
    }

    /// The first request of a flow gets its seats.
    pub fn grant_next(&mut self, flow: FlowKey) -> Option<(W, u32)> {
        let first = self.change(flow, |flow| flow.queue.pop_front())?;
        self.waiting -= 1;
        self.take(flow, first.seats);
        Some((first.waiter, first.seats))
    }

    /// A request of a flow waits no longer; `false` if it did not wait.
    pub fn leave(&mut self, flow: FlowKey, ticket: Ticket) -> bool {
        let left = self.change(flow, |flow| {
            let at = flow.queue.iter().position(|waiting| waiting.ticket == ticket)?;
            flow.queue.remove(at)
        });
        self.waiting -= usize::from(left.is_some());
        left.is_some()
    }

    /// How many flows are known.
    #[cfg(test)]
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Changes a flow, and updates its position in the line. A flow that neither holds seats nor waits is forgotten.
    fn change<R>(&mut self, key: FlowKey, change: impl FnOnce(&mut FlowQueue<W>) -> R) -> R {
        let mut entry = match self.flows.entry(key) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => entry.insert_entry(FlowQueue { used: 0, queue: VecDeque::new() }),
        };
        let flow = entry.get_mut();
        if let Some(turn) = flow.turn(key) {
            self.line.remove(&turn);
        }
        let result = change(flow);
        match flow.turn(key) {
            Some(turn) => drop(self.line.insert(turn)),
            None if flow.used == 0 => drop(entry.remove()),
            None => {}
        }
        result
    }
}

impl<W> FlowQueue<W> {
    fn turn(&self, flow: FlowKey) -> Option<Turn> {
        self.queue.front().map(|first| Turn { used: self.used, ticket: first.ticket, flow })
    }
}

/// Whether a flow that holds `used` seats and takes `seats` of the `free` ones leaves enough to others. The first
/// request of a flow always does.
fn leaves_enough(used: u32, seats: u32, free: u32) -> bool {
    used == 0 || used + seats <= OF_WHAT_IS_LEFT.saturating_mul(free.saturating_sub(seats))
}
