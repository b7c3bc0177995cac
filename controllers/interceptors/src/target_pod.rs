//! The pod that a request is about: which interceptor evicts it, and the progress of one that is gone or terminates.

use std::sync::Arc;

use drydock_api::eviction_request::blocked::{FINALIZER, MAX_NAME, TERMINATING};
use drydock_api::eviction_request::interceptors::{DAEMON_SET, IMPERATIVE_EVICTION, KUBELET};
use drydock_api::eviction_request::{Blocked, EvictionRequest};
use drydock_api::node_maintenance::PodType;
use drydock_runtime::{Cacheable, Pod, Store};
use jiff::Timestamp;

use crate::report::ProgressReport;

/// The interceptor that evicts a pod: one for each pod, by its type. The owner reference is believed, as the drain plan
/// believes it: whether there is such a DaemonSet makes no difference, since no other interceptor evicts the pod.
pub(crate) fn responsible(pod: &Pod) -> &'static str {
    match pod.pod_type() {
        PodType::Static => KUBELET,
        PodType::DaemonSet => DAEMON_SET,
        PodType::Default | PodType::Unknown => IMPERATIVE_EVICTION,
    }
}

/// The target of a request, unless it is gone or terminal.
pub(crate) fn target_of(request: &EvictionRequest, pods: &Store<Pod>) -> Option<Arc<Pod>> {
    let target = request.spec.target.pod.as_ref()?;
    let pod = pods.find(request.namespace(), &target.name)?;
    (pod.uid == target.uid && !pod.is_terminal()).then_some(pod)
}

/// What keeps a terminating pod that is overdue, and how that is said.
fn overdue(pod: &Pod, now: Timestamp) -> Option<(String, Blocked)> {
    pod.overdue_at().filter(|due| *due <= now)?;
    let (what, reason, name) = match pod.finalizers.first() {
        Some(first) => {
            let what = format!("; it has the finalizers {}", pod.finalizers.join(", "));
            (what, FINALIZER, first.chars().take(MAX_NAME).collect())
        }
        None => (String::new(), TERMINATING, String::new()),
    };
    let blocked = Blocked { reason: reason.to_owned(), name, ..Blocked::default() };
    Some((format!("The pod is terminating and past its grace period{what}."), blocked))
}

/// The pod is gone.
pub(crate) fn gone() -> ProgressReport {
    ProgressReport {
        message: "The pod has terminated.".to_owned(),
        completed: true,
        ..ProgressReport::default()
    }
}

/// The pod is on its way out: what keeps it, if it is overdue, behind who terminates it, if that is known.
pub(crate) fn terminating(pod: &Pod, who: &str, now: Timestamp) -> ProgressReport {
    let (message, blocked) = match overdue(pod, now) {
        Some((words, blocked)) if who.is_empty() => (words, Some(blocked)),
        Some((words, blocked)) => (format!("{who} {words}"), Some(blocked)),
        None if who.is_empty() => ("The pod is terminating.".to_owned(), None),
        None => (who.to_owned(), None),
    };
    ProgressReport { message, expected_finish: pod.deletion_timestamp, blocked, ..ProgressReport::default() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_runtime::cache::{MIRROR_ANNOTATION, OwnerRef};

    use super::*;

    /// A mirror pod is a static one, even if it has a controller; and an owner of a version that is not served makes no
    /// interceptor responsible that would not act.
    #[test]
    fn each_pod_has_one_interceptor_that_evicts_it() {
        let owned = |version: &str, kind: &str| {
            let owner = OwnerRef { api_version: version.into(), kind: kind.into(), ..OwnerRef::default() };
            Pod { controller: Some(owner), ..Pod::default() }
        };
        let mirror = |pod: Pod| {
            let annotations = [(MIRROR_ANNOTATION.to_owned(), "x".to_owned())].into();
            Pod { annotations, ..pod }
        };
        for (pod, name) in [
            (Pod::default(), IMPERATIVE_EVICTION),
            (owned("apps/v1", "ReplicaSet"), IMPERATIVE_EVICTION),
            (owned("apps/v9", "DaemonSet"), IMPERATIVE_EVICTION),
            (owned("apps/v1", "DaemonSet"), DAEMON_SET),
            (mirror(Pod::default()), KUBELET),
            (mirror(owned("apps/v1", "DaemonSet")), KUBELET),
        ] {
            assert_eq!(responsible(&pod), name, "{pod:?}");
        }
    }

    /// A finalizer was reported in the second in which the grace period ended, when most are about to be removed.
    #[test]
    fn a_pod_is_overdue_ten_seconds_after_its_grace_period() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let going = |finalizers: &[&str]| Pod {
            deletion_timestamp: Some(at(30)),
            finalizers: finalizers.iter().map(|name| (*name).to_owned()).collect(),
            ..Pod::default()
        };
        assert_eq!(overdue(&going(&["f/x"]), at(39)), None);
        let (message, blocked) = overdue(&going(&["f/x", "f/y"]), at(40)).unwrap();
        assert_eq!((blocked.reason.as_str(), blocked.name.as_str()), (FINALIZER, "f/x"));
        assert!(message.ends_with("past its grace period; it has the finalizers f/x, f/y."), "{message}");
        assert_eq!(overdue(&going(&[]), at(40)).unwrap().1.reason, TERMINATING);
        assert_eq!(overdue(&Pod::default(), at(40)), None);
    }
}
