//! When each budget last allowed an eviction. While a budget evicts other pods, a pod that waits for it makes
//! progress.

use std::collections::HashMap;

use drydock_api::eviction_request::Blocked;
use drydock_runtime::ObjectKey;
use jiff::Timestamp;

use crate::report::BUDGET_STANDSTILL;

/// The map is not pruned for its size while it has fewer than twice this many budgets.
const MIN_REMEMBERED_BUDGETS: usize = 64;

/// When each budget last allowed an eviction, by any client. Budgets that have allowed none for
/// [`BUDGET_STANDSTILL`] are forgotten. They are looked for once in that time, and when there are twice as many
/// budgets as the last time left, so that each note costs little however many there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastEvictions {
    last: HashMap<ObjectKey, Timestamp>,
    /// How many budgets the last pruning left; `pruned` is when that was.
    left: usize,
    pruned: Option<Timestamp>,
}

impl LastEvictions {
    /// Records that a budget has allowed an eviction.
    pub(crate) fn note(&mut self, budget: &ObjectKey, now: Timestamp) {
        self.last.insert(budget.clone(), now);
        let is_long_ago = self.pruned.is_none_or(|at| now.duration_since(at).abs() >= BUDGET_STANDSTILL);
        if is_long_ago || self.last.len() >= 2 * self.left.max(MIN_REMEMBERED_BUDGETS) {
            self.last.retain(|_, at| now.duration_since(*at) < BUDGET_STANDSTILL);
            (self.left, self.pruned) = (self.last.len(), Some(now));
        }
    }

    /// When the budget that blocks last allowed an eviction, if that is known.
    pub(crate) fn last(&self, namespace: &str, blocked: Option<&Blocked>) -> Option<Timestamp> {
        let blocked = blocked.filter(|blocked| !blocked.state.is_empty())?;
        self.last.get(&ObjectKey::new(namespace, &blocked.name)).copied()
    }
}

#[cfg(test)]
mod tests {
    use drydock_api::reasons::{POD_DISRUPTION_BUDGET, SHORT_NOW};
    use jiff::SignedDuration;

    use super::*;

    fn at(milli: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_millis(milli)
    }

    fn note(last_eviction: &mut LastEvictions, budget: i64, milli: i64) {
        last_eviction.note(&ObjectKey::new("ns", &budget.to_string()), at(milli));
    }

    #[test]
    fn budgets_that_have_stood_still_are_forgotten() {
        let mut last_eviction = LastEvictions::default();
        for second in 0..1000 {
            note(&mut last_eviction, second, 1000 * second);
            assert!(last_eviction.last.len() <= 2 * MIN_REMEMBERED_BUDGETS, "{}", last_eviction.last.len());
        }
        let by = |name: &str| Blocked {
            reason: POD_DISRUPTION_BUDGET.into(),
            name: name.into(),
            state: SHORT_NOW.into(),
            since_time: None,
        };
        assert_eq!(last_eviction.last("ns", Some(&by("999"))), Some(at(999_000)));
        assert_eq!(last_eviction.last("ns", Some(&by("1"))), None);
        assert_eq!(last_eviction.last("other", Some(&by("999"))), None);
    }

    /// If each pod had a budget of its own, each eviction searched all budgets that were known.
    #[test]
    fn many_budgets_are_not_looked_through_at_each_note() {
        let mut last_eviction = LastEvictions::default();
        let mut pruned = 0;
        for budget in 0..10_000 {
            let before = last_eviction.pruned;
            note(&mut last_eviction, budget, budget);
            pruned += usize::from(last_eviction.pruned != before);
        }
        assert_eq!(last_eviction.last.len(), 10_000, "all within a minute");
        assert!(pruned <= 10, "{pruned}");
    }
}
