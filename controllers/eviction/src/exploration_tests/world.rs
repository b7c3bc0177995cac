//! The moves of the small world: what its controller, its caches and everybody else may do.

use drydock_runtime::exploration::{Move, SmallWorld};

use super::rules::{Decided, Fault, Rules, Source, Update};
use super::state::{GRACE, INTERCEPTORS, Phase, Pod, RETRY, Request, State};

/// The world, by the rules of the shipping code.
pub(super) struct EvictionWorld {
    pub(super) rules: Rules,
}

/// The moves from one state.
struct Moves {
    found: Vec<Move<State>>,
}

impl SmallWorld for EvictionWorld {
    type State = State;

    fn starts(&self) -> Vec<State> {
        let phases =
            [Phase::Running, Phase::Terminating(GRACE), Phase::Terminal, Phase::Gone, Phase::Replaced];
        let unseen = State {
            shown_pod: Some(Pod { phase: Phase::Gone, has_label: false, in_group: false }),
            ..State::new(Phase::Running, false)
        };
        let alone = phases.map(|phase| State::new(phase, false));
        alone.into_iter().chain([State::new(Phase::Running, true), unseen]).collect()
    }

    fn moves(&self, state: &State) -> Result<Vec<Move<State>>, String> {
        let mut moves = Moves { found: Vec::new() };
        let Some(request) = state.request else { return Ok(moves.found) };
        moves.fair("a minute passes", state.tick());
        moves.caches(state);
        moves.pod(state);
        moves.restart(state);
        self.others(state, request, &mut moves)?;
        if state.is_queued {
            self.reconcile(state, request, &mut moves)?;
        }
        if state.removal == Some(0) {
            self.remove(state, request, &mut moves)?;
        }
        Ok(moves.found)
    }

    /// The request is removed, or it has ended and a finalizer keeps it.
    fn is_at_rest(&self, state: &State) -> bool {
        state.request.is_none_or(|request| request.end.is_some() && request.is_deleted)
    }
}

impl EvictionWorld {
    /// What requesters, interceptors and those who delete the request do.
    fn others(&self, state: &State, request: Request, moves: &mut Moves) -> Result<(), String> {
        let mut update = |name, update, is_possible: bool, is_legal: bool| {
            if !is_possible {
                return Ok(());
            }
            match self.rules.update(request, update)? {
                Some(after) if is_legal => moves.other(name, state.change_request(after)),
                None if !is_legal => {}
                Some(_) => return Err(format!("admission accepts that {name}")),
                None => return Err(format!("admission refuses that {name}")),
            }
            Ok(())
        };
        let is_open = request.end.is_none() && !request.is_deleted;
        let turn = request.turn;
        let works = turn.is_some_and(|turn| turn.completed.is_none());
        let may_beat = turn.is_some_and(|turn| !turn.has_begun || turn.age >= 1);
        update("another requester asks", Update::Ask, request.requesters < 2, is_open)?;
        update("a requester withdraws", Update::Withdraw, request.requesters > 0, true)?;
        update("the interceptor sends a heartbeat", Update::Heartbeat, works && may_beat, true)?;
        update("the interceptor completes its turn", Update::Complete, works, true)?;
        let has_next = turn.is_some() && request.processed + 1 < INTERCEPTORS;
        update("an interceptor reports out of turn", Update::ReportOutOfTurn, has_next, false)?;
        if !request.is_deleted {
            let deleted = Request { is_deleted: true, ..request };
            moves.other("the request is deleted and a finalizer keeps it", state.change_request(deleted));
        }
        let evicts = request.turn.is_some() && request.processed + 1 == INTERCEPTORS;
        if evicts && is_open && request.requesters > 0 && state.pod.phase == Phase::Running {
            moves.fair("imperative eviction evicts the pod", state.with_pod(Phase::Terminating(GRACE)));
        }
        Ok(())
    }

    /// The controller takes the request from its queue.
    fn reconcile(&self, state: &State, present: Request, moves: &mut Moves) -> Result<(), String> {
        let state = State { is_queued: false, ..*state };
        let retried = state.come_back(RETRY);
        let (request, pod) = (state.shown_request.unwrap_or(present), state.shown_pod.unwrap_or(state.pod));
        let source = Source::Cache { knows_deleted: state.knows_deleted };
        let mut decided = self.rules.decide(request, pod, source)?;
        if matches!(decided, Decided::Confirm) {
            moves.other("a live read fails", retried);
            decided = self.rules.decide(request, state.pod, Source::Host)?;
        }
        let written = match decided {
            Decided::Confirm => return Err("it reads the pod again and again".to_owned()),
            Decided::Remove => {
                moves.fair("a removal is queued", State { removal: Some(0), ..state });
                return Ok(());
            }
            Decided::Wait(wake) => {
                let wake = wake.filter(|_| self.rules.fault != Some(Fault::WakeUpIsDropped));
                moves.fair("the controller waits", wake.map_or(state, |wake| state.come_back(wake)));
                return Ok(());
            }
            Decided::Write(after) => state.change_request(after),
            Decided::ChangeLabels { has_label, wake } => {
                let changed = state.change_request(Request { has_label, ..request });
                wake.map_or(changed, |wake| changed.come_back(wake))
            }
        };
        if state.shown_request.is_some() {
            moves.fair("a write on an old version is refused", retried);
            return Ok(());
        }
        check_end(&state, &request, &written)?;
        moves.fair("the controller writes", written);
        moves.other("the answer to a write is lost", written.come_back(RETRY));
        moves.other("a write is lost", retried);
        Ok(())
    }

    /// The worker of removals takes the request.
    fn remove(&self, state: &State, present: Request, moves: &mut Moves) -> Result<(), String> {
        let state = State { removal: None, ..*state };
        let retried = State { removal: Some(RETRY), ..state };
        if !self.rules.is_removal_due(&state.shown_request.unwrap_or(present)) {
            moves.fair("a removal is not due any more", state);
        } else if state.shown_request.is_some() {
            moves.fair("a removal of an old version is refused", retried);
        } else if present.end.is_none() {
            return Err("a request is removed that has not ended".to_owned());
        } else {
            moves.fair("the request is removed", State { request: None, ..state });
            moves.other("a removal is lost", retried);
        }
        Ok(())
    }
}

/// Checks that a request that ends now has a reason to, whatever the caches show.
fn check_end(state: &State, before: &Request, written: &State) -> Result<(), String> {
    let after = written.request.and_then(|request| request.end).filter(|_| before.end.is_none());
    let Some(end) = after else { return Ok(()) };
    let phase = state.pod.phase;
    let is_right = match end.by {
        "PodDeleted" => before.is_taken_up && !phase.exists(),
        "PodTerminated" => phase == Phase::Terminal || !phase.exists(),
        "NoRequesters" => before.requesters == 0,
        "RequestDeleted" => before.is_deleted,
        _ => !before.is_taken_up && (!phase.exists() || state.pod.in_group),
    };
    if is_right { Ok(()) } else { Err(format!("a request ends with {} and the pod is {phase:?}", end.by)) }
}

impl State {
    fn with_pod(self, phase: Phase) -> Self {
        self.change_pod(Pod { phase, ..self.pod })
    }
}

impl Moves {
    fn fair(&mut self, name: &'static str, to: State) {
        self.found.push(Move { name, to: to.canonical(), is_fair: true });
    }

    fn other(&mut self, name: &'static str, to: State) {
        self.found.push(Move { name, to: to.canonical(), is_fair: false });
    }

    fn caches(&mut self, state: &State) {
        if state.shown_request.is_some() {
            self.fair("the cache shows the request", state.show_request());
        }
        if state.shown_pod.is_some() {
            self.fair("the cache shows the pod", state.show_pod(true));
            if !state.pod.phase.exists() {
                self.other("a list shows that the pod is gone", state.show_pod(false));
            }
        } else if state.pod.phase.exists() {
            let missed = Pod { phase: Phase::Gone, has_label: false, in_group: false };
            self.other("a list misses the pod", State { shown_pod: Some(missed), is_queued: true, ..*state });
        }
    }

    fn pod(&mut self, state: &State) {
        let phase = state.pod.phase;
        if phase == Phase::Running {
            self.other("the pod is deleted", state.with_pod(Phase::Terminating(GRACE)));
            self.other("the pod ends", state.with_pod(Phase::Terminal));
        }
        if phase.exists() {
            let gone = state.with_pod(Phase::Gone);
            let is_fair = matches!(phase, Phase::Terminating(_));
            self.found.push(Move { name: "the pod is gone", to: gone.canonical(), is_fair });
            if !state.pod.has_label {
                let pod = Pod { has_label: true, ..state.pod };
                self.other("the pod gets a label", state.change_pod(pod));
            }
        }
        if phase == Phase::Gone {
            self.other("another pod has its name", state.with_pod(Phase::Replaced));
        }
    }

    fn restart(&mut self, state: &State) {
        self.other("the controller begins anew", state.restart());
    }
}
