//! The shipping step, from small events to small effects. Each step is taken once and remembered.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use drydock_runtime::exploration::Memo;
use drydock_runtime::{ObjectKey, Pod, PodDisruptionBudget};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::super::budget_check::{BudgetCheck, check, released_pods};
use super::super::budget_waiters::BudgetWaiters;
use super::super::eviction_result::EvictionResult;
use super::super::machine::{EvictionEvent, PodAndBudgets, Sending, step};
use super::super::next_step::next_step;
use super::super::testing;
use super::state::{Answer, Budget, Phase, Seen};

/// The time of every step.
const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
/// A budget that is known to allow nothing is not asked for this long.
pub(super) const LONGEST: SignedDuration = SignedDuration::from_secs(900);
/// The pods, and the UIDs that name their requests.
const PODS: [&str; 2] = ["p0", "p1"];
/// The version of the budget that the cache shows, and all those before.
const VERSIONS: [&str; 2] = ["present", "old"];

/// An event about one of the requests, or about the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Small {
    Seen(usize, Seen),
    Left(usize),
    Taken {
        request: usize,
        seen: Option<Seen>,
        may_write: bool,
    },
    Answered(usize, Option<(Answer, Seen)>),
    /// The cache shows another version of the budget.
    Shown(Budget, Budget),
    /// The request gets older by so many milliseconds.
    Older(usize, i64),
}

/// What follows from an event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SmallEffects {
    pub(super) submits: bool,
    pub(super) waits: bool,
    /// Milliseconds.
    pub(super) wake: Option<i64>,
    pub(super) send: Option<Sending>,
    /// The requests that are queued.
    pub(super) queue: [bool; 2],
}

type Taken = Result<(usize, SmallEffects), String>;

/// All states of the waiting requests that were found, by number; 0 is the empty one.
pub(super) struct Steps {
    found: RefCell<Vec<BudgetWaiters>>,
    numbers: RefCell<HashMap<String, usize>>,
    taken: Memo<(usize, Small), Taken>,
    wakes_late: bool,
}

impl Steps {
    pub(super) fn new(wakes_late: bool) -> Self {
        let steps = Self {
            found: RefCell::default(),
            numbers: RefCell::default(),
            taken: Memo::default(),
            wakes_late,
        };
        steps.number(BudgetWaiters::default());
        steps
    }

    fn number(&self, mut waiters: BudgetWaiters) -> usize {
        let form = waiters.canonical(NOW);
        let mut found = self.found.borrow_mut();
        let number = *self.numbers.borrow_mut().entry(form).or_insert(found.len());
        if number == found.len() {
            found.push(waiters);
        }
        number
    }

    pub(super) fn take(&self, from: usize, event: Small) -> Taken {
        self.taken.value_of((from, event), || {
            let waiters = self.found.borrow()[from].clone();
            self.take_anew(waiters, event)
        })
    }

    fn take_anew(&self, mut waiters: BudgetWaiters, small: Small) -> Taken {
        let of_request = match small {
            Small::Older(request, by) => {
                waiters.pass(&key(request), SignedDuration::from_millis(by));
                return Ok((self.number(waiters), SmallEffects::default()));
            }
            Small::Shown(..) => None,
            Small::Seen(request, _)
            | Small::Left(request)
            | Small::Taken { request, .. }
            | Small::Answered(request, _) => Some(request),
        };
        let key = of_request.map_or_else(|| ObjectKey::new("ns", "b"), key);
        let seen = match small {
            Small::Seen(request, seen) | Small::Taken { request, seen: Some(seen), .. } => {
                Some(objects(request, seen))
            }
            _ => None,
        };
        let event = match (small, &seen) {
            (Small::Seen(..), Some(seen)) => EvictionEvent::Seen { seen, pod: &key.name, owes_report: false },
            (Small::Taken { may_write, .. }, seen) => EvictionEvent::Taken { seen: seen.as_ref(), may_write },
            (Small::Answered(request, answer), _) => {
                let result = answer.map(|(answer, seen)| (result(answer), objects(request, seen).check));
                EvictionEvent::Answered { result }
            }
            (Small::Shown(old, new), _) => {
                waiters.outdate(VERSIONS[1]);
                let released_pods = released_pods(budget(old, true).as_ref(), budget(new, true).as_ref());
                EvictionEvent::BudgetChanged { has_evicted: false, released_pods, at: Instant::now() }
            }
            _ => EvictionEvent::Left,
        };
        let mut effects = step(&mut waiters, &key, event, NOW);
        if self.wakes_late {
            effects.wake = effects.wake.map(|wake| wake + SignedDuration::from_secs(1));
        }
        if let (Small::Seen(..), Some(seen)) = (small, &seen) {
            check_wake(&mut waiters, &key, seen, effects.wake)?;
        }
        if let (Some(Sending::Evict), Some(seen)) = (effects.send, &seen) {
            check_sending(&mut waiters, &key, seen)?;
        }
        let wake = effects.wake.map(|wake| wake.duration_since(NOW).as_millis());
        let wake = wake.map(|wake| i64::try_from(wake).map_err(|e| e.to_string())).transpose()?;
        let mut queue = [false; 2];
        effects.queue.iter().for_each(|(key, _)| queue[usize::from(*key.name != *PODS[0])] = true);
        let (submits, waits, send) = (effects.submit.is_some(), effects.waits, effects.send);
        Ok((self.number(waiters), SmallEffects { submits, waits, wake, send, queue }))
    }
}

/// A step that waits has nothing to ask before its wake-up.
fn check_wake(
    waiters: &mut BudgetWaiters,
    key: &ObjectKey,
    seen: &PodAndBudgets,
    wake: Option<Timestamp>,
) -> Result<(), String> {
    if waiters.is_asking(key) {
        return Ok(());
    }
    let attempts = &waiters.track(key).attempts;
    let delays = [200, 400, 1000, 5000, 10_000, 30_000, 900_000, 86_400_000];
    let since = attempts.at.into_iter().chain([NOW]);
    let times = since.flat_map(|since| delays.map(|delay| since + Duration::from_millis(delay)));
    let mut before = times.filter(|then| *then > NOW && wake.is_none_or(|wake| *then < wake));
    match before.find(|then| next_step(seen.pod.as_deref(), &seen.check, attempts, *then).ask) {
        Some(then) => Err(format!("a wake-up is late: it is at {wake:?}, and the eviction is due at {then}")),
        None => Ok(()),
    }
}

/// What may be evicted, found anew without the code that ships.
fn check_sending(waiters: &mut BudgetWaiters, key: &ObjectKey, seen: &PodAndBudgets) -> Result<(), String> {
    if seen.pod.as_ref().is_none_or(|pod| pod.is_terminating()) {
        return Err("a pod is evicted that is terminating".to_owned());
    }
    let attempts = &waiters.track(key).attempts;
    let is_known = attempts.is_kept_by_budgets() && seen.check.refuses();
    if is_known && attempts.at.is_some_and(|at| NOW.duration_since(at) < LONGEST) {
        return Err("a pod is evicted whose budget is known to allow nothing".to_owned());
    }
    Ok(())
}

fn key(request: usize) -> ObjectKey {
    ObjectKey::new("ns", PODS[request])
}

/// What the caches show.
fn objects(request: usize, seen: Seen) -> PodAndBudgets {
    let pod = match seen.pod {
        Phase::Running => Some(testing::pod(PODS[request])),
        Phase::Terminating => Some(Pod {
            // It is overdue, so that nothing is awaited but its end.
            deletion_timestamp: Some(NOW - SignedDuration::from_secs(30)),
            ..testing::pod(PODS[request])
        }),
        Phase::Gone => None,
    };
    let covering = budget(seen.budget, seen.is_present).filter(|_| seen.pod == Phase::Running);
    let covering: Vec<_> = covering.map(Arc::new).into_iter().collect();
    let check = pod.as_ref().map_or(BudgetCheck::Allows(None), |pod| check(pod, &covering));
    PodAndBudgets { pod: pod.map(Arc::new), check }
}

/// Whether two reads of the budget differ, as the reconciler sees it.
pub(super) fn differ(request: usize, a: Seen, b: Seen) -> bool {
    objects(request, a).check != objects(request, b).check
}

fn budget(state: Budget, is_present: bool) -> Option<PodDisruptionBudget> {
    let version = VERSIONS[usize::from(!is_present)];
    match state {
        Budget::Absent => None,
        Budget::Closed => Some(testing::budget("b", version, 0)),
        Budget::Open => Some(testing::budget("b", version, 1)),
    }
}

fn result(answer: Answer) -> EvictionResult {
    match answer {
        Answer::Accepted => EvictionResult::Accepted,
        Answer::Gone => EvictionResult::Gone,
        Answer::Budget => EvictionResult::Budget("The disruption budget b needs 1".into()),
        Answer::Again => EvictionResult::TryAgain,
        Answer::Unclear => EvictionResult::Unclear,
        Answer::Throttled => EvictionResult::Throttled(None),
        Answer::Denied => EvictionResult::Admission("admission webhook \"w\" denied the request: no".into()),
    }
}
