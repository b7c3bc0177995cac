//! The result of an eviction, read from the host's answer
//! (k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go).

use std::time::Duration;

use drydock_api::text::cut;
use drydock_runtime::error::retry_after;
use drydock_runtime::{ApiErrorKind, classify};
use kube::core::Status;

/// Cause of a 429 that comes from a budget (k8s.io/api/policy/v1.DisruptionBudgetCause).
const BUDGET_CAUSE: &str = "DisruptionBudget";
/// Most characters of the host's message that we repeat.
const MAX_REPEATED: usize = 512;

/// The result of an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EvictionResult {
    /// The pod is terminating.
    Accepted,
    /// The pod is gone, or another one has its name.
    Gone,
    /// A PodDisruptionBudget does not allow it now; with the host's words.
    Budget(String),
    /// More than one PodDisruptionBudget covers the pod: the host never evicts it.
    ManyBudgets,
    /// An admission webhook or policy denies it, or cannot be called; with the host's words.
    Admission(String),
    /// Something else that will not pass by itself (authorization, an invalid object).
    Refused(String),
    /// A race was lost, or nothing was sent: try again.
    TryAgain,
    /// The host failed or did not answer in time, and may have accepted the eviction all the same.
    Unclear,
    /// The host asks to send less.
    Throttled(Option<Duration>),
}

impl EvictionResult {
    /// Whether this is a refusal, which counts as a retry and is reported.
    pub(crate) fn blocks(&self) -> bool {
        matches!(self, Self::Budget(_) | Self::ManyBudgets | Self::Admission(_) | Self::Refused(_))
    }

    /// Whether the eviction has used no disruption of a budget that may have had one for it.
    pub(crate) fn leaves_disruption(&self) -> bool {
        matches!(self, Self::Gone | Self::ManyBudgets | Self::Admission(_) | Self::Refused(_))
    }

    /// Whether the host seems to have too much to do.
    pub(crate) fn is_overload(&self) -> bool {
        matches!(self, Self::Throttled(_))
    }

    /// The kind of the result in one word, for metrics, logs and comparisons.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Gone => "gone",
            Self::Budget(_) => "budget",
            Self::ManyBudgets => "several-budgets",
            Self::Admission(_) => "admission",
            Self::Refused(_) => "refused",
            Self::TryAgain => "again",
            Self::Unclear => "unclear",
            Self::Throttled(_) => "throttled",
        }
    }
}

/// Reads the host's answer. The host reports several budgets with HTTP 201 and a Status that has code 500.
pub(crate) fn read(result: Result<Status, kube::Error>) -> EvictionResult {
    match result {
        Ok(status) if status.code < 400 => EvictionResult::Accepted,
        Ok(status) => from_error(&kube::Error::Api(Box::new(status))),
        Err(error) => from_error(&error),
    }
}

/// Reads an error.
pub(crate) fn from_error(error: &kube::Error) -> EvictionResult {
    let kube::Error::Api(status) = error else { return EvictionResult::Unclear };
    if is_admission(&status.message) {
        return EvictionResult::Admission(shortened(&status.message));
    }
    if let Some(cause) = budget_cause(status) {
        return EvictionResult::Budget(shortened(cause));
    }
    if status.message.contains("more than one PodDisruptionBudget") {
        return EvictionResult::ManyBudgets;
    }
    match classify(error) {
        ApiErrorKind::NotFound => EvictionResult::Gone,
        // Two kinds of conflict: the precondition on the UID, and the race for the budget's status.
        ApiErrorKind::Conflict | ApiErrorKind::AlreadyExists if is_another(&status.message) => {
            EvictionResult::Gone
        }
        ApiErrorKind::Conflict | ApiErrorKind::AlreadyExists => EvictionResult::TryAgain,
        ApiErrorKind::Unavailable => EvictionResult::Unclear,
        ApiErrorKind::Throttled => EvictionResult::Throttled(retry_after(error)),
        ApiErrorKind::Forbidden | ApiErrorKind::Invalid | ApiErrorKind::RefusedToken => {
            EvictionResult::Refused(shortened(&status.message))
        }
    }
}

/// Whether a message says that the pod of this name has another UID: the words are those of the eviction
/// handler, and of the storage below it (k8s.io/apiserver pkg/storage/interfaces.go).
fn is_another(message: &str) -> bool {
    message.contains("UID in the precondition") || message.contains("UID in precondition")
}

fn budget_cause(status: &Status) -> Option<&str> {
    let causes = &status.details.as_ref()?.causes;
    causes.iter().find(|c| c.reason == BUDGET_CAUSE).map(|c| c.message.as_str())
}

/// Whether a message is that of k8s.io/apiserver for a denial or a failure of a webhook or policy.
fn is_admission(message: &str) -> bool {
    (message.contains("admission webhook") && message.contains("denied the request"))
        || message.contains("failed calling webhook")
        || (message.contains("ValidatingAdmissionPolicy") && message.contains("denied request"))
}

/// The name of the webhook or policy that denied a request; empty if the message does not contain it. The
/// Status has it in its message alone.
pub(crate) fn named_webhook(words: &str) -> &str {
    let after = |mark: &str, end: char| Some(words.split_once(mark)?.1.split_once(end)?.0);
    after("admission webhook \"", '"')
        .or_else(|| after("failed calling webhook \"", '"'))
        .or_else(|| after("ValidatingAdmissionPolicy '", '\''))
        .unwrap_or_default()
}

/// The name of the budget that refused an eviction; empty if the message does not contain it. The Status has
/// it in its message alone.
pub(super) fn named_budget(words: &str) -> &str {
    words.strip_prefix("The disruption budget ").and_then(|rest| rest.split(' ').next()).unwrap_or_default()
}

fn shortened(message: &str) -> String {
    cut(message, MAX_REPEATED)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn refused(status: Value) -> EvictionResult {
        read(Err(kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()))))
    }

    #[test]
    fn budget_is_told_from_throttling_by_its_cause() {
        let budget = refused(json!({
            "status": "Failure", "code": 429, "reason": "TooManyRequests",
            "message": "Cannot evict pod as it would violate the pod's disruption budget.",
            "details": {"causes": [{"reason": "DisruptionBudget", "message": "The disruption budget b needs 2"}]}
        }));
        assert_eq!(budget, EvictionResult::Budget("The disruption budget b needs 2".into()));
        let throttled =
            refused(json!({"status": "Failure", "code": 429, "details": {"retryAfterSeconds": 3}}));
        assert_eq!(throttled, EvictionResult::Throttled(Some(Duration::from_secs(3))));
    }

    #[test]
    fn several_budgets_are_seen_though_the_host_answers_201() {
        let status = json!({"status": "Failure", "code": 500,
            "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."});
        assert_eq!(read(Ok(serde_json::from_value(status.clone()).unwrap())), EvictionResult::ManyBudgets);
        assert_eq!(refused(status), EvictionResult::ManyBudgets);
    }

    #[test]
    fn webhooks_and_policies_are_told_from_budgets() {
        for (code, name, message) in [
            (403, "w.example.com", "admission webhook \"w.example.com\" denied the request: not now"),
            (429, "w.example.com", "admission webhook \"w.example.com\" denied the request: busy"),
            (500, "w", "Internal error occurred: failed calling webhook \"w\": connection refused"),
            (
                422,
                "x",
                "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no",
            ),
        ] {
            assert_eq!(named_webhook(message), name);
            let result = refused(json!({"status": "Failure", "code": code, "message": message}));
            assert_eq!(result, EvictionResult::Admission(message.into()));
        }
    }

    #[test]
    fn lost_race_and_timeout_are_tried_again_and_never_count() {
        for (code, expected) in [
            (409, EvictionResult::TryAgain),
            (500, EvictionResult::Unclear),
            (503, EvictionResult::Unclear),
            (504, EvictionResult::Unclear),
        ] {
            let result = refused(json!({"status": "Failure", "code": code, "message": "couldn't update"}));
            assert_eq!(result, expected);
            assert!(!result.blocks());
        }
        assert_eq!(read(Err(kube::Error::Service("broken pipe".into()))), EvictionResult::Unclear);
    }

    #[test]
    fn missing_and_replaced_pods_are_gone() {
        let pod = json!({"name": "p", "kind": "pods"});
        assert_eq!(refused(json!({"status": "Failure", "code": 404, "details": pod})), EvictionResult::Gone);
        assert_eq!(refused(json!({"status": "Failure", "code": 404})), EvictionResult::Unclear);
        for message in [
            "Operation cannot be fulfilled: the UID in the precondition (a) does not match",
            "StorageError: invalid object: Precondition failed: UID in precondition: a, UID in object meta: b",
        ] {
            assert_eq!(
                refused(json!({"status": "Failure", "code": 409, "message": message})),
                EvictionResult::Gone
            );
        }
    }

    #[test]
    fn missing_rights_are_told() {
        let result =
            refused(json!({"status": "Failure", "code": 403, "message": "cannot create pods/eviction"}));
        assert!(matches!(result, EvictionResult::Refused(_)) && result.blocks());
    }

    #[test]
    fn success_is_accepted() {
        assert_eq!(
            read(Ok(serde_json::from_value(json!({"status": "Success"})).unwrap())),
            EvictionResult::Accepted
        );
    }
}
