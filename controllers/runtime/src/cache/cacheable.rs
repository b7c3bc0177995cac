//! The trait of kinds that are watched and stored, and the two kinds of our own.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use drydock_api::eviction_request::{self, EvictionRequest};
use drydock_api::metav1::{FieldsV1, ManagedFieldsEntry};
use drydock_api::node_maintenance::{self, NodeMaintenance};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use kube::core::{DynamicResourceScope, Resource};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::shared_parts::SharedParts;

/// Namespace and name of an object; the namespace of cluster-scoped objects is empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Namespace, or empty.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key of these two.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An object as a cache holds it, decoded straight from the wire into the fields that are used.
pub trait Cacheable: DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static {
    /// API group; empty for core.
    const GROUP: &'static str;
    /// API version.
    const VERSION: &'static str;
    /// Kind.
    const KIND: &'static str;
    /// Resource.
    const PLURAL: &'static str;
    /// Whether objects live in namespaces.
    const NAMESPACED: bool;

    /// `metadata.name`
    fn name(&self) -> &str;
    /// `metadata.namespace`, empty if cluster-scoped.
    fn namespace(&self) -> &str;
    /// `metadata.uid`
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion`
    fn resource_version(&self) -> &str;
    /// The node that the object is bound to, empty while it is not bound; none if the kind is not indexed by node.
    fn node(&self) -> Option<&str> {
        None
    }
    /// Drops what no decision reads, and takes from `parts` what equals a part of another object, before a cache takes
    /// the object.
    fn trim(&mut self, _parts: &mut SharedParts) {}
    /// Key of the object.
    fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), self.name())
    }
}

/// A kind's names for kube's dynamic API.
pub fn resource<T: Cacheable>() -> ApiResource {
    let api_version =
        if T::GROUP.is_empty() { T::VERSION.to_owned() } else { format!("{}/{}", T::GROUP, T::VERSION) };
    ApiResource {
        group: T::GROUP.to_owned(),
        version: T::VERSION.to_owned(),
        api_version,
        kind: T::KIND.to_owned(),
        plural: T::PLURAL.to_owned(),
    }
}

/// A typed API over all namespaces that decodes into `T`.
pub fn api_all<T: Cacheable>(client: &Client) -> Api<KubeObject<T>> {
    Api::all_with(client.clone(), &())
}

/// A typed API that decodes into `T`: in a namespace, or cluster-wide when `namespace` is empty.
pub fn api<T: Cacheable>(client: &Client, namespace: &str) -> Api<KubeObject<T>> {
    if namespace.is_empty() {
        Api::all_with(client.clone(), &())
    } else {
        Api::namespaced_with(client.clone(), namespace, &())
    }
}

/// Carries a [`Cacheable`] through kube's generic client, which wants an `ObjectMeta` beside it.
#[derive(Clone, Debug)]
pub struct KubeObject<T> {
    meta: ObjectMeta,
    /// The object.
    pub object: T,
}

impl<'de, T: Cacheable> Deserialize<'de> for KubeObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = T::deserialize(deserializer)?;
        let meta = ObjectMeta {
            name: Some(object.name().to_owned()),
            namespace: (!object.namespace().is_empty()).then(|| object.namespace().to_owned()),
            uid: Some(object.uid().to_owned()),
            resource_version: Some(object.resource_version().to_owned()),
            ..Default::default()
        };
        Ok(Self { meta, object })
    }
}

impl<T: Cacheable> Resource for KubeObject<T> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        T::KIND.into()
    }
    fn group(_: &()) -> Cow<'_, str> {
        T::GROUP.into()
    }
    fn version(_: &()) -> Cow<'_, str> {
        T::VERSION.into()
    }
    fn plural(_: &()) -> Cow<'_, str> {
        T::PLURAL.into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

impl Cacheable for EvictionRequest {
    const GROUP: &'static str = drydock_api::GROUP;
    const VERSION: &'static str = drydock_api::VERSION;
    const KIND: &'static str = "EvictionRequest";
    const PLURAL: &'static str = eviction_request::RESOURCE;
    const NAMESPACED: bool = true;

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
    /// Of the managed fields, which are most of a request, the owners of labels, finalizers and target are left, and
    /// those who have written an interceptor's entry.
    fn trim(&mut self, parts: &mut SharedParts) {
        (self.api_version, self.kind) = <_>::default();
        let meta = &mut self.metadata;
        meta.managed_fields = meta.managed_fields.iter().filter_map(trimmed).collect();
        // Unlike a map, a list takes room until it is forgotten, though no object has it any more.
        if meta.managed_fields.len() <= MAX_SHARED_ENTRIES {
            parts.managed_fields.share(&mut meta.managed_fields);
        }
        parts.maps.share(&mut meta.labels);
        parts.maps.share(&mut meta.annotations);
        // A list that grew while it was decoded has room for four items at least.
        self.spec.requesters.shrink_to_fit();
        let status = &mut self.status;
        status.interceptors.shrink_to_fit();
        status.target_interceptors.shrink_to_fit();
        status.active_interceptors.shrink_to_fit();
        status.processed_interceptors.shrink_to_fit();
        status.conditions.shrink_to_fit();
    }
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
fn trimmed(entry: &ManagedFieldsEntry) -> Option<ManagedFieldsEntry> {
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
    const NAMESPACED: bool = false;

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
    fn trim(&mut self, _: &mut SharedParts) {
        self.metadata.managed_fields = Arc::default();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use drydock_api::eviction_request::pod_labels::{applied_by, changes};

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

    #[test]
    fn a_trimmed_request_says_the_same_of_labels_finalizers_target_and_reports_and_nothing_else() {
        let (whole, mut trimmed) = (request(), request());
        trimmed.trim(&mut SharedParts::default());
        let pod = BTreeMap::from([("app".to_owned(), "new".to_owned())]);
        assert_eq!(changes(&trimmed, &pod), changes(&whole, &pod));
        assert_eq!(changes(&trimmed, &pod).len(), 2, "one changes, one leaves");
        let requester = "nodemaintenance.k8s.io";
        assert_eq!(applied_by(&trimmed, requester), applied_by(&whole, requester));
        assert_eq!(applied_by(&trimmed, requester).len(), 1);
        let fields =
            |request: &EvictionRequest, entry: usize| request.metadata.managed_fields[entry].fields();
        assert_eq!(trimmed.metadata.managed_fields.len(), 5);
        assert_eq!(fields(&trimmed, 4), fields(&whole, 4), "reports");
        assert_eq!(fields(&trimmed, 3), fields(&whole, 3), "finalizers");
        assert_eq!(trimmed.metadata.managed_fields[3].manager, "kubectl-edit");
        assert!(fields(&trimmed, 0)["f:spec"]["f:target"].is_object());
        for entry in 0..4 {
            assert!(fields(&trimmed, entry)["f:metadata"]["f:annotations"].is_null());
            assert!(fields(&trimmed, entry)["f:spec"]["f:requesters"].is_null());
        }
    }
}
