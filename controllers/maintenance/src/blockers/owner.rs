//! Events for the owner of a pod that no interceptor publishes. Imperative eviction and the DaemonSet
//! interceptor publish what blocks them.
//!
//! `eviction_request::retention`, which decides how long the request is kept, relies on these events.

use drydock_api::eviction_request::interceptors::KUBELET;
use drydock_api::eviction_request::transitions;
use drydock_runtime::Pod;
use drydock_runtime::events::Severity;
use drydock_runtime::events::reasons::EVICTION_BLOCKED;
use jiff::{SignedDuration, Timestamp};

use super::cause::{BlockCause, ForOwner};
use super::interceptor::silent_at;
use super::shown::{BlockerKey, ShownBlocker};
use crate::actions::{EventDraft, EventSubject, MaintenanceDecision};
use crate::world::WorldView;

/// How long a change of leader may take: the previous leader has published the events of causes that are
/// older.
const CHANGE_OF_LEADER: SignedDuration = SignedDuration::from_secs(60);

/// Publishes events for the owners of pods.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    /// Whether all pods have been checked once since the start.
    has_checked_all: bool,
}

impl Owners {
    /// Publishes what blocks a pod to its owner, once; `before` is the pod's blocker in the last step.
    pub(super) fn publish(
        &self,
        view: &WorldView<'_>,
        pod: &Pod,
        why: &BlockCause,
        before: Option<&ShownBlocker>,
        decision: &mut MaintenanceDecision,
    ) {
        let is_published = before.is_some_and(|before| before.has_published(why));
        let Some(cause) = why.for_owner.filter(|_| !is_published) else { return };
        if self.has_checked_all || !was_published(view, pod, cause) {
            let about = EventSubject::Eviction(pod.namespace.clone(), pod.uid.clone());
            let message = why.text.brief();
            decision.events.push(EventDraft {
                about,
                severity: Severity::Warning,
                reason: EVICTION_BLOCKED,
                message,
                is_logged: false,
            });
        }
    }

    /// Records that all pods have been checked.
    pub(super) fn end_check(&mut self) {
        self.has_checked_all = true;
    }
}

impl ShownBlocker {
    /// Whether the owner of the pod has had an event about this cause. Of a blocker that was stored before a
    /// restart only the reason is known, so that alone decides.
    fn has_published(&self, why: &BlockCause) -> bool {
        let BlockerKey { about, for_owner, .. } = &self.words.key;
        let is_same = (about, *for_owner) == (&why.about, why.for_owner);
        self.blocker.reason == why.reason && (is_same || self.words.at == Timestamp::MIN)
    }
}

/// Whether the previous leader has published the event: the cause has existed for so long that it must have
/// seen it.
fn was_published(view: &WorldView<'_>, pod: &Pod, cause: ForOwner) -> bool {
    let Some(request) = view.world.request(pod) else { return false };
    let active = request.active_interceptor_status();
    let since = match cause {
        ForOwner::NoAgent if transitions::passed_over(request).any(|name| name == KUBELET) => return true,
        ForOwner::NoAgent | ForOwner::NeverReported => {
            active.and_then(|active| silent_at(view, request, active))
        }
        ForOwner::SaysBlocked => active.and_then(|active| active.blocked.as_ref()?.since_time),
    };
    let published_by = since.and_then(|at| at.checked_add(CHANGE_OF_LEADER).ok());
    published_by.is_some_and(|at| at <= view.now)
}
