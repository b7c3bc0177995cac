//! Copies the pod's labels to the request. The pod's values win, and a label that is taken from the pod is
//! taken from the request too if it came from the pod.
//!
//! They are written by server-side apply under a manager of their own, so that the API server itself knows which labels
//! came from the pod, and removes those that the next apply does not name, unless somebody else set them too.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use drydock_api::eviction_request::EvictionRequest;
use serde_json::Value;

/// Field manager of the synchronized labels.
pub(crate) const MANAGER: &str = "drydock-label-sync";

/// Most bytes of keys and values that are synchronized. A pod may have a megabyte of labels: the request would have no
/// room left for its status.
const MAX_BYTES: usize = 16 << 10;

/// Returns the labels to apply, if the request's are to change: all of the pod's, or the first 16 KiB of them
/// in the order of their keys.
pub(crate) fn to_apply(
    request: &EvictionRequest,
    of_pod: &BTreeMap<String, String>,
) -> Option<BTreeMap<String, String>> {
    let of_pod = bounded(of_pod);
    let present = &request.metadata.labels;
    let differs = of_pod.iter().any(|(key, value)| present.get(key) != Some(value));
    let left = || {
        let from_pod = from_pod(&request.metadata.managed_fields);
        from_pod.iter().any(|key| !of_pod.contains_key(*key) && present.contains_key(*key))
    };
    (differs || left()).then(|| of_pod.into_owned())
}

fn bounded(labels: &BTreeMap<String, String>) -> Cow<'_, BTreeMap<String, String>> {
    if labels.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() <= MAX_BYTES {
        return Cow::Borrowed(labels);
    }
    let mut bytes = 0;
    let first = labels.iter().take_while(|(key, value)| {
        bytes += key.len() + value.len();
        bytes <= MAX_BYTES
    });
    Cow::Owned(first.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Keys of the labels that our manager applied.
fn from_pod(managed: &[Value]) -> BTreeSet<&str> {
    let ours = managed.iter().filter(|entry| {
        entry["manager"] == MANAGER && entry["operation"] == "Apply" && entry.get("subresource").is_none()
    });
    let labels = ours.filter_map(|entry| entry["fieldsV1"]["f:metadata"]["f:labels"].as_object());
    labels.flat_map(|labels| labels.keys()).filter_map(|key| key.strip_prefix("f:")).collect()
}
