//! Both kinds as dynamic objects, as any client without our types has them.

use drydock_api::{GROUP, VERSION, eviction_request, node_maintenance};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

/// The EvictionRequests of a namespace.
pub fn eviction_requests(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &eviction_request_resource())
}

/// All NodeMaintenances.
pub fn node_maintenances(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &node_maintenance_resource())
}

/// Group, version and names of EvictionRequests.
pub fn eviction_request_resource() -> ApiResource {
    resource("EvictionRequest", eviction_request::RESOURCE)
}

/// Group, version and names of NodeMaintenances.
pub fn node_maintenance_resource() -> ApiResource {
    resource("NodeMaintenance", node_maintenance::RESOURCE)
}

/// An EvictionRequest for a pod.
pub fn eviction_request(pod: &str, uid: &str, requester: &str) -> Value {
    json!({
        "apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest", "metadata": {"name": uid},
        "spec": {"target": {"pod": {"name": pod, "uid": uid}}, "requesters": [{"name": requester}]},
    })
}

/// A NodeMaintenance of the nodes with these host names. They are labels, which any node may get later.
pub fn node_maintenance(name: &str, stage: &str, nodes: &[&str]) -> Value {
    let selected = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": nodes});
    maintenance(name, stage, &json!([{"matchExpressions": [selected]}]))
}

/// A NodeMaintenance of the nodes of these names.
pub fn named_node_maintenance(name: &str, stage: &str, nodes: &[&str]) -> Value {
    let term =
        |node: &&str| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
    maintenance(name, stage, &nodes.iter().map(term).collect())
}

fn maintenance(name: &str, stage: &str, terms: &Value) -> Value {
    json!({
        "apiVersion": drydock_api::API_VERSION, "kind": "NodeMaintenance", "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"nodeSelectorTerms": terms},
            "stage": stage, "reason": "a test",
        },
    })
}

fn resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, VERSION, kind), plural)
}
