//! Decides when the owner of a blocked pod gets an event. While a budget evicts other pods, a pod that waits
//! for it needs none. The owner gets an event when the cause lasts until someone acts, or when a budget has
//! let no pod go for [`BUDGET_STANDSTILL`]. Pure.

use drydock_api::eviction_request::{Blocked, InterceptorStatus};
use drydock_api::reasons::{ADMISSION_WEBHOOK, FINALIZER, NEVER_ALLOWS, OTHER, SEVERAL_BUDGETS};
use jiff::{SignedDuration, Timestamp};

/// How long a budget may let no pod go before the owners of the pods that wait for it get an event.
pub(crate) const BUDGET_STANDSTILL: SignedDuration = SignedDuration::from_secs(60);

/// What blocks the eviction of a pod, and what the owner's last event was about. A restart loses the time
/// since which something blocks, unless the owner has had an event about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnerNotice {
    /// What blocks at present.
    now: Option<BlockedSince>,
    /// What the owner's last event was about, as it was then.
    last: Option<Blocked>,
}

#[derive(Clone, Debug, PartialEq)]
struct BlockedSince {
    reason: String,
    name: String,
    since: Timestamp,
    is_published: bool,
}

/// The event to publish now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerEvent {
    /// No event.
    Nothing,
    /// An event about what blocks; one for each cause.
    Blocked,
    /// No event yet; one about what blocks at this time, if it still blocks then.
    Later(Timestamp),
    /// An event that nothing blocks any more, after one that something did.
    Unblocked,
}

impl OwnerNotice {
    /// Restores the notice from an entry.
    pub(crate) fn from_status(entry: &InterceptorStatus) -> Self {
        let last = entry.last_blocked.as_deref().cloned();
        let is_now = |last: &&Blocked| {
            entry.blocked.as_ref().is_some_and(|now| (&now.reason, &now.name) == (&last.reason, &last.name))
        };
        let now = last.as_ref().filter(is_now).map(|last| BlockedSince {
            reason: last.reason.clone(),
            name: last.name.clone(),
            since: Timestamp::MIN,
            is_published: true,
        });
        Self { now, last }
    }

    /// What the owner's last event was about, as it was then.
    pub(crate) fn last(&self) -> Option<&Blocked> {
        self.last.as_ref()
    }

    /// Takes in what blocks, and returns the event to publish. `last_eviction` is when the budget that blocks
    /// last allowed an eviction.
    pub(crate) fn update(
        &mut self,
        blocked: Option<&Blocked>,
        last_eviction: Option<Timestamp>,
        now: Timestamp,
    ) -> OwnerEvent {
        let Some(blocked) = blocked else {
            let was_published = self.now.take().is_some_and(|cause| cause.is_published);
            return if was_published { OwnerEvent::Unblocked } else { OwnerEvent::Nothing };
        };
        let is_same = |cause: &BlockedSince| (&cause.reason, &cause.name) == (&blocked.reason, &blocked.name);
        let cause = match self.now.take().filter(is_same) {
            Some(cause) => cause,
            None => BlockedSince {
                reason: blocked.reason.clone(),
                name: blocked.name.clone(),
                since: now,
                is_published: false,
            },
        };
        let cause = self.now.insert(cause);
        if cause.is_published {
            return OwnerEvent::Nothing;
        }
        let stands_since = last_eviction.map_or(cause.since, |at| at.max(cause.since));
        let due = stands_since.checked_add(BUDGET_STANDSTILL).unwrap_or(Timestamp::MAX);
        if now < due && !lasts(blocked) {
            return OwnerEvent::Later(due);
        }
        cause.is_published = true;
        self.last = Some(blocked.clone());
        OwnerEvent::Blocked
    }
}

/// Whether a cause lasts until someone acts. Several budgets count only once the cache has their names, which
/// the event contains.
fn lasts(blocked: &Blocked) -> bool {
    let are_named = || blocked.state != SEVERAL_BUDGETS || !blocked.name.is_empty();
    [ADMISSION_WEBHOOK, FINALIZER, OTHER].contains(&blocked.reason.as_str())
        || ([NEVER_ALLOWS, SEVERAL_BUDGETS].contains(&blocked.state.as_str()) && are_named())
}

#[cfg(test)]
mod tests {
    use drydock_api::reasons::{POD_DISRUPTION_BUDGET, SHORT_NOW};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    fn by(reason: &str, name: &str, state: &str) -> Blocked {
        Blocked { reason: reason.into(), name: name.into(), state: state.into(), since_time: None }
    }

    #[test]
    fn a_pod_in_the_queue_of_a_budget_that_lets_others_go_gets_no_event() {
        let (mut told, short) = (OwnerNotice::default(), by(POD_DISRUPTION_BUDGET, "b", SHORT_NOW));
        assert_eq!(told.update(Some(&short), None, at(0)), OwnerEvent::Later(at(60)));
        assert_eq!(told.update(Some(&short), Some(at(50)), at(60)), OwnerEvent::Later(at(110)));
        assert_eq!(told.update(Some(&short), Some(at(50)), at(109)), OwnerEvent::Later(at(110)));
        assert_eq!(told.update(Some(&short), Some(at(50)), at(110)), OwnerEvent::Blocked);
        assert_eq!(
            told.update(Some(&short), Some(at(111)), at(500)),
            OwnerEvent::Nothing,
            "once for each cause"
        );
        assert_eq!(told.update(None, None, at(501)), OwnerEvent::Unblocked);
        assert_eq!(told.update(None, None, at(502)), OwnerEvent::Nothing);
    }

    #[test]
    fn what_does_not_end_by_itself_gets_an_event_at_once_and_another_cause_one_more() {
        let mut told = OwnerNotice::default();
        let never = by(POD_DISRUPTION_BUDGET, "b", NEVER_ALLOWS);
        assert_eq!(told.update(Some(&never), Some(at(0)), at(1)), OwnerEvent::Blocked);
        assert_eq!(told.update(Some(&by(ADMISSION_WEBHOOK, "w", "")), None, at(2)), OwnerEvent::Blocked);
        assert_eq!(told.update(Some(&by(FINALIZER, "f", "")), None, at(3)), OwnerEvent::Blocked);
    }

    #[test]
    fn a_pod_that_goes_at_once_and_one_that_waits_shortly_get_no_event() {
        let mut told = OwnerNotice::default();
        assert_eq!(told.update(None, None, at(0)), OwnerEvent::Nothing);
        assert_eq!(
            told.update(Some(&by(POD_DISRUPTION_BUDGET, "b", SHORT_NOW)), None, at(0)),
            OwnerEvent::Later(at(60))
        );
        assert_eq!(told.update(None, None, at(59)), OwnerEvent::Nothing);
    }

    #[test]
    fn a_cause_that_the_entry_says_was_told_is_not_told_again_after_a_restart() {
        let entry = |blocked: &str, last: &str| InterceptorStatus {
            blocked: Some(Box::new(by(ADMISSION_WEBHOOK, blocked, ""))),
            last_blocked: Some(Box::new(by(ADMISSION_WEBHOOK, last, ""))),
            ..Default::default()
        };
        let webhook = by(ADMISSION_WEBHOOK, "w", "");
        for (stored, expected) in [("w", OwnerEvent::Nothing), ("another", OwnerEvent::Blocked)] {
            let mut told = OwnerNotice::from_status(&entry("w", stored));
            assert_eq!(told.update(Some(&webhook), None, at(0)), expected);
            assert_eq!(told.last(), Some(&webhook));
        }
        let free = InterceptorStatus { blocked: None, ..entry("w", "w") };
        let mut told = OwnerNotice::from_status(&free);
        assert_eq!(told.update(None, None, at(0)), OwnerEvent::Nothing);
        assert_eq!(told.last(), Some(&webhook));
    }

    /// The budget's present state was recorded as the one that the event had named.
    #[test]
    fn what_was_told_stays_as_it_was_told() {
        let mut told = OwnerNotice::default();
        let state = |state| by(POD_DISRUPTION_BUDGET, "b", state);
        assert_eq!(told.update(Some(&state(NEVER_ALLOWS)), None, at(0)), OwnerEvent::Blocked);
        assert_eq!(told.update(Some(&state(SHORT_NOW)), None, at(1)), OwnerEvent::Nothing);
        assert_eq!(told.update(None, None, at(2)), OwnerEvent::Unblocked);
        assert_eq!(told.last(), Some(&state(NEVER_ALLOWS)));
    }

    #[test]
    fn several_budgets_get_an_event_with_their_names() {
        let several = |names| by(POD_DISRUPTION_BUDGET, names, SEVERAL_BUDGETS);
        let mut told = OwnerNotice::default();
        assert_eq!(told.update(Some(&several("")), None, at(0)), OwnerEvent::Later(at(60)));
        assert_eq!(told.update(Some(&several("a,b")), None, at(1)), OwnerEvent::Blocked);
    }
}
