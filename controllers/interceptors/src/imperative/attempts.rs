//! The attempts to evict the pod of one request, and when the next one is due. Pure.

use std::time::Duration;

use drydock_runtime::queue::ExponentialBackoff;
use jiff::Timestamp;

use super::budget_check::BudgetCheck;
use super::eviction_result::EvictionResult;
use super::last_refusal::LastRefusal;

/// Backoff after answers that block (KEP-4563: up to about 15 minutes).
const BLOCKED: ExponentialBackoff =
    ExponentialBackoff { first: Duration::from_secs(5), max: Duration::from_secs(900) };
/// Backoff after lost races.
const RACE: ExponentialBackoff =
    ExponentialBackoff { first: Duration::from_millis(200), max: Duration::from_secs(10) };
/// How long an accepted eviction may take to show in the cache before it is sent again.
const SHOWS_WITHIN: Duration = Duration::from_secs(30);

/// The attempts to evict the pod of a request. Lost at a restart.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attempts {
    /// Evictions that were blocked.
    pub(crate) retries: u32,
    /// The last of them, if none was accepted since.
    pub(super) refused: Option<LastRefusal>,
    /// Races lost in a row.
    races: u32,
    /// The last answer.
    pub(crate) last: Option<EvictionResult>,
    /// When it came.
    at: Option<Timestamp>,
    /// What the cache knew of the budgets when it was asked for.
    asked_at: Option<BudgetCheck>,
}

impl Attempts {
    /// Takes in an answer; `asked_at` is what the cache knew of the budgets when it was asked for.
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

    /// Records the present state of the budgets. A state that differed once counts as a change, even if the budgets have
    /// returned to the state before.
    pub(crate) fn update(&mut self, check: &BudgetCheck) {
        self.asked_at.take_if(|asked_at| asked_at != check);
        if let Some(refused) = &mut self.refused {
            refused.update(check);
        }
    }

    /// When to try again, unless a budget's change comes first. A result from the future came before the clock was set
    /// back, and its age is unknown: it delays nothing.
    pub(super) fn next(&self, check: &BudgetCheck, now: Timestamp) -> Option<Timestamp> {
        let (last, at) = (self.last.as_ref()?, self.at.filter(|at| *at <= now)?);
        let delay = match last {
            EvictionResult::Accepted | EvictionResult::Gone => SHOWS_WITHIN,
            EvictionResult::TryAgain | EvictionResult::Unclear => RACE.delay(self.races.saturating_sub(1)),
            EvictionResult::Throttled(after) => after.unwrap_or(Duration::from_secs(1)),
            // Known to allow nothing: asked again when it opens, and once in a while to be sure.
            EvictionResult::Budget(_) | EvictionResult::ManyBudgets if check.refuses() => BLOCKED.max,
            // By what blocks now: many refusals of a budget do not make a webhook's first one last a quarter of an hour.
            _ => BLOCKED.delay(self.refused.as_ref().map_or(0, |refused| refused.in_a_row.saturating_sub(1))),
        };
        at.checked_add(delay).ok()
    }

    /// Whether budgets that refused are open and not as they were when they were asked. The state that refused need not
    /// have been seen: the cache learns of it after the refusal, or never if its watch broke off meanwhile.
    pub(super) fn has_opened(&self, check: &BudgetCheck) -> bool {
        self.is_kept_by_budgets() && !check.refuses() && self.asked_at.as_ref() != Some(check)
    }

    /// Whether room in a budget would be taken as soon as there is some.
    pub(crate) fn awaits_room(&self) -> bool {
        self.is_kept_by_budgets()
            || matches!(
                self.last,
                None | Some(
                    EvictionResult::TryAgain | EvictionResult::Unclear | EvictionResult::Throttled(_)
                )
            )
    }

    /// Whether the host may have accepted an eviction that the cache does not show.
    pub(crate) fn may_be_accepted(&self) -> bool {
        matches!(self.last, Some(EvictionResult::Accepted | EvictionResult::Unclear))
    }

    /// Whether a change of a budget may help.
    pub(crate) fn is_kept_by_budgets(&self) -> bool {
        matches!(self.last, Some(EvictionResult::Budget(_) | EvictionResult::ManyBudgets))
    }
}
