//! The labels of a pod on its request (KEP-4563, EvictionRequest API: the labels are synchronized from the target).
//!
//! The pod's values win, and a label that leaves the pod leaves the request if it came from the pod and nobody else set
//! it. The field managers of the request say where a label came from: a requester that copies labels when it makes the
//! request, and the eviction request controller, which keeps them the same afterwards.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use drydock_machinery::metav1::ManagedFieldsEntry;

use super::types::EvictionRequest;

/// Field manager that keeps the labels of requests the same as their pods'.
pub const LABEL_SYNC: &str = "drydock-label-sync";
/// Name of the requester of node maintenances, and its field manager. It makes requests with the pod's labels.
pub const NODE_MAINTENANCE: &str = "nodemaintenance.k8s.io";

/// Maximum number of labels that are copied. The caches of controllers keep no more of a pod's: 5,000 labels of three bytes
/// would take half a megabyte there.
pub const MAX_LABELS: usize = 256;
/// Maximum bytes of keys and values that are copied. A pod may have a megabyte of labels: the request would have no
/// room left for its status.
pub const MAX_BYTES: usize = 16 << 10;

/// Returns the labels that are copied to a request: all of the pod's, or the first 256 labels and 16 KiB of them in the
/// order of their keys.
pub fn copied(of_pod: &BTreeMap<String, String>) -> Cow<'_, BTreeMap<String, String>> {
    let fits = of_pod.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() <= MAX_BYTES;
    if fits && of_pod.len() <= MAX_LABELS {
        return Cow::Borrowed(of_pod);
    }
    let mut bytes = 0;
    let first = of_pod.iter().take(MAX_LABELS).take_while(|(key, value)| {
        bytes += key.len() + value.len();
        bytes <= MAX_BYTES
    });
    Cow::Owned(first.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Returns the changes that make the labels of a request those of its pod: a value sets a label, none removes it. Labels that
/// the request may have or not, as far as is known, stay as they are.
pub fn changes(
    request: &EvictionRequest,
    of_pod: &BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let of_pod = copied(of_pod);
    let (present, known) = (&request.metadata.labels, request.metadata.known_labels());
    let differs = |key: &str, value: &String| present.get(key) != Some(value) && !known.may_hide(key);
    let set = of_pod.iter().filter(|(key, value)| differs(key, value));
    let set = set.map(|(key, value)| (key.clone(), Some(value.clone())));
    let mut changes: BTreeMap<String, Option<String>> = set.collect();
    let is_left = |key: &String| !of_pod.contains_key(key) && present.contains_key(key);
    // The managed fields are text, and read only for a label that the pod does not have.
    if present.keys().any(is_left) {
        changes.extend(from_pod(request).into_iter().filter(is_left).map(|key| (key, None)));
    }
    changes
}

/// Returns the labels of a request that its field manager `manager` applied. An apply that leaves one out removes it.
pub fn applied_by(request: &EvictionRequest, manager: &str) -> BTreeMap<String, String> {
    let entries = request.metadata.managed_fields.iter();
    let own = entries.filter(|entry| entry.manager == manager && entry.operation == "Apply");
    let labels = own.flat_map(labels_of).filter_map(|key| request.metadata.labels.get_key_value(&key));
    labels.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Keys of the labels that came from the pod, and that nobody else has set.
fn from_pod(request: &EvictionRequest) -> BTreeSet<String> {
    let is_copier =
        |entry: &&ManagedFieldsEntry| [LABEL_SYNC, NODE_MAINTENANCE].contains(&entry.manager.as_str());
    let (copiers, others): (Vec<_>, Vec<_>) = request.metadata.managed_fields.iter().partition(is_copier);
    let of_others: BTreeSet<String> = others.into_iter().flat_map(labels_of).collect();
    copiers.into_iter().flat_map(labels_of).filter(|key| !of_others.contains(key)).collect()
}

/// Keys of the labels of an entry of the managed fields.
fn labels_of(entry: &ManagedFieldsEntry) -> Vec<String> {
    let fields = entry.fields();
    let labels = fields["f:metadata"]["f:labels"].as_object();
    let keys = labels.into_iter().flat_map(|labels| labels.keys());
    keys.filter_map(|key| key.strip_prefix("f:")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn labels(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn request(all: &[(&str, &str)], managers: &[(&str, &[&str])]) -> EvictionRequest {
        let mut request = EvictionRequest::named("ns", "u");
        request.metadata.labels = labels(all).into();
        let entry = |(manager, keys): &(&str, &[&str])| {
            let keys: BTreeMap<String, Value> =
                keys.iter().map(|key| (format!("f:{key}"), json!({}))).collect();
            let fields = json!({"f:metadata": {"f:labels": keys}});
            let entry = json!({"manager": manager, "operation": "Apply", "fieldsV1": fields});
            serde_json::from_value(entry).unwrap()
        };
        request.metadata.managed_fields = managers.iter().map(entry).collect();
        request
    }

    #[test]
    fn labels_of_the_pod_win_and_absent_ones_leave_only_if_they_came_from_the_pod() {
        let pod = labels(&[("app", "new")]);
        let present = [("app", "old"), ("own", "kept"), ("gone", "x")];
        let set = ("app".to_owned(), Some("new".to_owned()));
        assert_eq!(changes(&request(&present, &[]), &pod), [set.clone()].into());
        for copier in [LABEL_SYNC, NODE_MAINTENANCE] {
            let copied = request(&present, &[(copier, &["app", "gone"])]);
            assert_eq!(changes(&copied, &pod), [set.clone(), ("gone".to_owned(), None)].into());
            let shared = request(&present, &[(copier, &["app", "gone"]), ("kubectl", &["gone"])]);
            assert_eq!(changes(&shared, &pod), [set.clone()].into(), "somebody else set it too");
        }
        assert!(changes(&request(&[("app", "new"), ("own", "kept")], &[]), &pod).is_empty());
    }

    /// A pod may have labels of a megabyte in all: the controller copied them onto the request, which then had no room
    /// left for its status.
    #[test]
    fn labels_are_copied_up_to_a_bound() {
        let pod = (0..10_000).map(|i| (format!("example.com/{i:05}"), "v".repeat(63))).collect();
        let all = copied(&pod).into_owned();
        let bytes: usize = all.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert!((15 << 10..=16 << 10).contains(&bytes), "{bytes}");
        let mut request = request(&[], &[]);
        request.metadata.labels = all.into();
        assert!(changes(&request, &pod).is_empty(), "it comes to rest");
        let short = (0..300).map(|i| (format!("{i:03}"), String::new())).collect();
        assert_eq!(copied(&short).len(), MAX_LABELS);
    }

    /// Others had given the request so many labels that a cache does not hold them all: the pod's would have been set without end.
    #[test]
    fn what_is_not_known_of_a_request_is_not_changed() {
        let mut cut = request(&[("app", "old"), ("b", "x")], &[(LABEL_SYNC, &["app", "b", "gone"])]);
        cut.metadata.labels_cut_from = Some("c".into());
        let pod = labels(&[("app", "new"), ("tier", "web")]);
        assert_eq!(
            changes(&cut, &pod),
            [("app".to_owned(), Some("new".to_owned())), ("b".to_owned(), None)].into()
        );
    }

    #[test]
    fn an_apply_that_leaves_something_out_can_keep_the_labels_that_it_had() {
        let request = request(&[("app", "a"), ("own", "b")], &[("m", &["app", "gone"]), ("n", &["own"])]);
        assert_eq!(applied_by(&request, "m"), labels(&[("app", "a")]));
        assert!(applied_by(&request, "o").is_empty());
    }
}
