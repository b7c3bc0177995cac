//! The state of all requests in a form in which states that do not differ in what they allow are equal. Each request has a
//! time of its own: what happens to one does not make another older, so that they may be of any age to one another.

use drydock_runtime::ObjectKey;
use jiff::{SignedDuration, Timestamp};

use super::super::budget_check::{BudgetCheck, CoveringBudget};
use super::{BudgetWaiters, WaitingFor};

/// More retries than this make no difference.
const MOST: u32 = 2;
/// A greater age makes no difference: it is above all delays.
const OLDEST: SignedDuration = SignedDuration::from_secs(1000);

impl BudgetWaiters {
    /// Makes a request older.
    pub(in super::super) fn pass(&mut self, key: &ObjectKey, by: SignedDuration) {
        let Some(tracked) = self.requests.get_mut(key) else { return };
        for time in [&mut tracked.attempts.at, &mut tracked.leaving_since].into_iter().flatten() {
            *time -= by;
        }
    }

    /// Replaces the version of the budget in all that is recorded, because the cache has a newer one.
    pub(in super::super) fn outdate(&mut self, version: &str) {
        for tracked in self.requests.values_mut() {
            let (BudgetCheck::Allows(Some(budget)) | BudgetCheck::Refuses { budget, .. }) =
                (match &mut tracked.attempts.asked_at {
                    Some(check) => check,
                    None => continue,
                })
            else {
                continue;
            };
            *budget = CoveringBudget { key: budget.key.clone(), version: version.to_owned() };
        }
    }

    /// Brings the state into its canonical form at `now`, and returns that form.
    pub(in super::super) fn canonical(&mut self, now: Timestamp) -> String {
        self.all_woken.clear();
        self.last_evictions = Default::default();
        for tracked in self.requests.values_mut() {
            let attempts = &mut tracked.attempts;
            // The number is for messages alone: the delay comes from those in a row.
            attempts.retries = 0;
            attempts.races = attempts.races.min(MOST);
            attempts.refused.iter_mut().for_each(|refused| refused.in_a_row = refused.in_a_row.min(MOST));
            for time in [&mut attempts.at, &mut tracked.leaving_since].into_iter().flatten() {
                *time = (*time).max(now - OLDEST);
            }
        }
        self.number_places();
        let mut requests: Vec<_> = self.requests.iter().collect();
        requests.sort_by_key(|(key, _)| *key);
        let mut asking: Vec<_> = self.asking.iter().collect();
        asking.sort();
        format!("{requests:?} {asking:?}")
    }

    /// The places in the queue of the budget are 1, 2, and so on.
    fn number_places(&mut self) {
        self.sequence = 0;
        for queue in self.behind_one.values_mut() {
            for (_, key) in std::mem::take(queue) {
                self.sequence += 1;
                if let Some(WaitingFor::Disruption(_, place)) =
                    self.requests.get_mut(&key).and_then(|tracked| tracked.waiting.as_mut())
                {
                    *place = self.sequence;
                }
                queue.insert((self.sequence, key));
            }
        }
    }
}
