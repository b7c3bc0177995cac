//! Makes the next entry of an interceptor in the status of a request, from the previous entry and the
//! progress, by the API's rules for its times. Pure.
//!
//! ```text
//!   (blank) ──▶ startTime, heartbeatTime ──▶ heartbeats, news ──▶ completionTime     next_entry
//!      └──────────────────────────────────────────────────────▶ completionTime     decline
//! ```

use drydock_api::eviction_request::transitions::{MIN_HEARTBEAT_INTERVAL, gives_turns};
use drydock_api::eviction_request::{Blocked, EvictionRequest, InterceptorStatus, MAX_MESSAGE, NAMES};
use drydock_api::text::cut;
use drydock_api::time::truncate_to_seconds;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A heartbeat is sent after this even if nothing else changes (KEP-4563: every 3 minutes is enough).
pub const HEARTBEAT_INTERVAL: SignedDuration = SignedDuration::from_secs(180);

/// Progress of an interceptor, to be reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgressReport {
    /// For people.
    pub message: String,
    /// When the pod is expected to be gone.
    pub expected_finish: Option<Timestamp>,
    /// Whether the interceptor's work is over.
    pub completed: bool,
    /// What keeps it from evicting the pod. Its time is not used: the entry has its own.
    pub blocked: Option<Blocked>,
    /// What blocked at the time of the owner's last event, whether it still blocks or not; without the time.
    pub last_blocked: Option<Blocked>,
}

/// Whether it is the turn of this interceptor, and it has not ended it.
pub fn is_turn_of(request: &EvictionRequest, interceptor: &str) -> bool {
    let completed = request.interceptor(interceptor).is_none_or(|entry| entry.completion_time.is_some());
    gives_turns(request) && request.active_interceptor() == Some(interceptor) && !completed
}

/// Returns the entry that replaces `old`, or none if nothing is to be written. While the same thing blocks, a
/// change of the message alone is not written at once, but with the next heartbeat: a budget that hundreds of
/// pods wait for would otherwise cause hundreds of writes with each eviction.
pub fn next_entry(
    old: &InterceptorStatus,
    progress: &ProgressReport,
    now: Timestamp,
) -> Option<InterceptorStatus> {
    // A pod that is not cached is known to be gone only if our turn had begun, because the cache may lag.
    let never_began = progress.completed && old.start_time.is_none();
    if old.completion_time.is_some() || never_began {
        return None;
    }
    let now = truncate_to_seconds(now);
    let mut entry = old.clone();
    // The API server refuses a longer message, and the report would be lost.
    entry.message = cut(&progress.message, MAX_MESSAGE);
    entry.blocked = progress
        .blocked
        .clone()
        .map(|blocked| Box::new(Blocked { since_time: Some(since(old, &blocked, now)), ..blocked }));
    if let Some(last_blocked) = &progress.last_blocked {
        let last = old.last_blocked.as_deref().filter(|last| is_same_state(last, last_blocked));
        let since_time = last.or(entry.blocked.as_deref()).and_then(|blocked| blocked.since_time);
        entry.last_blocked =
            Some(Box::new(Blocked { since_time: since_time.or(Some(now)), ..last_blocked.clone() }));
    }
    // A time in the past may stay in the entry, but may not be set. The present says nothing: a kubelet's last delete of a
    // pod moves its time of deletion there, which would be one report more for each pod.
    let expected = progress.expected_finish.map(truncate_to_seconds).filter(|t| *t > now);
    entry.expected_finish_time = expected.or(progress.expected_finish.and(old.expected_finish_time));
    if progress.completed {
        entry.completion_time = Some(now);
    }
    let counts_on = entry.blocked.is_some()
        && InterceptorStatus { message: old.message.clone(), ..entry.clone() } == *old;
    let is_new = (entry != *old && !counts_on) || old.start_time.is_none();
    let since_heartbeat = old.heartbeat_time.map(|last| now.duration_since(last));
    let interval = if is_new {
        SignedDuration::from_secs(MIN_HEARTBEAT_INTERVAL.as_secs().cast_signed())
    } else {
        HEARTBEAT_INTERVAL
    };
    let due = since_heartbeat.is_none_or(|since| since >= interval);
    if due {
        entry.heartbeat_time = Some(now);
        entry.start_time = entry.start_time.or(Some(now));
    }
    (is_new || due).then_some(entry)
}

/// The time since which this reason and name block.
fn since(old: &InterceptorStatus, blocked: &Blocked, now: Timestamp) -> Timestamp {
    let same =
        old.blocked.as_deref().filter(|old| (&old.reason, &old.name) == (&blocked.reason, &blocked.name));
    same.and_then(|old| old.since_time).unwrap_or(now)
}

/// Whether both say the same of what blocks, since whenever it does.
pub fn is_same_state(a: &Blocked, b: &Blocked) -> bool {
    (&a.reason, &a.name, &a.state) == (&b.reason, &b.name, &b.state)
}

/// Returns the entry that declines the turn (it sets completionTime without startTime), or none if the turn
/// is already completed.
pub fn decline(old: &InterceptorStatus, why: String, now: Timestamp) -> Option<InterceptorStatus> {
    let completion_time = Some(truncate_to_seconds(now));
    old.completion_time.is_none().then(|| InterceptorStatus {
        completion_time,
        message: cut(&why, MAX_MESSAGE),
        blocked: None,
        ..old.clone()
    })
}

/// When the next heartbeat is due after this entry; none once the work is completed.
pub fn next_heartbeat(entry: &InterceptorStatus) -> Option<Timestamp> {
    entry.heartbeat_time.filter(|_| entry.completion_time.is_none())?.checked_add(HEARTBEAT_INTERVAL).ok()
}

/// The body of the server-side apply that writes an entry as a whole. It is sent to the request's status, with the
/// interceptor's name as the field manager, and forced, because the eviction request controller made the entry. With
/// the UID, it does not change another request of the same name.
pub fn apply_body(request: &EvictionRequest, entry: &InterceptorStatus) -> Value {
    let meta = &request.metadata;
    json!({
        "apiVersion": drydock_api::API_VERSION, "kind": NAMES.kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        "status": {"interceptors": [entry]},
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1000 + second).unwrap()
    }

    fn progress(message: &str) -> ProgressReport {
        ProgressReport { message: message.into(), ..Default::default() }
    }

    fn started() -> InterceptorStatus {
        next_entry(&InterceptorStatus::default(), &progress("m"), at(0)).unwrap()
    }

    #[test]
    fn first_entry_sets_start_and_heartbeat_together() {
        assert_eq!((started().start_time, started().heartbeat_time), (Some(at(0)), Some(at(0))));
    }

    #[test]
    fn news_within_a_minute_goes_without_a_heartbeat() {
        let next = next_entry(&started(), &progress("n"), at(59)).unwrap();
        assert_eq!((next.message.as_str(), next.heartbeat_time), ("n", Some(at(0))));
        let next = next_entry(&started(), &progress("n"), at(60)).unwrap();
        assert_eq!(next.heartbeat_time, Some(at(60)));
    }

    #[test]
    fn without_news_only_a_heartbeat_that_is_due_is_sent() {
        assert_eq!(next_entry(&started(), &progress("m"), at(179)), None);
        assert_eq!(next_entry(&started(), &progress("m"), at(180)).unwrap().heartbeat_time, Some(at(180)));
        assert_eq!(next_heartbeat(&started()), Some(at(180)));
    }

    #[test]
    fn expected_finish_is_never_set_to_the_past_but_may_stay() {
        let late = ProgressReport { expected_finish: Some(at(5)), ..progress("m") };
        assert_eq!(next_entry(&started(), &late, at(6)), None);
        let early = next_entry(&started(), &late, at(4)).unwrap();
        assert_eq!(early.expected_finish_time, Some(at(5)));
        assert_eq!(next_entry(&early, &late, at(30)), None);
        let present = ProgressReport { expected_finish: Some(at(4)), ..progress("m") };
        assert_eq!(next_entry(&early, &present, at(4)), None);
    }

    #[test]
    fn pod_that_was_never_dealt_with_is_not_reported_as_terminated() {
        let done = ProgressReport { completed: true, ..progress("m") };
        assert_eq!(next_entry(&InterceptorStatus::default(), &done, at(0)), None);
    }

    #[test]
    fn a_turn_is_declined_by_a_completion_alone_and_once() {
        let declined = decline(&InterceptorStatus::default(), "none of ours".into(), at(3)).unwrap();
        assert_eq!((declined.completion_time, declined.start_time), (Some(at(3)), None));
        assert_eq!(decline(&declined, "again".into(), at(4)), None);
    }

    /// The finalizers of a pod can make a message of a megabyte.
    #[test]
    fn a_message_that_is_too_long_is_cut_and_written_only_once() {
        let long = progress(&"\u{e9}".repeat(MAX_MESSAGE + 1));
        let first = next_entry(&InterceptorStatus::default(), &long, at(0)).unwrap();
        assert_eq!(first.message.chars().count(), MAX_MESSAGE);
        assert_eq!(next_entry(&first, &long, at(1)), None);
        let declined = decline(&InterceptorStatus::default(), long.message, at(0)).unwrap();
        assert_eq!(declined.message, first.message);
    }

    #[test]
    fn completed_entry_is_never_touched_again() {
        let done =
            next_entry(&started(), &ProgressReport { completed: true, ..progress("m") }, at(9)).unwrap();
        assert_eq!(done.completion_time, Some(at(9)));
        assert_eq!(next_entry(&done, &progress("other"), at(500)), None);
    }

    fn refused(by: &str, message: &str) -> ProgressReport {
        let blocked = Blocked { reason: "PodDisruptionBudget".into(), name: by.into(), ..Default::default() };
        ProgressReport { blocked: Some(blocked), ..progress(message) }
    }

    /// Whenever a budget let a pod go, the messages of all other pods that had tried were written.
    #[test]
    fn a_message_that_only_counts_on_waits_for_the_next_heartbeat() {
        let first = next_entry(&started(), &refused("b", "retries: 1"), at(5)).unwrap();
        assert_eq!(first.blocked.as_ref().unwrap().since_time, Some(at(5)));
        assert_eq!(next_entry(&first, &refused("b", "retries: 2"), at(170)), None);
        let beat = next_entry(&first, &refused("b", "retries: 9"), at(180)).unwrap();
        assert_eq!((beat.message.as_str(), beat.heartbeat_time), ("retries: 9", Some(at(180))));
        assert_eq!(beat.blocked, first.blocked);
    }

    #[test]
    fn what_blocks_is_told_when_it_changes_with_the_time_since_when() {
        let first = next_entry(&started(), &refused("b", "m"), at(5)).unwrap();
        let mut way = refused("b", "m");
        way.blocked.as_mut().unwrap().state = "NeverAllows".into();
        let way = next_entry(&first, &way, at(6)).unwrap();
        assert_eq!(way.blocked.as_ref().unwrap().since_time, Some(at(5)), "the same one in another way");
        let other = next_entry(&way, &refused("c", "m"), at(7)).unwrap();
        assert_eq!(other.blocked.as_ref().unwrap().since_time, Some(at(7)));
        let free = next_entry(&other, &progress("accepted"), at(8)).unwrap();
        assert_eq!((free.blocked.as_ref(), free.message.as_str()), (None, "accepted"));
        assert_eq!(decline(&other, "none of ours".into(), at(8)).unwrap().blocked, None);
    }

    #[test]
    fn what_the_owner_was_told_stays_when_nothing_blocks_any_more() {
        let queued = next_entry(&started(), &refused("b", "m"), at(5)).unwrap();
        assert_eq!(queued.last_blocked, None);
        let published = ProgressReport { last_blocked: refused("b", "m").blocked, ..refused("b", "m") };
        let published_entry = next_entry(&queued, &published, at(65)).unwrap();
        assert_eq!(published_entry.last_blocked, queued.blocked);
        assert_eq!(next_entry(&published_entry, &published, at(66)), None);
        let mut other_state = published.clone();
        other_state.blocked.as_mut().unwrap().state = "ShortNow".into();
        let in_other_state = next_entry(&published_entry, &other_state, at(67)).unwrap();
        assert_eq!(in_other_state.last_blocked, published_entry.last_blocked, "as it was published");
        let free = next_entry(&published_entry, &progress("accepted"), at(67)).unwrap();
        assert_eq!((free.blocked.as_ref(), &free.last_blocked), (None, &published_entry.last_blocked));
        assert_eq!(decline(&free, "none of ours".into(), at(68)).unwrap().last_blocked, free.last_blocked);
    }
}
