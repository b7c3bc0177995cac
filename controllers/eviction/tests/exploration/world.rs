//! What may happen to a request: each event is what the shipping code would do, or what admission lets others do.

use std::cell::RefCell;
use std::collections::HashMap;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::status_validation::StatusUpdate;
use drydock_api::eviction_request::validation::validate_update;
use drydock_api::eviction_request::{InterceptorStatus, Requester};
use drydock_eviction::{Config, TargetPod, step};

use super::state::{INTERCEPTORS, NOW, PodState, Request, config, ticks_until};

/// What a search lets happen: all of it at once has too many states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Turns, requesters, deletion, and all that happens to a pod.
    Turns,
    /// Labels of the pod that change, with one requester and without reports.
    Labels,
}

impl Scope {
    pub const ALL: [Scope; 2] = [Scope::Turns, Scope::Labels];
}

/// A mistake that is put into the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// It takes a pod that its cache lacks for gone, without a live read.
    TrustsTheCache,
    /// It asks to be woken a tick too late.
    WakesLate,
    /// It writes a status whatever version is stored.
    WritesWithoutVersion,
    /// It takes each deadline for over a tick early.
    PassesOverEarly,
    /// It is not woken by changes of pods.
    IgnoresPodEvents,
}

/// The request, its pod, and what the controller knows and waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// As stored; none once it is removed.
    pub request: Option<Request>,
    pub pod: PodState,
    /// As cached, if the cache lags.
    pub seen_request: Option<Option<Request>>,
    pub seen_pod: Option<PodState>,
    /// Whether the controller has seen a DELETED event of the pod.
    pub saw_deleted: bool,
    /// Whether the request is queued.
    pub queued: bool,
    /// Ticks until the controller wakes by itself.
    pub wake: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A requester withdraws; one asks.
    Withdraw,
    Ask,
    /// Somebody deletes the request; the owner of its finalizer lets it go.
    Delete,
    LetGo,
    /// An interceptor reports, or completes its turn, whether it is active or not.
    Heartbeat(u8),
    Complete(u8),
    /// The pod's label changes; the pod is deleted, ends, is gone, another takes its name.
    Label,
    DeletePod,
    EndPod,
    PodGoes,
    ReplacePod,
    /// The caches catch up: by an event, or by a new list, which names no deletion.
    SeeRequest,
    SeePod {
        by_list: bool,
    },
    /// A list comes without the pod, which is there.
    MissPod,
    /// The controller looks at the request; it is started again.
    Reconcile,
    Restart,
    /// Time passes.
    Tick,
}

/// What the controller does about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    pub status: Option<Request>,
    pub is_refused: bool,
    pub labels: Option<u8>,
    pub wake: Option<u8>,
    pub delete: bool,
    pub confirm: bool,
}

impl Decided {
    /// Whether there is anything to do.
    pub fn acts(&self) -> bool {
        self.status.is_some() || self.labels.is_some() || self.delete || self.confirm
    }
}

/// What the controller finds of the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Found {
    Pod(PodState),
    NotCached,
    Absent,
    Replaced,
}

/// The rules of one search. Decisions are kept: many worlds differ only in what lags.
pub struct Laws {
    pub scope: Scope,
    pub fault: Fault,
    config: Config,
    decided: RefCell<HashMap<(Request, Found), Decided>>,
    reported: RefCell<HashMap<(Request, u8, bool), Option<Request>>>,
}

impl Laws {
    pub fn new(scope: Scope, fault: Fault) -> Self {
        Self { scope, fault, config: config(), decided: RefCell::default(), reported: RefCell::default() }
    }

    /// Everything that may happen now, with what it leads to.
    pub fn successors(&self, world: &World) -> Vec<(Event, World)> {
        let mut events =
            vec![Event::Reconcile, Event::Restart, Event::Tick, Event::SeeRequest, Event::MissPod];
        events.extend([true, false].map(|by_list| Event::SeePod { by_list }));
        events.extend([Event::DeletePod, Event::EndPod, Event::PodGoes, Event::ReplacePod]);
        match self.scope {
            Scope::Turns => {
                events.extend([Event::Withdraw, Event::Ask, Event::Delete, Event::LetGo]);
                events.extend((0..3).flat_map(|place| [Event::Heartbeat(place), Event::Complete(place)]));
            }
            Scope::Labels => events.extend([Event::Label, Event::Complete(0), Event::Withdraw]),
        }
        events.into_iter().filter_map(|event| Some((event, self.after(world, event)?))).collect()
    }

    /// The world after an event; none if it cannot happen or changes nothing.
    pub fn after(&self, world: &World, event: Event) -> Option<World> {
        let mut next = *world;
        match event {
            Event::Withdraw
            | Event::Ask
            | Event::Delete
            | Event::LetGo
            | Event::Heartbeat(_)
            | Event::Complete(_) => {
                // A cache lags one version at most.
                let request = world.request.filter(|_| world.seen_request.is_none())?;
                next.write(self.by_others(&request, event)?);
            }
            Event::Label | Event::DeletePod | Event::EndPod | Event::PodGoes | Event::ReplacePod => {
                let pod = Some(world.pod).filter(|_| world.seen_pod.is_none())?;
                next.pod = of_pod(pod, event)?;
                next.seen_pod = Some(pod);
            }
            Event::SeeRequest => {
                next.seen_request.take()?;
                next.queued = true;
                next.saw_deleted &= next.request.is_some();
            }
            Event::SeePod { by_list } => {
                let before = next.seen_pod.take()?;
                let is_known = next.cached_request().is_some();
                let is_gone = before.object().is_some() && world.pod.object().is_none();
                next.saw_deleted |= is_gone && is_known && !by_list;
                next.queued |= is_known && self.fault != Fault::IgnoresPodEvents;
            }
            Event::MissPod => {
                let is_there = world.pod.object().is_some() && world.seen_pod.is_none();
                is_there.then(|| next.seen_pod = Some(PodState::Gone))?;
                next.queued |= next.cached_request().is_some() && self.fault != Fault::IgnoresPodEvents;
            }
            Event::Reconcile => {
                let is_due = world.queued || world.wake == Some(0);
                if !is_due {
                    return None;
                }
                next = self.reconcile(world);
            }
            Event::Restart => {
                next.seen_request = None;
                next.seen_pod = None;
                next.saw_deleted = false;
                next.queued = next.request.is_some();
                next.wake = None;
            }
            Event::Tick => {
                next.request = next.request.map(Request::older);
                next.seen_request = next.seen_request.map(|seen| seen.map(Request::older));
                next.pod = next.pod.older();
                next.seen_pod = next.seen_pod.map(PodState::older);
                next.wake = next.wake.map(|ticks| ticks.saturating_sub(1));
            }
        }
        (next != *world).then_some(next)
    }

    /// One pass of the controller over the request as it is cached, as `controller.rs` does it.
    fn reconcile(&self, world: &World) -> World {
        let mut next = World { queued: false, wake: None, ..*world };
        let Some(request) = world.cached_request() else { return next };
        let decided = self.decide_twice(&request, world);
        let is_current = world.seen_request.is_none() || self.fault == Fault::WritesWithoutVersion;
        if decided.delete || decided.status.is_some() {
            let written = if decided.delete { None } else { decided.status };
            match world.request {
                Some(_) if is_current => next.write(written),
                // Refused with a conflict, and tried again; or it is gone.
                _ => next.queued = true,
            }
        } else if let Some(label) = decided.labels {
            match world.request {
                Some(stored) if is_current => {
                    next.write(Some(Request { label, ..stored }));
                    next.wake = decided.wake;
                }
                _ => next.queued = true,
            }
        } else {
            next.wake = decided.wake;
        }
        if self.fault == Fault::WakesLate {
            next.wake = next.wake.map(|ticks| ticks + 1);
        }
        next
    }

    /// The decision by the cache, and if that does not suffice by a live read of the pod.
    fn decide_twice(&self, request: &Request, world: &World) -> Decided {
        let cached = world.seen_pod.unwrap_or(world.pod);
        let by_cache = match cached {
            pod if pod.object().is_some() => Found::Pod(pod),
            _ if world.saw_deleted || self.fault == Fault::TrustsTheCache => Found::Absent,
            _ => Found::NotCached,
        };
        let decided = self.decide(request, by_cache);
        if !decided.confirm {
            return decided;
        }
        let live = match world.pod {
            PodState::Gone => Found::Absent,
            PodState::Replaced => Found::Replaced,
            pod => Found::Pod(pod),
        };
        self.decide(request, live)
    }

    /// The shipping step, and what admission says of the status that it writes.
    pub fn decide(&self, request: &Request, found: Found) -> Decided {
        *self.decided.borrow_mut().entry((*request, found)).or_insert_with(|| {
            let object = request.object();
            let pod = if let Found::Pod(state) = found { state.object() } else { None };
            let target = match (&pod, found) {
                (Some(pod), _) => TargetPod::Present(pod),
                (None, Found::NotCached) => TargetPod::NotCached,
                (None, Found::Replaced) => TargetPod::Replaced("another"),
                (None, _) => TargetPod::Absent,
            };
            let mut config = self.config.clone();
            if self.fault == Fault::PassesOverEarly {
                config.heartbeat_deadline /= 2;
            }
            let decision = step(&object, target, NOW, &config);
            let written = decision.status.map(|status| EvictionRequest { status, ..object.clone() });
            let label = decision.labels.get("app").map(|value| value.as_ref().unwrap().parse().unwrap());
            Decided {
                is_refused: written.as_ref().is_some_and(|new| !self.admits(new, &object)),
                status: written.as_ref().map(Request::of),
                labels: label,
                wake: decision.wake.map(ticks_until),
                delete: decision.delete,
                confirm: decision.confirm,
            }
        })
    }

    fn admits(&self, new: &EvictionRequest, old: &EvictionRequest) -> bool {
        let Config { heartbeat_deadline, allowed, .. } = &self.config;
        let update = StatusUpdate { new, old, now: NOW, heartbeat_deadline: *heartbeat_deadline, allowed };
        update.validate().is_empty()
    }

    /// The request after a write of others; none if admission refuses it. The inner none is a removal.
    fn by_others(&self, request: &Request, event: Event) -> Option<Option<Request>> {
        let changed = match event {
            Event::Withdraw => {
                Request { requesters: request.requesters.checked_sub(1)?, observed: false, ..*request }
            }
            Event::Ask => {
                let mut new = request.object();
                new.spec.requesters.push(Requester { name: "another.example.com".into() });
                let is_refused =
                    request.requesters == 2 || !validate_update(&new, &request.object()).is_empty();
                (!is_refused).then_some(())?;
                Request { requesters: request.requesters + 1, observed: false, ..*request }
            }
            Event::Delete if !request.deleting => Request { deleting: true, observed: false, ..*request },
            Event::LetGo if request.deleting => return Some(None),
            Event::Heartbeat(place) => self.report(request, place, false)?,
            Event::Complete(place) => self.report(request, place, true)?,
            _ => return None,
        };
        Some(Some(changed))
    }

    /// The request after a report of an interceptor, if admission takes it.
    fn report(&self, request: &Request, place: u8, completes: bool) -> Option<Request> {
        *self.reported.borrow_mut().entry((*request, place, completes)).or_insert_with(|| {
            let old = request.object();
            let mut new = old.clone();
            let is_it = |entry: &&mut InterceptorStatus| entry.name == INTERCEPTORS[usize::from(place)];
            let entry = new.status.interceptors.iter_mut().find(is_it)?;
            if completes {
                entry.completion_time = Some(NOW);
            } else {
                entry.start_time = entry.start_time.or(Some(NOW));
                entry.heartbeat_time = Some(NOW);
            }
            self.admits(&new, &old).then(|| Request::of(&new))
        })
    }
}

impl World {
    /// The request as it is cached.
    pub fn cached_request(&self) -> Option<Request> {
        self.seen_request.unwrap_or(self.request)
    }

    /// Stores a new version, which the cache does not have yet. If it lags already, it skips the version between.
    fn write(&mut self, new: Option<Request>) {
        if new == self.request {
            return;
        }
        self.seen_request = self.seen_request.or(Some(self.request));
        self.request = new;
    }
}

fn of_pod(pod: PodState, event: Event) -> Option<PodState> {
    match (event, pod) {
        (Event::Label, PodState::Running { label }) => Some(PodState::Running { label: 1 - label }),
        (Event::Label, PodState::Terminating { label, grace }) => {
            Some(PodState::Terminating { label: 1 - label, grace })
        }
        (Event::DeletePod, PodState::Running { label }) => Some(PodState::Terminating { label, grace: 1 }),
        (Event::DeletePod, PodState::Terminal { .. }) => Some(PodState::Gone),
        (Event::EndPod, PodState::Running { label } | PodState::Terminating { label, .. }) => {
            Some(PodState::Terminal { label })
        }
        (Event::PodGoes, PodState::Terminating { .. }) => Some(PodState::Gone),
        (Event::ReplacePod, PodState::Gone) => Some(PodState::Replaced),
        _ => None,
    }
}
