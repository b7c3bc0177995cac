//! The attempts to evict the pod of one request, and when the next one is due. Pure.

use std::time::Duration;

use drydock_runtime::queue::ExponentialBackoff;
use jiff::Timestamp;

use super::budget_check::BudgetCheck;
use super::eviction_result::{EvictionResult, named_budget};
use super::last_refusal::LastRefusal;

/// Backoff after refusals (KEP-4563: up to about 15 minutes).
const REFUSAL_BACKOFF: ExponentialBackoff =
    ExponentialBackoff { first: Duration::from_secs(5), max: Duration::from_secs(900) };
/// Longest delay after a refusal by several budgets of which the cache does not know that they cover the pod: no change of theirs
/// is a reason to try again.
const UNKNOWN_BUDGETS_DELAY: Duration = Duration::from_secs(120);
/// Backoff after lost races.
const RACE_BACKOFF: ExponentialBackoff =
    ExponentialBackoff { first: Duration::from_millis(200), max: Duration::from_secs(10) };
/// How long an accepted eviction may take to appear in the cache before it is sent again.
const SHOWS_WITHIN: Duration = Duration::from_secs(30);

/// The attempts to evict the pod of a request. A restart loses them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attempts {
    /// How many evictions were refused.
    pub(crate) retries: u32,
    /// The last refusal, if no eviction was accepted since.
    pub(super) refused: Option<LastRefusal>,
    /// Races lost in a row.
    pub(super) races: u32,
    /// The last answer.
    pub(crate) last: Option<EvictionResult>,
    /// When the last result came.
    pub(super) at: Option<Timestamp>,
    /// The state of the budgets when the last eviction was sent; none once it has differed from that.
    pub(super) asked_at: Option<BudgetCheck>,
}

impl Attempts {
    /// Records a result; `asked_at` is the state of the budgets when the eviction was sent.
    pub(crate) fn learn(&mut self, result: EvictionResult, asked_at: BudgetCheck, now: Timestamp) {
        let is_race = matches!(result, EvictionResult::TryAgain | EvictionResult::Unclear);
        self.races = if is_race { self.races.saturating_add(1) } else { 0 };
        if result.blocks() {
            self.retries = self.retries.saturating_add(1);
            self.refused = Some(LastRefusal::new(&result, &asked_at, self.refused.take()));
        } else if matches!(result, EvictionResult::Accepted | EvictionResult::Gone) {
            self.refused = None;
        }
        self.asked_at = Some(asked_at);
        self.at = Some(now);
        self.last = Some(result);
    }

    /// Records the present state of the budgets. A state that differed once counts as a change, even if the
    /// budgets have returned to the state before.
    pub(crate) fn update(&mut self, check: &BudgetCheck) {
        self.asked_at.take_if(|asked_at| asked_at != check);
        if let Some(refused) = &mut self.refused {
            refused.update(check);
        }
    }

    /// When to try again, unless a budget's change comes first. A result whose time is in the future was
    /// recorded before the clock was set back. Its age is unknown, and it delays nothing.
    pub(super) fn next(&self, check: &BudgetCheck, now: Timestamp) -> Option<Timestamp> {
        let (last, at) = (self.last.as_ref()?, self.at.filter(|at| *at <= now)?);
        let delay = match last {
            EvictionResult::Accepted | EvictionResult::Gone => SHOWS_WITHIN,
            EvictionResult::TryAgain | EvictionResult::Unclear => {
                RACE_BACKOFF.delay(self.races.saturating_sub(1))
            }
            EvictionResult::Throttled(after) => after.unwrap_or(Duration::from_secs(1)),
            // The budgets are known to allow nothing: the next attempt is when they change, or after the
            // longest delay to be safe.
            EvictionResult::Budget(_) | EvictionResult::ManyBudgets if check.refuses() => REFUSAL_BACKOFF.max,
            EvictionResult::ManyBudgets => self.backoff().min(UNKNOWN_BUDGETS_DELAY),
            _ => self.backoff(),
        };
        at.checked_add(delay).ok()
    }

    /// The delay after the refusals so far. Only those of the same kind count: after many refusals of a budget, the first one of
    /// a webhook does not delay for 15 minutes.
    fn backoff(&self) -> Duration {
        REFUSAL_BACKOFF.delay(self.refused.as_ref().map_or(0, |refused| refused.in_a_row.saturating_sub(1)))
    }

    /// Whether budgets have refused the pod, allow it now, and have changed since the eviction was sent. The
    /// cache need not have shown the state that refused: it learns of that after the refusal, or never if its
    /// watch was interrupted.
    pub(super) fn has_opened(&self, check: &BudgetCheck) -> bool {
        self.is_kept_by_budgets() && !check.refuses() && self.asked_at.as_ref() != Some(check)
    }

    /// Whether the request would use a disruption of its budget as soon as there is one.
    pub(crate) fn awaits_disruption(&self) -> bool {
        self.is_kept_by_budgets()
            || matches!(
                self.last,
                None | Some(
                    EvictionResult::TryAgain | EvictionResult::Unclear | EvictionResult::Throttled(_)
                )
            )
    }

    /// Whether the host may have accepted an eviction that the cache does not show yet.
    pub(crate) fn may_be_accepted(&self) -> bool {
        matches!(self.last, Some(EvictionResult::Accepted | EvictionResult::Unclear))
    }

    /// Records that a budget has changed which the host named: no budget was known to cover the pod when the last eviction was
    /// sent, and [`Attempts::update`] sees no difference.
    pub(super) fn named_budget_changed(&mut self) {
        self.asked_at.take_if(|asked_at| *asked_at == BudgetCheck::Allows(None));
    }

    /// The name of the budget in the last result, if that was a refusal by one.
    pub(super) fn named_budget(&self) -> Option<&str> {
        match &self.last {
            Some(EvictionResult::Budget(words)) => Some(named_budget(words)).filter(|name| !name.is_empty()),
            _ => None,
        }
    }

    /// Whether the last result was a refusal by budgets, so that a change of a budget may help.
    pub(crate) fn is_kept_by_budgets(&self) -> bool {
        matches!(self.last, Some(EvictionResult::Budget(_) | EvictionResult::ManyBudgets))
    }
}
