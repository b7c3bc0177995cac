//! What to do about one request whose turn is ours, from the pod, its budgets, what was tried, and the time. Pure.

use std::time::Duration;

use drydock_api::eviction_request::refusal::{self, RefusedBy};
use drydock_runtime::queue::Backoff;
use drydock_runtime::{ObjectKey, Pod};
use jiff::Timestamp;

use super::answer::Answer;
use super::gate::Gate;
use crate::report::News;

/// Backoff after answers that block (KEP-4563: up to about 15 minutes).
const BLOCKED: Backoff = Backoff { first: Duration::from_secs(5), max: Duration::from_secs(900) };
/// Backoff after lost races.
const RACE: Backoff = Backoff { first: Duration::from_millis(200), max: Duration::from_secs(10) };
/// How long an accepted eviction may take to show in the cache before it is sent again.
const SHOWS_WITHIN: Duration = Duration::from_secs(30);

/// What was tried for a request. Lost at a restart, but for the number of retries, which stands in the message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tried {
    /// Evictions that were blocked.
    pub(crate) retries: u32,
    /// What blocked the last of them, and how many it blocked in a row.
    blocked: Option<(&'static str, u32)>,
    /// Races lost in a row.
    races: u32,
    /// The last answer.
    pub(crate) last: Option<Answer>,
    /// When it came.
    at: Option<Timestamp>,
    /// What the cache knew of the budgets when it was asked for.
    asked_at: Option<Gate>,
}

impl Tried {
    /// What an earlier process wrote into the message.
    pub(crate) fn from_message(message: &str) -> Self {
        let retries = refusal::read(message).map_or(0, |refusal| refusal.retries);
        Self { retries, ..Self::default() }
    }

    /// Takes in an answer; `asked_at` is what the cache knew of the budgets when it was asked for.
    pub(crate) fn learn(&mut self, answer: Answer, asked_at: Gate, now: Timestamp) {
        self.races = if answer == Answer::TryAgain { self.races.saturating_add(1) } else { 0 };
        if answer.blocks() {
            self.retries = self.retries.saturating_add(1);
            let before =
                self.blocked.filter(|(what, _)| *what == answer.kind()).map_or(0, |(_, times)| times);
            self.blocked = Some((answer.kind(), before.saturating_add(1)));
        } else if matches!(answer, Answer::Accepted | Answer::Gone) {
            self.blocked = None;
        }
        self.asked_at = Some(asked_at);
        self.at = Some(now);
        self.last = Some(answer);
    }

    /// Takes in how the budgets stand: what was once otherwise has changed, though it be as it was again.
    pub(crate) fn look(&mut self, gate: &Gate) {
        self.asked_at.take_if(|asked_at| asked_at != gate);
    }

    /// When to try again, unless a budget's change comes first. An answer from the future came before the clock was set
    /// back, nobody knows how long before: it holds nothing up.
    fn next(&self, gate: &Gate, now: Timestamp) -> Option<Timestamp> {
        let (last, at) = (self.last.as_ref()?, self.at.filter(|at| *at <= now)?);
        let delay = match last {
            Answer::Accepted | Answer::Gone => SHOWS_WITHIN,
            Answer::TryAgain => RACE.delay(self.races.saturating_sub(1)),
            Answer::Throttled(after) => after.unwrap_or(Duration::from_secs(1)),
            // Known to allow nothing: asked again when it opens, and once in a while to be sure.
            Answer::Budget(_) | Answer::ManyBudgets if gate.is_closed() => BLOCKED.max,
            // By what blocks now: many refusals of a budget do not make a webhook's first one last a quarter of an hour.
            _ => BLOCKED.delay(self.blocked.map_or(0, |(_, times)| times.saturating_sub(1))),
        };
        at.checked_add(delay).ok()
    }

    /// Whether budgets that refused are open and not as they were when they were asked. The state that refused need not
    /// have been seen: the cache learns of it after the refusal, or never if its watch broke off meanwhile.
    fn has_opened(&self, gate: &Gate) -> bool {
        self.is_kept_by_budgets() && !gate.is_closed() && self.asked_at.as_ref() != Some(gate)
    }

    /// Whether a change of a budget may help.
    pub(crate) fn is_kept_by_budgets(&self) -> bool {
        matches!(self.last, Some(Answer::Budget(_) | Answer::ManyBudgets))
    }
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// What to report, if anything is to be.
    pub(crate) news: Option<News>,
    /// Whether to ask the host for an eviction.
    pub(crate) ask: bool,
    /// When to look again, if nothing changes before.
    pub(crate) wake: Option<Timestamp>,
}

/// Plans. `pod` is none when the pod is gone or terminal.
pub(crate) fn plan(pod: Option<&Pod>, gate: &Gate, tried: &Tried, now: Timestamp) -> Plan {
    let Some(pod) = pod else {
        let news = News { message: "The pod has terminated.".to_owned(), completed: true, ..News::default() };
        return Plan { news: Some(news), ..Plan::default() };
    };
    if let Some(owner) = left_to(pod) {
        let what = if pod.is_mirror() { "mirror" } else { "DaemonSet" };
        let message = format!(
            "API-initiated eviction of {what} pods is not supported. {owner} stays responsible, and acts when \
             the drain targets of node {} cover the pod.",
            pod.node_name
        );
        return say(message);
    }
    if pod.is_terminating() {
        return Plan { news: Some(terminating(pod, now)), ..Plan::default() };
    }
    match tried.next(gate, now) {
        Some(next) if next > now && !tried.has_opened(gate) => {
            Plan { news: news_of(tried, gate), ask: false, wake: Some(next) }
        }
        _ => Plan { news: news_of(tried, gate), ask: true, wake: None },
    }
}

/// Who is responsible for a pod that the eviction API is not for.
fn left_to(pod: &Pod) -> Option<&'static str> {
    if pod.is_mirror() {
        Some("kubelet.k8s.io")
    } else {
        pod.is_daemon_set_pod().then_some("daemonset.apps.k8s.io")
    }
}

fn say(message: String) -> Plan {
    Plan { news: Some(News { message, ..News::default() }), ..Plan::default() }
}

fn terminating(pod: &Pod, now: Timestamp) -> News {
    let ends = pod.deletion_timestamp;
    let message = match ends {
        Some(ends) if ends <= now && !pod.finalizers.is_empty() => format!(
            "The pod is terminating and past its grace period; it has the finalizers {}.",
            pod.finalizers.join(", ")
        ),
        Some(ends) if ends <= now => "The pod is terminating and past its grace period.".to_owned(),
        _ => "The pod is terminating.".to_owned(),
    };
    News { message, expected_finish: ends, completed: false }
}

/// What to tell of the last answer. Lost races and throttling are nothing to tell.
fn news_of(tried: &Tried, gate: &Gate) -> Option<News> {
    let last = tried.last.as_ref()?;
    let why = match (last, gate) {
        (Answer::Accepted, _) => {
            return Some(News { message: "The eviction was accepted.".to_owned(), ..News::default() });
        }
        (Answer::Gone | Answer::TryAgain | Answer::Throttled(_), _) if tried.retries == 0 => return None,
        (Answer::Gone | Answer::TryAgain | Answer::Throttled(_), _) => None,
        (Answer::Budget(_) | Answer::ManyBudgets, Gate::Closed { why, .. }) => {
            Some((RefusedBy::Budget, why.clone()))
        }
        (Answer::Budget(words), _) => Some((RefusedBy::Budget, words.clone())),
        (Answer::ManyBudgets, _) => Some((RefusedBy::Budget, many(gate))),
        (Answer::Admission(words), _) => Some((RefusedBy::Admission, words.clone())),
        (Answer::Refused(words), _) => Some((RefusedBy::ApiServer, words.clone())),
    };
    let why = why.as_ref().map(|(by, words)| (*by, words.as_str()));
    Some(News { message: refusal::message(tried.retries, why), ..News::default() })
}

fn many(gate: &Gate) -> String {
    let which = match gate {
        Gate::Many(budgets) => format!(" ({})", some(budgets)),
        _ => String::new(),
    };
    format!(
        "more than one PodDisruptionBudget covers the pod{which}, which the eviction API does not support"
    )
}

/// Names the budgets that were found; there may be more.
pub(crate) fn some([first, second]: &[ObjectKey; 2]) -> String {
    format!("{} and {} at least", first.name, second.name)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
