//! The moves of the small world. The first request meets every mishap; the second one is there to be left out.

use drydock_runtime::exploration::{Move, SmallWorld};

use super::super::machine::Sending;
use super::state::{Answer, Budget, Phase, Seen, State};
use super::steps::{LONGEST, Small, SmallEffects, Steps, differ};

/// A fault that is put in, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A wake-up is not put into the queue.
    WakeUpIsDropped,
    /// A wake-up is a second late.
    WakeUpIsLate,
    /// A request that gets a disruption which another leaves is not queued.
    DisruptionIsNotPassedOn,
    /// A budget that changes before a request waits for it is not noticed.
    ChangeIsNotNoticed,
    /// An eviction without an answer counts as one that was not sent.
    LostAnswerIsARace,
    /// So does one that is not sent again because the lease is in doubt.
    DoubtIsARace,
}

/// What a search lets happen: all of it at once has too many states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// One request, two mishaps, caches that lag, and events between what a worker reads and decides.
    Alone,
    /// Two requests and one mishap. The cache of the budget alone lags.
    Pair,
}

pub(super) struct ImperativeWorld {
    pub(super) scope: Scope,
    pub(super) steps: Steps,
    pub(super) fault: Option<Fault>,
}

type Moves = Vec<Move<State>>;

impl SmallWorld for ImperativeWorld {
    type State = State;

    fn starts(&self) -> Vec<State> {
        let starts = [Budget::Absent, Budget::Closed, Budget::Open].map(State::new);
        let without_second = |state: State| state.with(1, |it| (it.is_wanted, it.is_queued) = (false, false));
        if self.scope == Scope::Alone { starts.map(without_second).into() } else { starts[1..].to_vec() }
    }

    fn moves(&self, state: &State) -> Result<Moves, String> {
        let mut moves = Vec::new();
        if self.is_at_rest(state) {
            return Ok(moves);
        }
        self.budget(state, &mut moves)?;
        for request in 0..2 {
            self.pod(state, request, &mut moves);
            self.look(state, request, &mut moves)?;
            self.evict(state, request, &mut moves)?;
        }
        other(&mut moves, "the process begins anew", state.restart());
        moves.retain(|to| to.to.mishaps <= self.most_mishaps());
        Ok(moves)
    }

    fn is_at_rest(&self, state: &State) -> bool {
        state.requests.iter().all(|it| it.pod == Phase::Gone || !it.is_wanted)
    }
}

impl ImperativeWorld {
    /// Whether caches of pods lag, and events come between what a worker reads and decides.
    fn lags(&self) -> bool {
        self.scope == Scope::Alone
    }

    fn most_mishaps(&self) -> u8 {
        if self.scope == Scope::Alone { 2 } else { 1 }
    }

    fn budget(&self, state: &State, moves: &mut Moves) -> Result<(), String> {
        if state.shown.is_some() {
            fair(moves, "the cache shows the budget", self.show_budget(*state)?);
        }
        let changes = [
            ("the budget opens", Budget::Open, true),
            ("the budget closes", Budget::Closed, false),
            ("the budget is deleted", Budget::Absent, false),
        ];
        for (name, budget, is_fair) in changes
            .into_iter()
            .filter(|(_, budget, _)| *budget != state.budget && (self.lags() || *budget != Budget::Absent))
        {
            let to = self.change_budget(*state, budget)?;
            if is_fair && state.budget == Budget::Closed {
                fair(moves, name, to)
            } else {
                other(moves, name, to)
            }
        }
        Ok(())
    }

    fn change_budget(&self, mut state: State, budget: Budget) -> Result<State, String> {
        if state.shown.is_some() {
            state = self.show_budget(state)?;
        }
        state.shown = Some(state.budget);
        state.budget = budget;
        Ok(state)
    }

    fn show_budget(&self, mut state: State) -> Result<State, String> {
        let Some(old) = state.shown.take() else { return Ok(state) };
        state.outdate();
        Ok(self.step(state, Small::Shown(old, state.budget))?.0)
    }

    fn pod(&self, state: &State, request: usize, moves: &mut Moves) {
        let it = state.requests[request];
        match it.pod {
            Phase::Running if request == 0 => {
                other(
                    moves,
                    "others delete the pod",
                    state.with_pod(request, Phase::Terminating, self.lags()),
                );
            }
            Phase::Terminating => {
                fair(moves, "the pod is gone", state.with_pod(request, Phase::Gone, self.lags()))
            }
            _ => {}
        }
        if it.shown_pod.is_some() {
            let shown = |it: &mut super::state::Request| {
                it.shown_pod = None;
                it.is_queued |= it.is_wanted;
            };
            fair(moves, "the cache shows the pod", state.with(request, shown));
        }
        if request == 0 {
            let name = if it.is_wanted { "the request is withdrawn" } else { "the request is wanted again" };
            let changed = |it: &mut super::state::Request| {
                it.is_wanted = !it.is_wanted;
                it.is_queued = true;
            };
            let to = state.with(request, changed);
            // Each is a mishap once.
            if it.is_wanted { other(moves, name, to) } else { moves.push(Move { name, to, is_fair: false }) }
        }
    }

    /// A worker takes a request from the queue, reads the caches, and decides.
    fn look(&self, state: &State, request: usize, moves: &mut Moves) -> Result<(), String> {
        let it = state.requests[request];
        if let Some(seen) = it.read {
            let (after, effects) =
                self.step(state.with(request, |it| it.read = None), Small::Seen(request, seen))?;
            fair(moves, "the worker decides", self.after_look(after, request, seen, effects)?);
        } else if it.is_queued {
            let taken = state.with(request, |it| it.is_queued = false);
            match taken.read(request) {
                Some(seen) if !self.lags() => {
                    let (after, effects) = self.step(taken, Small::Seen(request, seen))?;
                    fair(
                        moves,
                        "a worker reads and decides",
                        self.after_look(after, request, seen, effects)?,
                    );
                }
                Some(seen) => {
                    fair(moves, "a worker reads the caches", taken.with(request, |it| it.read = Some(seen)));
                }
                None => {
                    let (left, _) = self.step(taken, Small::Left(request))?;
                    let is_forgotten = !it.is_pooled && it.in_flight.is_none();
                    let forget = |it: &mut super::state::Request| {
                        it.wake = None;
                        it.is_accepted &= !is_forgotten;
                    };
                    fair(moves, "the request is left alone", left.with(request, forget));
                }
            }
        }
        if let Some(wake) = it.wake {
            let (older, _) = self.step(*state, Small::Older(request, wake))?;
            let to = older.with(request, |it| (it.wake, it.is_queued) = (None, true));
            // The budget's change wakes before: without it the request would be stuck for a quarter of an hour.
            moves.push(Move { name: "its time comes", to, is_fair: i128::from(wake) < LONGEST.as_millis() });
        }
        Ok(())
    }

    fn after_look(
        &self,
        mut state: State,
        request: usize,
        seen: Seen,
        effects: SmallEffects,
    ) -> Result<State, String> {
        let it = &mut state.requests[request];
        if effects.submits && (it.is_pooled || it.in_flight.is_some()) {
            return Err("an eviction is put into the pool while one is queued or in flight".to_owned());
        }
        it.is_pooled |= effects.submits;
        it.wake = effects.wake.filter(|_| self.fault != Some(Fault::WakeUpIsDropped));
        let now = state.read(request);
        let has_changed = effects.waits && now.is_some_and(|now| differ(request, now, seen));
        let is_noticed = has_changed && self.fault != Some(Fault::ChangeIsNotNoticed);
        Ok(state.with(request, |it| it.is_queued |= is_noticed))
    }

    /// The eviction of a request leaves the pool, is sent, and is answered.
    fn evict(&self, state: &State, request: usize, moves: &mut Moves) -> Result<(), String> {
        let it = state.requests[request];
        if let Some((answer, seen)) = it.in_flight {
            let landed = state.with(request, |it| it.in_flight = None);
            let (answered, _) = self.step(landed, Small::Answered(request, Some((answer, seen))))?;
            fair(moves, "the answer comes", answered);
        }
        if !it.is_pooled {
            return Ok(());
        }
        let taken = state.with(request, |it| it.is_pooled = false);
        let seen = state.read(request);
        if request == 0 && seen.is_some() {
            self.doubt(taken, request, seen, moves)?;
        }
        let (taken, effects) = self.step(taken, Small::Taken { request, seen, may_write: true })?;
        let (Some(sending), Some(seen)) = (effects.send, seen) else {
            let (back, _) = self.step(taken, Small::Answered(request, None))?;
            fair(moves, "the eviction is not due any more", back);
            return Ok(());
        };
        let answers = |state: State, answer| state.with(request, |it| it.in_flight = Some((answer, seen)));
        let is_leaving = it.pod != Phase::Running;
        if sending == Sending::LookFirst {
            if request == 0 {
                other(moves, "a live read fails", answers(taken, Answer::Unclear));
            }
            if is_leaving {
                let found = if it.pod == Phase::Gone { Answer::Gone } else { Answer::Accepted };
                fair(moves, "a live read finds the pod leaving", answers(taken, found));
                return Ok(());
            }
        } else if it.is_accepted && it.pod == Phase::Terminating {
            return Err("a pod is evicted twice".to_owned());
        }
        self.send(taken, request, seen, moves)
    }

    /// The eviction leaves the pool while the lease is in doubt.
    fn doubt(
        &self,
        state: State,
        request: usize,
        seen: Option<Seen>,
        moves: &mut Moves,
    ) -> Result<(), String> {
        let (taken, effects) = self.step(state, Small::Taken { request, seen, may_write: false })?;
        if let (Some(Sending::NotNow { is_unclear }), Some(seen)) = (effects.send, seen) {
            let is_unclear = is_unclear && self.fault != Some(Fault::DoubtIsARace);
            let answer = if is_unclear { Answer::Unclear } else { Answer::Again };
            let to = taken.with(request, |it| it.in_flight = Some((answer, seen)));
            other(moves, "the lease is in doubt", to);
        }
        Ok(())
    }

    /// The host gets the eviction.
    fn send(&self, state: State, request: usize, seen: Seen, moves: &mut Moves) -> Result<(), String> {
        let answers = |state: State, answer| state.with(request, |it| it.in_flight = Some((answer, seen)));
        let pod = state.requests[request].pod;
        let (answer, after) = match (pod, state.budget) {
            (Phase::Gone, _) => (Answer::Gone, state),
            (Phase::Terminating, _) => (Answer::Accepted, state),
            (Phase::Running, Budget::Closed) => (Answer::Budget, state),
            (Phase::Running, budget) => {
                let evicted = state.with_pod(request, Phase::Terminating, self.lags());
                let evicted = evicted.with(request, |it| it.is_accepted = true);
                let is_open = budget == Budget::Open;
                let evicted = if is_open { self.change_budget(evicted, Budget::Closed)? } else { evicted };
                (Answer::Accepted, evicted)
            }
        };
        // The change of the budget may have been shown meanwhile.
        fair(moves, "the host answers", answers(after, answer));
        if request == 0 {
            let lost = match self.fault {
                Some(Fault::LostAnswerIsARace) => Answer::Again,
                _ => Answer::Unclear,
            };
            other(moves, "the answer is lost", answers(after, lost));
            other(moves, "the host fails", answers(state, lost));
            other(moves, "a race is lost", answers(state, Answer::Again));
            other(moves, "the host asks to send less", answers(state, Answer::Throttled));
            other(moves, "a webhook denies it", answers(state, Answer::Denied));
        }
        Ok(())
    }

    /// Takes a step of the shipping code, and queues what it wakes.
    fn step(&self, mut state: State, event: Small) -> Result<(State, SmallEffects), String> {
        let (waiters, effects) = self.steps.take(state.waiters, event)?;
        state.waiters = waiters;
        let own = match event {
            Small::Answered(request, _) => Some(request),
            _ => None,
        };
        let is_lost =
            self.fault == Some(Fault::DisruptionIsNotPassedOn) && !matches!(event, Small::Shown(..));
        for request in 0..2 {
            let is_queued = effects.queue[request] && (own == Some(request) || !is_lost);
            state.requests[request].is_queued |= is_queued;
        }
        Ok((state, effects))
    }
}

fn fair(moves: &mut Moves, name: &'static str, to: State) {
    moves.push(Move { name, to, is_fair: true });
}

/// A mishap.
fn other(moves: &mut Moves, name: &'static str, to: State) {
    moves.push(Move { name, to: State { mishaps: to.mishaps + 1, ..to }, is_fair: false });
}
