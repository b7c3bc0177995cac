//! The states of the small world: a request, its pod, what the caches show of them, and what the controller remembers.
//!
//! Times are ages in ticks of a minute, up to the first tick after which more makes no difference.

/// Ticks until a silent interceptor loses its turn.
pub(super) const DEADLINE: u8 = 2;
/// Ticks until a finished request is removed that has requesters.
pub(super) const RETENTION: u8 = 2;
/// Ticks until a canceled request is removed.
pub(super) const CANCELED_GRACE: u8 = 1;
/// Ticks that a pod may take to terminate.
pub(super) const GRACE: i8 = 1;
/// How many interceptors the pod has, with imperative eviction.
pub(super) const INTERCEPTORS: u8 = 3;
/// Ticks after which a write that failed is tried again.
pub(super) const RETRY: u8 = 1;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Request {
    /// How many of the two requesters want the eviction; which does not matter.
    pub(super) requesters: u8,
    /// A finalizer keeps it.
    pub(super) is_deleted: bool,
    pub(super) has_label: bool,
    pub(super) is_observed: bool,
    /// Whether the target interceptors are set.
    pub(super) is_taken_up: bool,
    /// How many of them are processed; the first ones.
    pub(super) processed: u8,
    /// The turn of the next one.
    pub(super) turn: Option<Turn>,
    pub(super) end: Option<End>,
}

/// The turn of the active interceptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Turn {
    /// Ticks since it began, or since the last heartbeat.
    pub(super) age: u8,
    /// Whether it has reported.
    pub(super) has_begun: bool,
    /// Ticks since it was completed.
    pub(super) completed: Option<u8>,
}

/// How a request ended, and how many ticks ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct End {
    pub(super) by: &'static str,
    pub(super) age: u8,
}

/// What is under the pod's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pod {
    pub(super) phase: Phase,
    pub(super) has_label: bool,
    pub(super) in_group: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Running,
    /// It is to be gone in so many ticks; -1 if that is over.
    Terminating(i8),
    /// Succeeded or Failed.
    Terminal,
    Gone,
    /// Another pod has its name.
    Replaced,
}

impl Phase {
    pub(super) fn exists(self) -> bool {
        !matches!(self, Self::Gone | Self::Replaced)
    }
}

/// A state of the world. A cache shows the present version of an object or the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// None once it is removed: nothing matters then.
    pub(super) request: Option<Request>,
    /// The version that the cache shows, if it is the one before.
    pub(super) shown_request: Option<Request>,
    pub(super) pod: Pod,
    pub(super) shown_pod: Option<Pod>,
    /// Whether the cache has shown a DELETED event of the pod.
    pub(super) knows_deleted: bool,
    /// Whether the request is in the controller's queue.
    pub(super) is_queued: bool,
    /// Ticks until it comes back.
    pub(super) wake: Option<u8>,
    /// Whether it is in the queue of removals; ticks until it is taken.
    pub(super) removal: Option<u8>,
}

impl State {
    /// A request that has just been made, before any controller has looked at it.
    pub(super) fn new(phase: Phase, in_group: bool) -> Self {
        let request = Request {
            requesters: 1,
            is_deleted: false,
            has_label: false,
            is_observed: false,
            is_taken_up: false,
            processed: 0,
            turn: None,
            end: None,
        };
        Self {
            request: Some(request),
            shown_request: None,
            pod: Pod { phase, has_label: false, in_group },
            shown_pod: None,
            knows_deleted: false,
            is_queued: true,
            wake: None,
            removal: None,
        }
    }

    /// A minute passes.
    pub(super) fn tick(mut self) -> Self {
        let older = |request: Request| request.tick();
        self.request = self.request.map(older);
        self.shown_request = self.shown_request.map(older);
        self.pod = self.pod.tick();
        self.shown_pod = self.shown_pod.map(Pod::tick);
        self.wake = self.wake.map(|wake| wake.saturating_sub(1));
        self.removal = self.removal.map(|wait| wait.saturating_sub(1));
        self
    }

    /// The request changes. The cache lags one version at most.
    pub(super) fn change_request(mut self, request: Request) -> Self {
        if self.shown_request.is_some() {
            self = self.show_request();
        }
        self.shown_request = self.request;
        self.request = Some(request);
        self
    }

    /// The pod changes.
    pub(super) fn change_pod(mut self, pod: Pod) -> Self {
        if self.shown_pod.is_some() {
            self = self.show_pod(true);
        }
        self.shown_pod = Some(self.pod);
        self.pod = pod;
        self
    }

    /// The cache shows the present request, and the controller queues it.
    pub(super) fn show_request(mut self) -> Self {
        self.shown_request = None;
        self.is_queued = true;
        self
    }

    /// The cache shows the present pod, by an event or by a list.
    pub(super) fn show_pod(mut self, by_event: bool) -> Self {
        self.shown_pod = None;
        self.is_queued = true;
        self.knows_deleted |= by_event && !self.pod.phase.exists();
        self
    }

    /// The state without what makes no difference any more. The queue takes in a wake-up that is due. Once nobody can see the request unfinished, its pod and its
    /// turns; once it is taken up, whether the pod is in a group; once the pod is gone, its label and another of its name.
    pub(super) fn canonical(mut self) -> Self {
        let Some(request) = self.request else {
            return Self { request: None, ..Self::new(Phase::Gone, false) };
        };
        let shown = self.shown_request.unwrap_or(request);
        if self.wake == Some(0) {
            (self.is_queued, self.wake) = (true, None);
        }
        if request.end.is_some() && shown.end.is_some() {
            self.pod = Pod { phase: Phase::Gone, has_label: false, in_group: false };
            (self.shown_pod, self.knows_deleted) = (None, false);
            for request in self.request.iter_mut().chain(&mut self.shown_request) {
                (request.is_taken_up, request.processed, request.has_label) = (true, 0, false);
            }
        }
        let is_taken_up = shown.is_taken_up || shown.end.is_some();
        for pod in std::iter::once(&mut self.pod).chain(&mut self.shown_pod) {
            pod.in_group &= !is_taken_up;
            pod.has_label &= pod.phase.exists();
            if is_taken_up && pod.phase == Phase::Replaced {
                pod.phase = Phase::Gone;
            }
        }
        self
    }

    /// The controller begins anew: it lists everything, and queues all requests.
    pub(super) fn restart(self) -> Self {
        Self {
            shown_request: None,
            shown_pod: None,
            knows_deleted: false,
            is_queued: true,
            wake: None,
            removal: None,
            ..self
        }
    }

    /// The request comes back after so many ticks. The queue keeps the earlier of two times.
    pub(super) fn come_back(mut self, ticks: u8) -> Self {
        self.wake = Some(self.wake.map_or(ticks, |wake| wake.min(ticks)));
        self
    }
}

impl Request {
    fn tick(mut self) -> Self {
        if let Some(turn) = &mut self.turn {
            turn.age = (turn.age + 1).min(DEADLINE + 1);
            turn.completed = turn.completed.map(|_| 1);
        }
        if let Some(end) = &mut self.end {
            end.age = (end.age + 1).min(RETENTION);
        }
        self
    }
}

impl Pod {
    fn tick(mut self) -> Self {
        if let Phase::Terminating(left) = &mut self.phase {
            *left = (*left - 1).max(-1);
        }
        self
    }
}
