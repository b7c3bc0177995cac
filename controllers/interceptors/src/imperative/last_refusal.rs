//! The last refusal of an eviction: its message for people and its `blocked` for programs. Pure.

use drydock_api::eviction_request::Blocked;
use drydock_api::eviction_request::limits::blocked_name;
use drydock_api::reasons::{ADMISSION_WEBHOOK, OTHER, POD_DISRUPTION_BUDGET, SEVERAL_BUDGETS, SHORT_NOW};
use drydock_runtime::ObjectKey;
use drydock_runtime::refusal::{self, RefusalSource};

use super::budget_check::BudgetCheck;
use super::eviction_result::{EvictionResult, named_budget, named_webhook};

/// The last refusal of an eviction. Lost races and throttled evictions after it do not change it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LastRefusal {
    result: EvictionResult,
    /// How many refusals in a row were of this kind.
    pub(super) in_a_row: u32,
    /// What the cache knew of the budget when the eviction was sent, with its numbers.
    why: Option<(ObjectKey, String)>,
    /// The budgets that were last seen to cover the pod together.
    several: Option<[ObjectKey; 2]>,
    /// The budget that was last seen to refuse, and its state.
    closed: Option<(ObjectKey, &'static str)>,
}

impl LastRefusal {
    /// The refusal `result`, which comes after `before`.
    pub(super) fn new(result: &EvictionResult, asked_at: &BudgetCheck, before: Option<Self>) -> Self {
        let in_a_row =
            before.as_ref().filter(|before| before.result.kind() == result.kind()).map_or(0, |b| b.in_a_row);
        let why = match asked_at {
            BudgetCheck::Refuses { budget, why, .. } => Some((budget.key.clone(), why.clone())),
            _ => None,
        };
        let several = before.as_ref().and_then(|before| before.several.clone());
        // A budget that allowed a disruption when the eviction was sent is no longer in the state that was
        // recorded before.
        let closed = before.and_then(|before| before.closed).filter(|_| asked_at.refuses());
        let in_a_row = in_a_row.saturating_add(1);
        let mut refused = Self { result: result.clone(), in_a_row, why, several, closed };
        refused.update(asked_at);
        refused
    }

    /// Records the present state of the budgets.
    pub(super) fn update(&mut self, check: &BudgetCheck) {
        match check {
            BudgetCheck::Refuses { budget, state, .. } => self.closed = Some((budget.key.clone(), state)),
            BudgetCheck::Several(budgets) => self.several = Some(budgets.clone()),
            BudgetCheck::Allows(_) => {}
        }
    }

    /// The message for the status, with the budget's numbers at the time of the refusal.
    pub(super) fn message(&self, retries: u32, check: &BudgetCheck) -> String {
        let (by, words) = self.why(check);
        refusal::message(retries, by, &words)
    }

    /// The message for an event: that of the status without the number of retries.
    pub(super) fn cause(&self, check: &BudgetCheck) -> String {
        let (by, words) = self.why(check);
        refusal::cause(by, &words)
    }

    /// Who refuses, and in which words. The budgets are those that [`LastRefusal::blocked`] names.
    fn why(&self, check: &BudgetCheck) -> (RefusalSource, String) {
        match (&self.result, check) {
            (EvictionResult::Admission(words), _) => (RefusalSource::Admission, words.clone()),
            (EvictionResult::Refused(words), _) => (RefusalSource::ApiServer, words.clone()),
            (_, BudgetCheck::Several(budgets)) => (RefusalSource::Budget, several(Some(budgets))),
            (EvictionResult::Budget(words), BudgetCheck::Refuses { budget, why, .. }) => {
                let same = self.why.as_ref().filter(|(key, _)| *key == budget.key).map(|(_, why)| why);
                let by_host = Some(words).filter(|words| named_budget(words) == &*budget.key.name);
                (RefusalSource::Budget, same.or(by_host).unwrap_or(why).clone())
            }
            (EvictionResult::Budget(words), _) => {
                (RefusalSource::Budget, self.why.as_ref().map_or(words, |(_, why)| why).clone())
            }
            // One of the budgets is left.
            (_, BudgetCheck::Refuses { why, .. }) => (RefusalSource::Budget, why.clone()),
            _ => (RefusalSource::Budget, several(self.several.as_ref())),
        }
    }

    /// For programs: what refuses, and in what way; without the time.
    pub(super) fn blocked(&self, check: &BudgetCheck) -> Blocked {
        let (reason, name, state) = match (&self.result, check) {
            (EvictionResult::Admission(words), _) => (ADMISSION_WEBHOOK, named_webhook(words).to_owned(), ""),
            (EvictionResult::Refused(_), _) => (OTHER, String::new(), ""),
            (_, BudgetCheck::Several(budgets)) => (POD_DISRUPTION_BUDGET, joined(budgets), SEVERAL_BUDGETS),
            (_, BudgetCheck::Refuses { budget, state, .. }) => {
                (POD_DISRUPTION_BUDGET, budget.key.name.to_string(), *state)
            }
            (EvictionResult::ManyBudgets, BudgetCheck::Allows(_)) => {
                let names = self.several.as_ref().map(joined).unwrap_or_default();
                (POD_DISRUPTION_BUDGET, names, SEVERAL_BUDGETS)
            }
            // The budget allows a disruption, which the next eviction may use; or the cache does not have the
            // budget yet.
            (EvictionResult::Budget(words), BudgetCheck::Allows(_)) => {
                let name =
                    check.budget().map_or_else(|| named_budget(words).to_owned(), |key| key.name.to_string());
                let closed = self.closed.as_ref().filter(|(key, _)| *key.name == *name);
                (POD_DISRUPTION_BUDGET, name, closed.map_or(SHORT_NOW, |(_, state)| state))
            }
            _ => (OTHER, String::new(), ""),
        };
        Blocked {
            reason: reason.to_owned(),
            name: blocked_name(&name),
            state: state.to_owned(),
            since_time: None,
        }
    }
}

fn joined([first, second]: &[ObjectKey; 2]) -> String {
    format!("{},{}", first.name, second.name)
}

fn several(budgets: Option<&[ObjectKey; 2]>) -> String {
    refusal::several_budgets_refusal(budgets.map(|[first, second]| (&*first.name, &*second.name)))
}
