//! The reports of all interceptors about a pod that terminates or is gone.

use drydock_api::eviction_request::Blocked;
use drydock_api::eviction_request::limits::blocked_name;
use drydock_api::reasons::{FINALIZER, TERMINATING};
use drydock_interceptor_runtime::entry::ProgressReport;
use drydock_runtime::Pod;
use jiff::Timestamp;

/// The message about a terminating pod that is overdue, and what keeps it; none if it is not overdue.
fn overdue(pod: &Pod, now: Timestamp) -> Option<(String, Blocked)> {
    pod.overdue_at().filter(|due| *due <= now)?;
    let (what, reason, name) = match pod.finalizers.first() {
        Some(first) => {
            let what = format!("; it has the finalizers {}", pod.finalizers.join(", "));
            (what, FINALIZER, blocked_name(first))
        }
        None => (String::new(), TERMINATING, String::new()),
    };
    let blocked = Blocked { reason: reason.to_owned(), name, ..Blocked::default() };
    Some((format!("The pod is terminating and past its grace period{what}."), blocked))
}

/// Reports that the pod is gone.
pub(crate) fn gone() -> ProgressReport {
    ProgressReport {
        message: "The pod has terminated.".to_owned(),
        completed: true,
        ..ProgressReport::default()
    }
}

/// Reports that the pod terminates: `who` terminates it (empty if unknown), and what keeps it if it is
/// overdue.
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
    use super::*;

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
