//! Pods whose request is in the way (it is being deleted, targets another pod or has failed), and pods that
//! are asked for again later.

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::metav1::ManagedFieldsEntry;
use drydock_api::reasons::{OTHER, REQUEST_WITHDRAWN, WORKLOAD_POD, WORKLOAD_RETURNS, WRONG_TARGET};
use drydock_api::text::cut;
use drydock_api::time::format_seconds;
use drydock_runtime::Pod;
use jiff::Timestamp;
use serde_json::Value;

use super::cause::BlockCause;
use crate::REQUESTER;
use crate::requests::failures::{FailureCause, RequestFailure};
use crate::requests::returns::PodReturns;

/// Most characters of a name that are shown.
const LONGEST_NAME: usize = 64;

/// The message about a request that is being deleted and that finalizers keep; none for any other. Its
/// deletion cancelled the eviction, and another request can be made only when it is gone.
pub(super) fn why_held(request: &EvictionRequest) -> Option<String> {
    let finalizers = &request.metadata.finalizers;
    if !request.is_being_deleted() || finalizers.is_empty() {
        return None;
    }
    let named = |finalizer: &String| {
        let member = format!("v:{}", Value::from(finalizer.as_str()));
        owned(finalizer, &managers(request, &["f:metadata", "f:finalizers", &member]))
    };
    let named: Vec<String> = finalizers.iter().map(named).collect();
    Some(format!(
        "The pod's EvictionRequest is being deleted and kept by its finalizers: {}",
        named.join(", ")
    ))
}

/// The message about a request that has this pod's UID as its name and targets another pod, with the time at
/// which it is replaced, if that is not now.
pub(super) fn why_wrong_target(request: &EvictionRequest, replaced_at: Option<Timestamp>) -> String {
    let target = request.spec.target.pod.as_ref().map_or("", |pod| pod.name.as_str());
    let target = owned(&format!("pod {target}"), &managers(request, &["f:spec", "f:target"]));
    let mut message =
        format!("The EvictionRequest that has the pod's UID as its name targets another pod: {target}");
    if let Some(at) = replaced_at {
        message.push_str(&format!("; it is replaced at {}", format_seconds(at)));
    }
    message
}

/// A name, with the field managers that own it. Their writers choose these names: each is cut, so that none
/// keeps the others out of the message.
fn owned(what: &str, managers: &[&str]) -> String {
    let cut = |name: &str| cut(name, LONGEST_NAME);
    let named: Vec<String> = managers.iter().map(|manager| cut(manager)).collect();
    match named.as_slice() {
        [] => cut(what),
        [one] => format!("{} (field manager {one})", cut(what)),
        all => format!("{} (field managers {})", cut(what), all.join(", ")),
    }
}

/// Field managers of the field at this path of FieldsV1.
fn managers<'r>(request: &'r EvictionRequest, path: &[&str]) -> Vec<&'r str> {
    let owns = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields();
        path.iter().try_fold(&fields, |fields, element| fields.get(element)).is_some()
    };
    let owners = request.metadata.managed_fields.iter().filter(owns);
    owners.map(|entry| entry.manager.as_str()).collect()
}

/// The cause for a pod whose last request failed.
pub(super) fn why_failed(pod: &Pod, failure: &RequestFailure) -> BlockCause {
    let (reason, what) = match failure.cause {
        FailureCause::Validation => return why_invalid(pod, &failure.why),
        FailureCause::Withdrawn => {
            let what = format!("Others took the requester {REQUESTER} out of the pod's EvictionRequest");
            (REQUEST_WITHDRAWN, what)
        }
        FailureCause::Deleted => (REQUEST_WITHDRAWN, "Others deleted the pod's EvictionRequest".to_owned()),
        FailureCause::Evicted => {
            (OTHER, "The pod's EvictionRequest has ended as Evicted while the pod is there".to_owned())
        }
        FailureCause::WrongTarget => {
            (WRONG_TARGET, "Others made the pod's EvictionRequest, for another pod".to_owned())
        }
    };
    let times = if failure.count == 1 { String::new() } else { format!(" {} times in a row", failure.count) };
    let again = format_seconds(failure.again);
    BlockCause::new(reason, format!("{what}{times}; the pod is asked for again at {again}"))
}

/// The cause for a pod whose request failed validation.
pub(super) fn why_invalid(pod: &Pod, words: &str) -> BlockCause {
    BlockCause::new(if pod.in_group { WORKLOAD_POD } else { OTHER }, words)
}

/// The cause for a pod that a workload has put back, while the pod is not asked to leave.
pub(super) fn why_returned(returns: &PodReturns, pod: &Pod, now: Timestamp) -> Option<BlockCause> {
    let (said, again) = returns.held_back(pod, now)?;
    let message = format!("{said}; it is asked to leave at {}", format_seconds(again));
    Some(BlockCause::new(WORKLOAD_RETURNS, message))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn request(metadata: &Value) -> EvictionRequest {
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn each_finalizer_is_named_with_those_who_set_it() {
        let owns = |manager: &str, finalizers: &[&str]| {
            let set = finalizers.iter().map(|f| (format!("v:\"{f}\""), json!({})));
            let set: serde_json::Map<String, Value> = set.collect();
            json!({ "manager": manager, "operation": "Update", "fieldsType": "FieldsV1",
                "fieldsV1": { "f:metadata": { "f:finalizers": set } } })
        };
        let mut metadata = json!({
            "deletionTimestamp": "2026-01-01T12:00:00Z",
            "finalizers": ["a.example.com/x", "b.example.com/y", "foregroundDeletion"],
            "managedFields": [owns("kubectl-edit", &["a.example.com/x"]),
                owns("operator", &["a.example.com/x", "b.example.com/y"])],
        });
        let expected = "The pod's EvictionRequest is being deleted and kept by its finalizers: a.example.com/x (field \
                        managers kubectl-edit, operator), b.example.com/y (field manager operator), foregroundDeletion";
        assert_eq!(why_held(&request(&metadata)).as_deref(), Some(expected));
        metadata["deletionTimestamp"] = Value::Null;
        assert_eq!(why_held(&request(&metadata)), None, "it is not being deleted");
    }

    #[test]
    fn a_request_for_another_pod_is_told_with_who_made_it_and_when_it_goes() {
        let mut squat = request(&json!({ "managedFields": [
            { "manager": "squatter", "fieldsV1": { "f:spec": { "f:target": { "f:pod": {} } } } },
            { "manager": "other", "fieldsV1": { "f:spec": { "f:requesters": {} } } },
        ] }));
        squat.spec.target.pod = serde_json::from_value(json!({ "name": "q", "uid": "u" })).unwrap();
        let expected = "The EvictionRequest that has the pod's UID as its name targets another pod: pod q (field manager squatter)";
        assert_eq!(why_wrong_target(&squat, None), expected);
        let at = "2026-01-01T12:00:00Z".parse().unwrap();
        assert_eq!(
            why_wrong_target(&squat, Some(at)),
            format!("{expected}; it is replaced at 2026-01-01T12:00:00Z")
        );
    }
}
