//! EvictionRequest and NodeMaintenance as caches hold them.

use std::sync::Arc;

use drydock_api::eviction_request::{self, EvictionRequest, pod_labels};
use drydock_api::json_len;
use drydock_api::metav1::{FieldsV1, ManagedFieldsEntry};
use drydock_api::node_maintenance::{self, NodeMaintenance, NodeMaintenanceStage};
use drydock_api::text::cut_bytes;
use serde_json::{Map, Value, json};

use super::bounded_map::{BoundedMap, WantedPairs};
use super::cacheable::Cacheable;
use super::shared_parts::SharedParts;

impl Cacheable for EvictionRequest {
    const GROUP: &'static str = drydock_api::GROUP;
    const VERSION: &'static str = drydock_api::VERSION;
    const KIND: &'static str = "EvictionRequest";
    const PLURAL: &'static str = eviction_request::RESOURCE;

    fn name(&self) -> &str {
        &self.metadata.name
    }
    fn namespace(&self) -> &str {
        &self.metadata.namespace
    }
    fn uid(&self) -> &str {
        &self.metadata.uid
    }
    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
    /// Others may give a request 64 KiB of labels and annotations. Of the labels, the first in the order of their keys are left.
    fn trim(&mut self) {
        let meta = &mut self.metadata;
        meta.owner_references = Vec::new();
        if meta.annotations.keys().any(|key| !is_read(key)) {
            Arc::make_mut(&mut meta.annotations).retain(|key, _| is_read(key));
        }
        if !BoundedMap::<KeptRequestLabels>::fits(&meta.labels) {
            let kept = BoundedMap::<KeptRequestLabels>::of(std::mem::take(Arc::make_mut(&mut meta.labels)));
            (meta.labels, meta.labels_cut_from) = (kept.pairs.into(), kept.cut_from);
        }
    }
    /// Of the managed fields, which are most of a request, the owners of labels, finalizers and target are left, and
    /// those who have written an interceptor's entry.
    fn compact(&mut self, parts: &mut SharedParts) {
        (self.api_version, self.kind) = <_>::default();
        let meta = &mut self.metadata;
        meta.managed_fields = meta.managed_fields.iter().filter_map(compacted).collect();
        // Unlike a map, a list takes room until it is forgotten, though no object has it any more.
        if meta.managed_fields.len() <= MAX_SHARED_ENTRIES {
            parts.managed_fields.share(&mut meta.managed_fields);
        }
        parts.maps.share(&mut meta.labels);
        parts.maps.share(&mut meta.annotations);
        // A list that grew while it was decoded has room for four items at least.
        self.spec.requesters.shrink_to_fit();
        self.spec.requester_users.shrink_to_fit();
        let status = &mut self.status;
        status.interceptors.shrink_to_fit();
        status.target_interceptors.shrink_to_fit();
        status.active_interceptors.shrink_to_fit();
        status.processed_interceptors.shrink_to_fit();
        status.conditions.shrink_to_fit();
    }
}

/// Whether the path is one of our group and version. The host serves others of the group, Leases among them.
pub fn is_of_own_kinds(path: &str) -> bool {
    let of_group = path.strip_prefix("/apis/").and_then(|path| path.strip_prefix(drydock_api::API_VERSION));
    of_group.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Most entries of managed fields that are shared between objects.
const MAX_SHARED_ENTRIES: usize = 16;

/// The fields whose owners are read: blockers name those of finalizers and of the target, labels are synchronized by
/// theirs, and an event names who has ended an interceptor's turn.
const OWNED: [[&str; 2]; 4] = [
    ["f:metadata", "f:labels"],
    ["f:metadata", "f:finalizers"],
    ["f:spec", "f:target"],
    ["f:status", "f:interceptors"],
];

/// Returns an entry of the managed fields with what it owns of these fields; none if that is nothing.
fn compacted(entry: &ManagedFieldsEntry) -> Option<ManagedFieldsEntry> {
    let mut all = entry.fields_v1.as_ref()?.to_value();
    let mut fields = Map::new();
    // Who chose the interceptors made their entries, and is none of them.
    let is_assigner = all["f:status"]["f:targetInterceptors"].is_object();
    for [part, field] in OWNED.into_iter().filter(|[part, _]| !is_assigner || *part != "f:status") {
        if let Some(owned) = all.get_mut(part).and_then(|part| part.get_mut(field)).map(Value::take) {
            // Of the target it is enough that it is owned.
            let owned = if field == "f:target" { json!({}) } else { owned };
            fields.entry(part).or_insert_with(|| json!({}))[field] = owned;
        }
    }
    let is_used = !fields.is_empty();
    let fields_v1 = Some(FieldsV1::from(&Value::Object(fields)));
    let (manager, operation) = (entry.manager.clone(), entry.operation.clone());
    is_used.then(|| ManagedFieldsEntry { manager, operation, fields_v1, ..ManagedFieldsEntry::default() })
}

impl Cacheable for NodeMaintenance {
    const GROUP: &'static str = drydock_api::GROUP;
    const VERSION: &'static str = drydock_api::VERSION;
    const KIND: &'static str = "NodeMaintenance";
    const PLURAL: &'static str = node_maintenance::RESOURCE;

    fn name(&self) -> &str {
        &self.metadata.name
    }
    fn namespace(&self) -> &str {
        ""
    }
    fn uid(&self) -> &str {
        &self.metadata.uid
    }
    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
    fn creator(&self) -> &str {
        &self.status.creator
    }
    fn comes_first(&self) -> bool {
        self.spec.stage == NodeMaintenanceStage::Drain
    }
    /// Of the metadata that others write, only the finalizers are read, and of the spec no term that selects nothing. The bytes
    /// of what is dropped are still known: they leave no room for the status.
    fn trim(&mut self) {
        let before = json_len(&self.metadata) + json_len(&self.spec);
        let meta = &mut self.metadata;
        meta.managed_fields = Arc::default();
        (meta.labels, meta.annotations, meta.owner_references) = <_>::default();
        if let Some(selector) = &mut self.spec.node_selector {
            selector.node_selector_terms.retain(|term| !term.is_empty());
            selector.node_selector_terms.shrink_to_fit();
        }
        if self.spec.reason.len() > MAX_REASON {
            self.spec.reason = cut_bytes(&self.spec.reason, MAX_REASON);
        }
        let after = json_len(&self.metadata) + json_len(&self.spec);
        self.metadata.trimmed_bytes = before.saturating_sub(after);
    }
}

/// Most bytes of the reason of a maintenance that are kept: no message repeats as many.
const MAX_REASON: usize = 4 << 10;

/// Labels of a request: as many as are copied from its pod, and as many of others.
struct KeptRequestLabels;

impl WantedPairs for KeptRequestLabels {
    const MAX_PAIRS: usize = 2 * pod_labels::MAX_LABELS;
    const MAX_BYTES: usize = 2 * pod_labels::MAX_BYTES;

    fn is_wanted(_: &str) -> bool {
        true
    }
    fn is_essential(_: &str) -> bool {
        false
    }
}

/// Whether an annotation of a request is read. All are of node maintenance.
fn is_read(annotation: &str) -> bool {
    annotation.starts_with("nodemaintenance.k8s.io/")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use drydock_api::eviction_request::pod_labels::{applied_by, changes};

    use super::super::kube_object::KubeObject;
    use super::*;

    fn request() -> EvictionRequest {
        let entry = |manager: &str, operation: &str, fields: Value| {
            json!({
                "manager": manager, "operation": operation, "apiVersion": "coordination.k8s.io/v1alpha1",
                "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
            })
        };
        let labels = |key: &str| {
            json!({
                "f:metadata": {"f:annotations": {"f:a": {}}, "f:labels": {key: {}}},
                "f:spec": {"f:requesters": {}, "f:target": {"f:pod": {"f:name": {}, "f:uid": {}}}},
            })
        };
        let finalizers = json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"x.example.com/stay\"": {}}}});
        serde_json::from_value(json!({
            "metadata": {
                "name": "u", "namespace": "ns", "uid": "1", "labels": {"app": "a", "tier": "b", "own": "c"},
                "managedFields": [
                    entry("nodemaintenance.k8s.io", "Apply", labels("f:app")),
                    entry("drydock-label-sync", "Update", labels("f:tier")),
                    entry("kubectl", "Update", labels("f:own")),
                    entry("kubectl-edit", "Update", finalizers),
                    entry("saver.example.com", "Apply", json!({"f:status": {"f:interceptors": {"k:{\"name\":\"a.b\"}": {}}}})),
                    entry("drydock", "Update", json!({"f:status": {"f:conditions": {".": {}}}})),
                    entry("assigner", "Update", json!({"f:status": {
                        "f:interceptors": {"k:{\"name\":\"a.b\"}": {}},
                        "f:targetInterceptors": {"k:{\"name\":\"a.b\"}": {}},
                    }})),
                ],
            },
        }))
        .unwrap()
    }

    /// A maintenance with 70,000 labels took 20 MiB.
    #[test]
    fn of_the_metadata_of_a_maintenance_names_and_finalizers_are_kept_however_much_there_is() {
        let labels: Map<_, _> = (0..70_000).map(|at| (format!("k{at}"), json!(""))).collect();
        let many = |item: Value| vec![item; 1000];
        let metadata = json!({
            "name": "m", "uid": "1", "resourceVersion": "7", "finalizers": ["a/b"],
            "labels": labels, "annotations": {"example.com/a": "x".repeat(200_000)},
            "ownerReferences": many(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "1"})),
            "managedFields": many(json!({"manager": "m", "fieldsV1": {"f:spec": {}}})),
        });
        let wire: KubeObject<NodeMaintenance> =
            serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let kept = serde_json::to_string(&wire.object.metadata).unwrap();
        assert!(kept.len() < 200 && kept.contains("a/b") && kept.contains("\"7\""), "{kept}");
    }

    /// The room that is left for the status is worked out from the cached object: without what was dropped, the object was too
    /// large for the storage, and each write of the status was refused.
    #[test]
    fn the_size_of_a_trimmed_maintenance_is_that_of_the_stored_one() {
        let terms = [vec![json!({}); 999], vec![json!({"matchFields": [{"key": "metadata.name"}]})]].concat();
        let object = json!({
            "metadata": {"name": "m", "labels": {"a": "b"}, "annotations": {"example.com/a": "x".repeat(250_000)},
                "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"nodeSelector": {"nodeSelectorTerms": terms}, "reason": "r".repeat(10_000)},
        });
        let whole: NodeMaintenance = serde_json::from_value(object.clone()).unwrap();
        let trimmed = serde_json::from_value::<KubeObject<NodeMaintenance>>(object).unwrap().object;
        let bytes = |it: &NodeMaintenance| json_len(&it.metadata) + json_len(&it.spec);
        assert_eq!(bytes(&trimmed) + trimmed.metadata.trimmed_bytes, bytes(&whole));
        let terms = trimmed.spec.node_selector.as_ref().unwrap().node_selector_terms.len();
        assert_eq!((terms, trimmed.spec.reason.len(), bytes(&trimmed) < 5_000), (1, MAX_REASON, true));
    }

    /// 64 MiB of requests with the shortest labels took five times as much.
    #[test]
    fn of_the_labels_and_annotations_of_a_request_those_are_kept_that_are_read_or_copied() {
        let many: Map<_, _> = (0..3_000).map(|at| (format!("k{at:04}"), json!(""))).collect();
        let annotations =
            json!({"nodemaintenance.k8s.io/maintenances": "[]", "example.com/a": "x".repeat(50_000)});
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"});
        let metadata =
            json!({"name": "u", "labels": many, "annotations": annotations, "ownerReferences": [owner]});
        let read = |metadata: Value| {
            serde_json::from_value::<KubeObject<EvictionRequest>>(json!({ "metadata": metadata }))
                .unwrap()
                .object
        };
        let meta = read(metadata).metadata;
        assert_eq!((meta.labels.len(), meta.labels_cut_from.as_deref()), (512, Some("k0512")));
        assert_eq!(meta.annotations.keys().collect::<Vec<_>>(), ["nodemaintenance.k8s.io/maintenances"]);
        assert!(meta.owner_references.is_empty());
        let usual = read(json!({"name": "u", "labels": {"app": "a"}})).metadata;
        assert_eq!((usual.labels.len(), usual.labels_cut_from), (1, None));
    }

    #[test]
    fn a_compacted_request_says_the_same_of_labels_finalizers_target_and_reports_and_nothing_else() {
        let (whole, mut compacted) = (request(), request());
        compacted.compact(&mut SharedParts::default());
        let pod = BTreeMap::from([("app".to_owned(), "new".to_owned())]);
        assert_eq!(changes(&compacted, &pod), changes(&whole, &pod));
        assert_eq!(changes(&compacted, &pod).len(), 2, "one changes, one leaves");
        let requester = "nodemaintenance.k8s.io";
        assert_eq!(applied_by(&compacted, requester), applied_by(&whole, requester));
        assert_eq!(applied_by(&compacted, requester).len(), 1);
        let fields =
            |request: &EvictionRequest, entry: usize| request.metadata.managed_fields[entry].fields();
        assert_eq!(compacted.metadata.managed_fields.len(), 5);
        assert_eq!(fields(&compacted, 4), fields(&whole, 4), "reports");
        assert_eq!(fields(&compacted, 3), fields(&whole, 3), "finalizers");
        assert_eq!(compacted.metadata.managed_fields[3].manager, "kubectl-edit");
        assert!(fields(&compacted, 0)["f:spec"]["f:target"].is_object());
        for entry in 0..4 {
            assert!(fields(&compacted, entry)["f:metadata"]["f:annotations"].is_null());
            assert!(fields(&compacted, entry)["f:spec"]["f:requesters"].is_null());
        }
    }
}
