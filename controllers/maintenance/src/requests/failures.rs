//! Pods whose requests failed: why, and when the pods are asked for again. A request fails if its validation
//! fails, if others withdraw it, delete it or make it for another pod, or if it ends as Evicted while the pod
//! is still there.
//!
//! The eviction controller removes a request that failed validation after a while, because no other request
//! for the pod can be made before. To withdraw a request costs others a single write, and to ask again costs
//! us several: without backoff that would be a loop.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::transitions::turns_had;
use drydock_runtime::Pod;
use drydock_runtime::queue::ExponentialBackoff;
use jiff::Timestamp;

use crate::REQUESTER;
use crate::observed::asked_again::AskedAgain;
use crate::requests::turns::ShownTurns;
use crate::world::WorldView;

/// How long after a failure a pod is asked for again, by the number of failures in a row.
const FAILURE_BACKOFF: ExponentialBackoff =
    ExponentialBackoff { first: Duration::from_secs(5 * 60), max: Duration::from_secs(60 * 60) };

/// The failures of requests, for pods that are to leave. After a restart failed validations are read from the
/// requests that exist; pods whose requests were withdrawn are asked for once more.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestFailures {
    /// By UID of the pod.
    pods: HashMap<String, RequestFailure>,
    /// The annotation of the pod's next request, by UID of the pod.
    asked_again: HashMap<String, AskedAgain>,
    /// The requests from which we withdraw, by their UIDs.
    withdrawn: HashMap<String, Withdrawal>,
    /// UIDs of the existing requests from which we have withdrawn. If one of them has our requester, others
    /// put it there: anybody may write its name.
    left_requests: HashSet<String>,
    /// The turns that the failed requests have given.
    pub(crate) turns: ShownTurns,
}

/// How far a withdrawal of ours has come.
#[derive(Clone, Debug, Default)]
struct Withdrawal {
    /// A step has seen that our requester is gone.
    is_seen: bool,
    /// We have asked in the request again: if it has our requester, we put it there.
    is_revoked: bool,
    /// A step has seen that it has our requester again.
    is_rejoined: bool,
}

/// The last request of a pod that came to nothing.
#[derive(Clone, Debug)]
pub(crate) struct RequestFailure {
    /// What happened to it.
    pub(crate) cause: FailureCause,
    /// UID of the request.
    request: String,
    /// How many requests have failed in a row.
    pub(crate) count: u32,
    /// The words of a failed validation.
    pub(crate) why: String,
    /// The pod is not asked for before this time.
    pub(crate) again: Timestamp,
}

/// A request that has failed.
struct FailedRequest<'a> {
    cause: FailureCause,
    /// UID of the request.
    request: &'a str,
    at: Timestamp,
    /// The words of a failed validation.
    why: &'a str,
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// It failed validation.
    Validation,
    /// Others took our requester out of it.
    Withdrawn,
    /// Others deleted it.
    Deleted,
    /// Others made it, and it targets another pod.
    WrongTarget,
    /// It ended as Evicted, and the pod runs: a writer of the pod's status can say for a moment that it does not.
    Evicted,
}

impl RequestFailures {
    /// Takes in what became of the requests of the pods that are to leave.
    pub(crate) fn update(&mut self, view: &WorldView<'_>) {
        let pods =
            || view.counted.values().flatten().filter(|pod| view.planned.targeted.contains(pod.uid.as_str()));
        let present: HashSet<&str> = pods().map(|pod| pod.uid.as_str()).collect();
        self.pods.retain(|uid, _| present.contains(uid.as_str()));
        self.asked_again.retain(|uid, _| present.contains(uid.as_str()));
        self.turns.recall(view, &present);
        for pod in pods() {
            let key = (pod.namespace.clone(), pod.uid.clone());
            // Our requester in a request for another pod was put there by others.
            let lost = view.world.since.lost.get(&key).filter(|lost| lost.target == pod.name);
            if let Some(lost) = lost.filter(|lost| !self.withdrawn.contains_key(&lost.request)) {
                let cause = if lost.deleted { FailureCause::Deleted } else { FailureCause::Withdrawn };
                let failed = FailedRequest { cause, request: &lost.request, at: view.now, why: "" };
                self.learn(pod, &failed, view.now);
                for ended in &lost.ended {
                    self.turns.add(&pod.uid, &turns_had(ended, view.now));
                }
                // Our own count comes before the one in the request, which anybody may write.
                let counted = self.asked_again.get(&pod.uid).map(|asked| asked.once_more());
                let again = counted.or(lost.asked_again).map(|asked| (pod.uid.clone(), asked));
                self.asked_again.extend(again);
            }
            if let Some(request) = view.world.requests.get(&key) {
                let before = self.of(pod).map(|failure| failure.request.clone());
                self.learn_from(pod, request, view.now);
                if let Some(end) = request.evicted_at() {
                    self.turns.add(&pod.uid, &turns_had(request, end));
                }
                let failed = self.of(pod).filter(|failure| failure.is_end_of(request));
                if failed.is_some() && before.as_ref() != Some(&request.metadata.uid) {
                    self.count_again(pod, request);
                }
            }
        }
        self.turns.share_out(view);
        self.note_left(view);
        self.forget_withdrawn(view);
    }

    /// Records that we ask in this request again.
    pub(crate) fn ask(&mut self, request: &str) {
        self.left_requests.remove(request);
        // The loss may be noted after this, and is no failure then either.
        if let Some(withdrawal) = self.withdrawn.get_mut(request) {
            withdrawal.is_revoked = true;
        }
    }

    /// Records that we withdraw from this request, so that it does not count as taken from us.
    pub(crate) fn withdraw(&mut self, request: &str) {
        self.withdrawn.insert(request.to_owned(), Withdrawal::default());
    }

    /// Whether we have withdrawn from this request, and have not asked in it again.
    pub(crate) fn has_left(&self, request: &str) -> bool {
        self.left_requests.contains(request)
    }

    /// How often a pod was asked for again; after a restart, by what its request says.
    pub(crate) fn asked_again(&self, pod: &Pod, request: Option<&EvictionRequest>) -> Option<AskedAgain> {
        let said = || request.filter(|r| r.has_requester(REQUESTER)).and_then(AskedAgain::of);
        self.asked_again.get(&pod.uid).copied().or_else(said)
    }

    /// The failure of a pod whose last request failed.
    pub(crate) fn of(&self, pod: &Pod) -> Option<&RequestFailure> {
        self.pods.get(&pod.uid)
    }

    /// Counts a request of ours that failed by itself, for the annotation of the request that takes its
    /// place.
    fn count_again(&mut self, pod: &Pod, ended: &EvictionRequest) {
        let counted = self.asked_again.get(&pod.uid).map(|asked| asked.once_more());
        let again = counted.or_else(|| AskedAgain::after(ended));
        self.asked_again.extend(again.map(|asked| (pod.uid.clone(), asked)));
    }

    fn learn_from(&mut self, pod: &Pod, request: &EvictionRequest, now: Timestamp) {
        let uid = &request.metadata.uid;
        if targets_another_pod(request, pod) {
            self.learn(
                pod,
                &FailedRequest { cause: FailureCause::WrongTarget, request: uid, at: now, why: "" },
                now,
            );
        } else if request.is_evicted() {
            self.learn(
                pod,
                &FailedRequest { cause: FailureCause::Evicted, request: uid, at: now, why: "" },
                now,
            );
        } else if let Some(failed) = request.validation_failure() {
            let at = failed.last_transition_time.map_or(now, |at| at.min(now));
            self.learn(
                pod,
                &FailedRequest { cause: FailureCause::Validation, request: uid, at, why: &failed.message },
                now,
            );
        } else if request.is_taken_up() {
            self.pods.retain(|uid, failure| *uid != pod.uid || failure.cause != FailureCause::Validation);
        }
    }

    /// Records a failure. A request that failed validation, targets another pod or ended as Evicted is seen
    /// again until it is gone, and counts once.
    fn learn(&mut self, pod: &Pod, failed: &FailedRequest<'_>, now: Timestamp) {
        let FailedRequest { cause, request, at, why } = *failed;
        let before = self.pods.get(&pod.uid);
        let is_seen_again =
            matches!(cause, FailureCause::Validation | FailureCause::WrongTarget | FailureCause::Evicted);
        if before.is_some_and(|b| is_seen_again && b.cause == cause && b.request == request) {
            return;
        }
        let in_a_row = before
            .filter(|before| now <= before.again.checked_add(FAILURE_BACKOFF.max).unwrap_or(Timestamp::MAX));
        let count = in_a_row.map_or(1, |before| before.count.saturating_add(1));
        let again = at.checked_add(delay(cause, count)).unwrap_or(Timestamp::MAX);
        let failure =
            RequestFailure { cause, request: request.to_owned(), count, why: why.to_owned(), again };
        self.pods.insert(pod.uid.clone(), failure);
    }

    fn note_left(&mut self, view: &WorldView<'_>) {
        let has_left =
            |uid: &String| self.withdrawn.get(uid).is_some_and(|withdrawal| !withdrawal.is_revoked);
        let lost = view.world.since.lost.values().filter(|lost| has_left(&lost.request));
        self.left_requests.extend(lost.map(|lost| lost.request.clone()));
        if !self.left_requests.is_empty() {
            let requests = view.world.requests.values().map(|request| request.metadata.uid.as_str());
            let present: HashSet<&str> = requests.collect();
            self.left_requests.retain(|uid| present.contains(uid.as_str()));
        }
    }

    /// Forgets requests that have lost our requester, or have it again, one step later: the loss is noted a
    /// moment after the caches show it.
    fn forget_withdrawn(&mut self, view: &WorldView<'_>) {
        if self.withdrawn.is_empty() {
            return;
        }
        let requests = view.world.requests.values().filter(|request| request.has_requester(REQUESTER));
        let ours: HashSet<&str> = requests.map(|request| request.metadata.uid.as_str()).collect();
        self.withdrawn.retain(|uid, withdrawal| {
            let Withdrawal { is_seen, is_revoked, is_rejoined } = withdrawal;
            match (ours.contains(uid.as_str()), *is_revoked) {
                (true, false) => true,
                (true, true) => !std::mem::replace(is_rejoined, true),
                (false, _) => !std::mem::replace(is_seen, true),
            }
        });
    }
}

impl RequestFailure {
    /// Whether this request ended with the failure, and has our requester still.
    fn is_end_of(&self, request: &EvictionRequest) -> bool {
        let is_end = matches!(self.cause, FailureCause::Validation | FailureCause::Evicted);
        is_end && self.request == request.metadata.uid && request.has_requester(REQUESTER)
    }

    /// Whether a pod with this request, if it has one, is not to be asked for.
    pub(crate) fn holds_back(&self, pod: &Pod, request: Option<&EvictionRequest>, now: Timestamp) -> bool {
        let is_held_back = match self.cause {
            FailureCause::Validation => {
                request.is_none_or(|r| r.validation_failure().is_some() && !targets_another_pod(r, pod))
            }
            FailureCause::Withdrawn | FailureCause::Deleted | FailureCause::Evicted => true,
            FailureCause::WrongTarget => request.is_some_and(|r| targets_another_pod(r, pod)),
        };
        is_held_back && now < self.again
    }

    /// Whether it is shown as what blocks the pod: a failed validation until a request is taken up. A request
    /// for another pod shows by itself while it is there.
    pub(crate) fn is_shown(&self, now: Timestamp) -> bool {
        match self.cause {
            FailureCause::Validation => true,
            FailureCause::Withdrawn | FailureCause::Deleted | FailureCause::Evicted => now < self.again,
            FailureCause::WrongTarget => false,
        }
    }
}

/// Whether a request of this pod's UID names another pod: it serves no pod, and stands in the way of ours.
pub(crate) fn targets_another_pod(request: &EvictionRequest, pod: &Pod) -> bool {
    request.spec.target.pod.as_ref().is_some_and(|target| target.name != pod.name)
}

/// The time between a failure, the `count`th in a row, and the next request. A request that is deleted for
/// the first time is made again at once, because it may be a mistake, and so is one that targets another pod.
fn delay(cause: FailureCause, count: u32) -> Duration {
    FAILURE_BACKOFF.delay(match (cause, count) {
        (FailureCause::Deleted | FailureCause::WrongTarget, 0 | 1) => return Duration::ZERO,
        (FailureCause::Deleted | FailureCause::WrongTarget, _) => count - 2,
        _ => count.saturating_sub(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_from_five_minutes_to_an_hour() {
        let minutes = |cause| [1, 2, 3, 4, 5, 6, u32::MAX].map(|count| delay(cause, count).as_secs() / 60);
        assert_eq!(minutes(FailureCause::Validation), [5, 10, 20, 40, 60, 60, 60]);
        assert_eq!(minutes(FailureCause::Withdrawn), minutes(FailureCause::Validation));
        assert_eq!(minutes(FailureCause::Evicted), minutes(FailureCause::Validation));
        assert_eq!(minutes(FailureCause::Deleted), [0, 5, 10, 20, 40, 60, 60]);
        assert_eq!(minutes(FailureCause::WrongTarget), minutes(FailureCause::Deleted));
    }
}
