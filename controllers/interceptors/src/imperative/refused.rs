//! An eviction that was refused: what is said of it to people and to programs. Pure.

use drydock_api::eviction_request::Blocked;
use drydock_api::eviction_request::blocked::{
    ADMISSION_WEBHOOK, MAX_NAME, OTHER, POD_DISRUPTION_BUDGET, SEVERAL_BUDGETS, SHORT_NOW,
};
use drydock_api::eviction_request::refusal::{self, RefusalSource};
use drydock_runtime::ObjectKey;

use super::answer::{Answer, named_budget, named_webhook};
use super::gate::Gate;

/// The last refusal. Races that are lost and evictions that are throttled after it change nothing of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refused {
    answer: Answer,
    /// How many in a row were of this kind.
    pub(super) in_a_row: u32,
    /// What the cache knew of the budget then, with its numbers.
    why: Option<(ObjectKey, String)>,
    /// The budgets that were last seen to cover the pod together.
    several: Option<[ObjectKey; 2]>,
    /// The budget that was last seen closed, and its state.
    closed: Option<(ObjectKey, &'static str)>,
}

impl Refused {
    /// The refusal that `answer` is, after another one.
    pub(super) fn new(answer: &Answer, asked_at: &Gate, before: Option<Self>) -> Self {
        let in_a_row =
            before.as_ref().filter(|before| before.answer.kind() == answer.kind()).map_or(0, |b| b.in_a_row);
        let why = match asked_at {
            Gate::Closed { budget, why, .. } => Some((budget.key.clone(), why.clone())),
            _ => None,
        };
        let several = before.as_ref().and_then(|before| before.several.clone());
        // One that had room when it was asked is not in its old state any more, whatever that was.
        let closed = before.and_then(|before| before.closed).filter(|_| asked_at.is_closed());
        let in_a_row = in_a_row.saturating_add(1);
        let mut refused = Self { answer: answer.clone(), in_a_row, why, several, closed };
        refused.update(asked_at);
        refused
    }

    /// Takes in how the budgets stand.
    pub(super) fn update(&mut self, gate: &Gate) {
        match gate {
            Gate::Closed { budget, state, .. } => self.closed = Some((budget.key.clone(), state)),
            Gate::Many(budgets) => self.several = Some(budgets.clone()),
            Gate::Open(_) => {}
        }
    }

    /// The message of the status: the numbers are those of the refusal.
    pub(super) fn message(&self, retries: u32, gate: &Gate) -> String {
        let (by, words) = self.why(gate);
        refusal::message(retries, by, &words)
    }

    /// What an event says: as the message, without the number of retries.
    pub(super) fn cause(&self, gate: &Gate) -> String {
        let (by, words) = self.why(gate);
        refusal::cause(by, &words)
    }

    /// Who refuses, and in which words: of the same budgets as [`Refused::blocked`] names.
    fn why(&self, gate: &Gate) -> (RefusalSource, String) {
        match (&self.answer, gate) {
            (Answer::Admission(words), _) => (RefusalSource::Admission, words.clone()),
            (Answer::Refused(words), _) => (RefusalSource::ApiServer, words.clone()),
            (_, Gate::Many(budgets)) => (RefusalSource::Budget, several(Some(budgets))),
            (Answer::Budget(words), Gate::Closed { budget, why, .. }) => {
                let same = self.why.as_ref().filter(|(key, _)| *key == budget.key).map(|(_, why)| why);
                let by_host = Some(words).filter(|words| named_budget(words) == &*budget.key.name);
                (RefusalSource::Budget, same.or(by_host).unwrap_or(why).clone())
            }
            (Answer::Budget(words), _) => {
                (RefusalSource::Budget, self.why.as_ref().map_or(words, |(_, why)| why).clone())
            }
            // The one that is left.
            (_, Gate::Closed { why, .. }) => (RefusalSource::Budget, why.clone()),
            _ => (RefusalSource::Budget, several(self.several.as_ref())),
        }
    }

    /// For programs: which one refuses, and in what way; without the time.
    pub(super) fn blocked(&self, gate: &Gate) -> Blocked {
        let (reason, name, state) = match (&self.answer, gate) {
            (Answer::Admission(words), _) => (ADMISSION_WEBHOOK, named_webhook(words).to_owned(), ""),
            (Answer::Refused(_), _) => (OTHER, String::new(), ""),
            (_, Gate::Many(budgets)) => (POD_DISRUPTION_BUDGET, joined(budgets), SEVERAL_BUDGETS),
            (_, Gate::Closed { budget, state, .. }) => {
                (POD_DISRUPTION_BUDGET, budget.key.name.to_string(), *state)
            }
            (Answer::ManyBudgets, Gate::Open(_)) => {
                let names = self.several.as_ref().map(joined).unwrap_or_default();
                (POD_DISRUPTION_BUDGET, names, SEVERAL_BUDGETS)
            }
            // It has room, and the next eviction may take it; or the cache does not have it yet.
            (Answer::Budget(words), Gate::Open(_)) => {
                let name =
                    gate.budget().map_or_else(|| named_budget(words).to_owned(), |key| key.name.to_string());
                let closed = self.closed.as_ref().filter(|(key, _)| *key.name == *name);
                (POD_DISRUPTION_BUDGET, name, closed.map_or(SHORT_NOW, |(_, state)| state))
            }
            _ => (OTHER, String::new(), ""),
        };
        let name = name.chars().take(MAX_NAME).collect();
        Blocked { reason: reason.to_owned(), name, state: state.to_owned(), since_time: None }
    }
}

fn joined([first, second]: &[ObjectKey; 2]) -> String {
    format!("{},{}", first.name, second.name)
}

fn several(budgets: Option<&[ObjectKey; 2]>) -> String {
    refusal::several_budgets_refusal(budgets.map(|[first, second]| (&*first.name, &*second.name)))
}
