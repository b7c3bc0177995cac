//! The states of the small world: two requests whose pods one budget covers, what the caches show, and what is queued and
//! in flight.

/// A state. `waiters` is the number of the state of the shipping code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) waiters: usize,
    pub(super) requests: [Request; 2],
    pub(super) budget: Budget,
    /// The budget that the cache shows, if it is the version before.
    pub(super) shown: Option<Budget>,
    /// How many mishaps there have been: what no fair schedule brings.
    pub(super) mishaps: u8,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Request {
    /// Whether it is wanted, and so in the turn of imperative eviction.
    pub(super) is_wanted: bool,
    pub(super) pod: Phase,
    /// The pod that the cache shows, if it is the version before.
    pub(super) shown_pod: Option<Phase>,
    pub(super) is_queued: bool,
    /// What a worker has read of the caches, and has not decided on yet.
    pub(super) read: Option<Seen>,
    /// The milliseconds after which it comes back.
    pub(super) wake: Option<i64>,
    /// Whether its eviction waits in the pool.
    pub(super) is_pooled: bool,
    /// Its eviction whose answer is on the way.
    pub(super) in_flight: Option<(Answer, Seen)>,
    /// Whether the host has accepted an eviction of ours, since the last restart.
    pub(super) is_accepted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Running,
    Terminating,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Budget {
    Absent,
    Closed,
    /// It allows one disruption.
    Open,
}

/// What was read of the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    pub(super) pod: Phase,
    pub(super) budget: Budget,
    /// Whether the cache still shows that version of the budget.
    pub(super) is_present: bool,
}

/// The result of an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    Accepted,
    Gone,
    Budget,
    Again,
    Unclear,
    Throttled,
    Denied,
}

impl State {
    pub(super) fn new(budget: Budget) -> Self {
        let request = Request {
            is_wanted: true,
            pod: Phase::Running,
            shown_pod: None,
            is_queued: true,
            read: None,
            wake: None,
            is_pooled: false,
            in_flight: None,
            is_accepted: false,
        };
        Self { waiters: 0, requests: [request; 2], budget, shown: None, mishaps: 0 }
    }

    /// What a worker reads of the caches; none if the request is not in our turn.
    pub(super) fn read(&self, request: usize) -> Option<Seen> {
        let it = self.requests[request];
        let budget = self.shown.unwrap_or(self.budget);
        let pod = it.shown_pod.unwrap_or(it.pod);
        // What is not there has no version.
        let is_present = true;
        it.is_wanted.then_some(Seen { pod, budget, is_present })
    }

    /// The state with a request changed.
    pub(super) fn with(mut self, request: usize, change: impl FnOnce(&mut Request)) -> Self {
        change(&mut self.requests[request]);
        self
    }

    /// The pod of a request changes. Its cache lags one version at most; or not at all.
    pub(super) fn with_pod(self, request: usize, pod: Phase, lags: bool) -> Self {
        self.with(request, |it| {
            it.is_queued |= (it.shown_pod.is_some() || !lags) && it.is_wanted;
            it.shown_pod = lags.then_some(it.pod);
            it.pod = pod;
        })
    }

    /// What was read is of an older version of the budget now.
    pub(super) fn outdate(&mut self) {
        for it in &mut self.requests {
            it.read.iter_mut().for_each(|seen| seen.is_present = false);
            it.in_flight.iter_mut().for_each(|(_, seen)| seen.is_present = false);
        }
    }

    /// The process begins anew: all is read again, and what was in flight has no reader.
    pub(super) fn restart(mut self) -> Self {
        self.waiters = 0;
        self.shown = None;
        for it in &mut self.requests {
            *it = Request {
                shown_pod: None,
                is_queued: it.is_wanted,
                read: None,
                wake: None,
                is_pooled: false,
                in_flight: None,
                is_accepted: false,
                ..*it
            };
        }
        self
    }
}
