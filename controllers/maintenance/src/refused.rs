//! Pods whose requests failed validation: why, and when they may be asked for again.
//!
//! The eviction controller removes such a request after a while, as it shuts everybody else out of the pod. The pod stays a
//! blocker all the same, until a request of it is taken up.

use std::collections::{HashMap, HashSet};

use drydock_api::eviction_request::{CANCELED, EvictionRequest, REASON_NO_REQUESTERS};
use drydock_api::meta::{Condition, find_condition};
use drydock_runtime::Pod;
use jiff::{SignedDuration, Timestamp};

use crate::view::View;

/// How long after the first failure a pod is asked for again; doubled with each further one.
const FIRST: SignedDuration = SignedDuration::from_mins(5);
/// The longest time between a failure and the next request.
const LONGEST: SignedDuration = SignedDuration::from_hours(1);

/// What is remembered of pods that are to leave, by UID. After a restart it is learnt anew from the requests that are
/// there, and from one more failure where none is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refused(HashMap<String, Refusal>);

/// The last request of a pod that failed.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// UID of the request.
    request: String,
    /// How many have failed, one after the other.
    failures: u32,
    /// What was said of it.
    pub(crate) message: String,
    /// Nobody asks before.
    pub(crate) again: Timestamp,
}

impl Refused {
    /// Takes in what the requests of the pods that are to leave say.
    pub(crate) fn look(&mut self, view: &View<'_>) {
        let pods = || view.counted.values().flatten().filter(|pod| view.targeted.contains(pod.uid.as_str()));
        let present: HashSet<&str> = pods().map(|pod| pod.uid.as_str()).collect();
        self.0.retain(|uid, _| present.contains(uid.as_str()));
        for pod in pods() {
            match view.world.request(pod) {
                Some(request) if is_taken_up(request) && failure(request).is_none() => {
                    drop(self.0.remove(&pod.uid))
                }
                Some(request) => self.learn(pod, request, view.now),
                None => {}
            }
        }
    }

    /// The refusal of a pod whose requests have failed, the last one included.
    pub(crate) fn of(&self, pod: &Pod) -> Option<&Refusal> {
        self.0.get(&pod.uid)
    }

    fn learn(&mut self, pod: &Pod, request: &EvictionRequest, now: Timestamp) {
        // What was wrong with a request for another pod says nothing of this one.
        let Some(failed) = failure(request).filter(|_| !is_astray(request, pod)) else { return };
        let before = self.0.get(&pod.uid);
        if before.is_some_and(|refusal| refusal.request == request.metadata.uid) {
            return;
        }
        let failures = before.map_or(1, |refusal| refusal.failures.saturating_add(1));
        let at = failed.last_transition_time.map_or(now, |at| at.min(now));
        let refusal = Refusal {
            request: request.metadata.uid.clone(),
            failures,
            message: failed.message.clone(),
            again: at.checked_add(delay(failures)).unwrap_or(Timestamp::MAX),
        };
        self.0.insert(pod.uid.clone(), refusal);
    }
}

/// The condition of a request that was canceled though somebody asked: it failed validation.
pub(crate) fn failure(request: &EvictionRequest) -> Option<&Condition> {
    let canceled = find_condition(&request.status.conditions, CANCELED)?;
    (canceled.is_true() && canceled.reason != REASON_NO_REQUESTERS).then_some(canceled)
}

/// Whether a request of this pod's UID names another pod: it serves no pod, and stands in the way of ours.
pub(crate) fn is_astray(request: &EvictionRequest, pod: &Pod) -> bool {
    request.spec.target.pod.as_ref().is_some_and(|target| target.name != pod.name)
}

/// Whether a request has passed validation.
fn is_taken_up(request: &EvictionRequest) -> bool {
    !request.status.target_interceptors.is_empty() || request.is_evicted()
}

/// The time between the `failures`th failure in a row and the next request.
fn delay(failures: u32) -> SignedDuration {
    let factor = 1i32.checked_shl(failures.saturating_sub(1).min(16)).unwrap_or(1);
    FIRST.checked_mul(factor).map_or(LONGEST, |delay| delay.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_from_five_minutes_to_an_hour() {
        let minutes: Vec<i64> =
            [1, 2, 3, 4, 5, 6, u32::MAX].map(|failures| delay(failures).as_mins()).to_vec();
        assert_eq!(minutes, [5, 10, 20, 40, 60, 60, 60]);
    }
}
