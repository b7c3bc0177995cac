//! What the shipping code decides in a small state: the controller's step and its patch, and admission's table. Each
//! decision is made once and remembered.

use drydock_api::eviction_request::status_validation::StatusUpdate;
use drydock_api::eviction_request::{EvictionRequest, EvictionRequestStatus, validation};
use drydock_runtime::exploration::Memo;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::objects::{self, Clocks, NAMES};
use super::state::{DEADLINE, Phase, Pod, Request};
use crate::controller::status_patch;
use crate::decision::{Config, RequestAction, RequestDecision, TargetPod};
use crate::ending;
use crate::machine::step;

const MINUTE: SignedDuration = SignedDuration::from_secs(60);

/// A fault that is put into the controller, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A turn ends a minute early.
    TurnEndsEarly,
    /// A wake-up is not put into the queue.
    WakeUpIsDropped,
    /// A wake-up is a minute late.
    WakeUpIsLate,
    /// A request that has ended goes on.
    EndIsForgotten,
    /// A pod that is not in the cache counts as gone without a live read.
    CacheIsTrusted,
}

/// From where the pod is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Cache { knows_deleted: bool },
    Host,
}

/// What the controller does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decided {
    /// It reads the pod from the host.
    Confirm,
    Remove,
    /// It writes the status, which makes this of the request.
    Write(Request),
    ChangeLabels {
        has_label: bool,
        wake: Option<u8>,
    },
    Wait(Option<u8>),
}

/// What somebody other than the controller does to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Update {
    Ask,
    Withdraw,
    Heartbeat,
    Complete,
    /// The interceptor whose turn is next reports.
    ReportOutOfTurn,
}

/// The shipping code, with the clocks and the fault of a world.
pub(super) struct Rules {
    clocks: Clocks,
    pub(super) fault: Option<Fault>,
    config: Config,
    decided: Memo<(Request, Pod, Source), Result<Decided, String>>,
    updated: Memo<(Request, Update), Result<Option<Request>, String>>,
    due: Memo<Request, bool>,
}

impl Rules {
    /// The controller's clock is so many seconds ahead of the API server's.
    pub(super) fn new(ahead: i64, fault: Option<Fault>) -> Self {
        let (decided, updated, due) = (Memo::default(), Memo::default(), Memo::default());
        Self { clocks: Clocks { ahead }, fault, config: objects::config(), decided, updated, due }
    }

    /// What the controller does about a request, and what becomes of the request if it was not changed meanwhile.
    pub(super) fn decide(&self, request: Request, pod: Pod, source: Source) -> Result<Decided, String> {
        self.decided.value_of((request, pod, source), || self.decide_anew(&request, &pod, source))
    }

    fn decide_anew(&self, before: &Request, small_pod: &Pod, source: Source) -> Result<Decided, String> {
        let (request, pod) = (self.clocks.request(before), objects::pod(small_pod));
        let uid = request.metadata.name.as_str();
        let target = match source {
            Source::Cache { knows_deleted } => TargetPod::of_cache(pod.as_ref(), uid, knows_deleted),
            Source::Host => TargetPod::of_live_read(pod.as_ref(), uid),
        };
        let decision = self.faulty_step(&request, target);
        if decision.confirm {
            return Ok(Decided::Confirm);
        }
        let ticks = |wake: Option<Timestamp>| wake.map(|wake| self.clocks.ticks_until(wake));
        let wakes_at = decision.wake;
        match decision.action() {
            RequestAction::Remove => Ok(Decided::Remove),
            RequestAction::WriteStatus(status, _) => {
                let after = self.write(&request, &status)?;
                check_turn(before, &after, small_pod)?;
                Ok(Decided::Write(after))
            }
            RequestAction::ChangeLabels(changes, wake) => {
                let has_label = changes.get("app").is_some_and(Option::is_some);
                Ok(Decided::ChangeLabels { has_label, wake: ticks(wake) })
            }
            RequestAction::Wait(wake) => {
                self.check_wake(&request, target, wakes_at)?;
                Ok(Decided::Wait(ticks(wake)))
            }
        }
    }

    fn faulty_step(&self, request: &EvictionRequest, target: TargetPod<'_>) -> RequestDecision {
        let now = self.clocks.controller();
        let step = |request, target, now| step(request, target, now, &self.config);
        match (self.fault, target) {
            (Some(Fault::TurnEndsEarly), _) => {
                let mut early = step(request, target, now + MINUTE);
                let status = early.status.as_mut().filter(|_| !early.ends);
                if let Some(status) = status.filter(|status| !status.processed_interceptors.is_empty()) {
                    status.activation_time = Some(now);
                    return early;
                }
                step(request, target, now)
            }
            (Some(Fault::CacheIsTrusted), TargetPod::NotCached) => step(request, TargetPod::Absent, now),
            (Some(Fault::WakeUpIsLate), _) => {
                let decision = step(request, target, now);
                RequestDecision { wake: decision.wake.map(|wake| wake + MINUTE), ..decision }
            }
            (Some(Fault::EndIsForgotten), _) => {
                let mut unfinished = request.clone();
                unfinished.status.conditions.clear();
                step(&unfinished, target, now)
            }
            _ => step(request, target, now),
        }
    }

    /// A step that waits finds nothing to do before its wake-up.
    fn check_wake(
        &self,
        request: &EvictionRequest,
        target: TargetPod<'_>,
        wake: Option<Timestamp>,
    ) -> Result<(), String> {
        let now = self.clocks.controller();
        if wake.is_some_and(|wake| wake <= now) {
            return Err("it wakes at once, again and again".to_owned());
        }
        let mut later = objects::boundaries(request, target, &self.config).into_iter();
        let is_before = |then: &Timestamp| *then > now && wake.is_none_or(|wake| *then < wake);
        let is_work = |then: &Timestamp| {
            !matches!(step(request, target, *then, &self.config).action(), RequestAction::Wait(_))
        };
        match later.find(|then| is_before(then) && is_work(then)) {
            Some(then) => Err(format!("a wake-up is late: it is at {wake:?}, and there is work at {then}")),
            None => Ok(()),
        }
    }

    /// Patches the request as the controller does, if admission accepts it.
    fn write(&self, old: &EvictionRequest, status: &EvictionRequestStatus) -> Result<Request, String> {
        let mut document = serde_json::to_value(old).map_err(|e| e.to_string())?;
        merge(&mut document, status_patch(old, status));
        let new = serde_json::from_value(document).map_err(|e| e.to_string())?;
        if !self.admits(&new, old) {
            return Err("admission refuses what the controller writes".to_owned());
        }
        self.clocks.small(&new)
    }

    fn admits(&self, new: &EvictionRequest, old: &EvictionRequest) -> bool {
        let (now, heartbeat_deadline) = (self.clocks.server(), self.config.heartbeat_deadline);
        StatusUpdate { new, old, now, heartbeat_deadline, allowed: &self.config.allowed }
            .validate()
            .is_empty()
    }

    /// The request after an update by others; none if admission refuses it.
    pub(super) fn update(&self, request: Request, update: Update) -> Result<Option<Request>, String> {
        self.updated.value_of((request, update), || {
            let (old, now) = (self.clocks.request(&request), self.clocks.server());
            let mut new = old.clone();
            let turn = usize::from(request.processed);
            let entry = |new: &mut EvictionRequest, at: usize, heartbeat: bool, completion: bool| {
                let Some(entry) = new.status.interceptors.get_mut(at) else { return };
                if heartbeat {
                    (entry.start_time, entry.heartbeat_time) = (entry.start_time.or(Some(now)), Some(now));
                }
                if completion {
                    entry.completion_time = Some(now);
                }
            };
            match update {
                Update::Ask => new.spec.requesters = objects::requesters(request.requesters + 1),
                Update::Withdraw => new.spec.requesters = objects::requesters(request.requesters - 1),
                Update::Heartbeat => entry(&mut new, turn, true, false),
                Update::Complete => entry(&mut new, turn, false, true),
                Update::ReportOutOfTurn => entry(&mut new, (turn + 1).min(NAMES.len() - 1), true, false),
            }
            let of_spec = matches!(update, Update::Ask | Update::Withdraw);
            new.metadata.generation += i64::from(of_spec);
            let is_admitted = if of_spec {
                validation::validate_update(&new, &old).is_empty()
            } else {
                self.admits(&new, &old)
            };
            if is_admitted { self.clocks.small(&new).map(Some) } else { Ok(None) }
        })
    }

    /// Whether the worker that removes finished requests finds that this one is due.
    pub(super) fn is_removal_due(&self, request: &Request) -> bool {
        self.due.value_of(*request, || {
            let object = self.clocks.request(request);
            object.is_finished() && ending::is_due(&object, self.clocks.controller(), &self.config)
        })
    }
}

/// Checks the table of turns anew, without the code that ships.
fn check_turn(before: &Request, after: &Request, pod: &Pod) -> Result<(), String> {
    let rule = |holds: bool, rule: &str| if holds { Ok(()) } else { Err(rule.to_owned()) };
    let mut same_age = after.end;
    same_age.iter_mut().for_each(|end| end.age = before.end.map_or(0, |end| end.age));
    rule(before.end.is_none() || before.end == same_age, "the end of a request changes")?;
    rule(before != after, "a write changes nothing, so that no watch shows it")?;
    rule(before.processed <= after.processed, "a turn is taken back")?;
    rule(after.processed - before.processed <= 1, "a turn is skipped")?;
    rule(before.requesters == after.requesters, "the controller changes requesters")?;
    if before.processed < after.processed && after.end.is_none() {
        let is_over = before.turn.is_some_and(|turn| turn.completed.is_some() || turn.age >= DEADLINE);
        rule(is_over, "a turn ends early")?;
        rule(!matches!(pod.phase, Phase::Terminating(1..)), "a turn ends within the pod's grace period")?;
    }
    Ok(())
}

/// Merges a patch into a document (RFC 7396).
fn merge(document: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *document = patch;
        return;
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Some(into) = document.as_object_mut() else { return };
    for (name, value) in fields {
        if value.is_null() {
            into.remove(&name);
        } else {
            merge(into.entry(name).or_insert(Value::Null), value);
        }
    }
}
