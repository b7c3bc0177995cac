//! The kinds that the targets decode, and an object of each to start from.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use drydock_api::eviction_request::{EvictionRequestKind, EvictionRequestStrategy};
use drydock_api::node_maintenance::{NodeMaintenanceKind, NodeMaintenanceStrategy};
use drydock_machinery::Object;
use drydock_machinery::kind::{Kind, Now};
use drydock_machinery::strategy::Strategy;
use serde_json::{Value, json};

const HEARTBEAT_DEADLINE: Duration = Duration::from_secs(1200);
static EVICTION_REQUEST: LazyLock<EvictionRequestKind> =
    LazyLock::new(|| EvictionRequestStrategy::new(HEARTBEAT_DEADLINE).into_kind());
static NODE_MAINTENANCE: LazyLock<NodeMaintenanceKind> =
    LazyLock::new(|| NodeMaintenanceStrategy.into_kind());

/// Both kinds.
pub fn all() -> [&'static dyn Kind; 2] {
    [&*EVICTION_REQUEST, &*NODE_MAINTENANCE]
}

/// The same, to be served.
pub fn served() -> [Arc<dyn Kind>; 2] {
    [
        Arc::new(EvictionRequestStrategy::new(HEARTBEAT_DEADLINE).into_kind()),
        Arc::new(NodeMaintenanceStrategy.into_kind()),
    ]
}

/// The moment of every execution: 2026-01-01T00:00:00Z.
pub fn now() -> Now {
    Now::from_second(1_767_225_600).expect("a time that jiff holds")
}

/// A valid object of each kind, with owners and all the lists that merge.
pub fn samples() -> [Object; 2] {
    [object(eviction_request()), object(node_maintenance())]
}

/// An object from a literal.
pub fn object(value: Value) -> Object {
    match value {
        Value::Object(map) => Object::from(map),
        other => panic!("no object: {other}"),
    }
}

fn eviction_request() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "EvictionRequest",
        "metadata": {
            "name": "0b1c", "namespace": "default", "uid": "11111111-2222-3333-4444-555555555555",
            "resourceVersion": "7", "generation": 1, "creationTimestamp": "2025-12-31T23:59:00Z",
            "labels": {"app": "db", "tier": "0"}, "finalizers": ["example.com/a", "example.com/b"],
            "managedFields": [{
                "manager": "kubectl", "operation": "Apply", "apiVersion": "coordination.k8s.io/v1alpha1",
                "time": "2025-12-31T23:59:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {
                    "f:requesters": {"k:{\"name\":\"a.example.com\"}": {}},
                    "f:target": {"f:pod": {"f:name": {}, "f:uid": {}}},
                }},
            }],
        },
        "spec": {
            "target": {"pod": {"name": "db-0", "uid": "0b1c"}},
            "requesters": [{"name": "a.example.com"}, {"name": "b.example.com"}],
        },
        "status": {
            "observedGeneration": 1,
            "activationTime": "2025-12-31T23:59:30.000000Z",
            "activeInterceptors": ["imperative-eviction.k8s.io"],
            "targetInterceptors": [{"name": "db.example.com"}, {"name": "imperative-eviction.k8s.io"}],
            "processedInterceptors": ["db.example.com"],
            "interceptors": [
                {"name": "db.example.com", "message": "", "startTime": "2025-12-31T23:59:20.000000Z",
                 "heartbeatTime": "2025-12-31T23:59:20.000000Z", "completionTime": "2025-12-31T23:59:29.000000Z"},
                {"name": "imperative-eviction.k8s.io", "message": "", "blocked": {
                    "reason": "PodDisruptionBudget", "name": "db", "state": "ShortNow", "sinceTime": "2025-12-31T23:59:30Z"}},
            ],
            "podInfo": {"nodeName": "n", "priority": 1000, "podType": "Default"},
            "conditions": [{
                "type": "Evicted", "status": "False", "reason": "Waiting", "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2025-12-31T23:59:20Z",
            }],
        },
    })
}

fn node_maintenance() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "NodeMaintenance",
        "metadata": {
            "name": "rack-7", "uid": "11111111-2222-3333-4444-555555555556", "resourceVersion": "8",
            "generation": 2, "creationTimestamp": "2025-12-31T23:00:00Z",
            "finalizers": ["nodemaintenance.k8s.io/maintenance-completion"],
        },
        "spec": {
            "nodeSelector": {"nodeSelectorTerms": [{
                "matchExpressions": [{"key": "rack", "operator": "In", "values": ["7"]}],
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}],
            }]},
            "stage": "Drain", "reason": "new kernel",
            "drainPlan": [
                {"podPriority": 1000, "podType": "Default", "podSelector": {"matchLabels": {"app": "db"}}},
                {"podPriority": 2000, "podType": "DaemonSet"},
            ],
        },
        "status": {
            "observedGeneration": 2,
            "stageStatuses": [{"name": "Drain", "startTimestamp": "2025-12-31T23:10:00Z"}],
            "nodeStatuses": [{
                "nodeRef": {"name": "node-1"}, "drainMessage": "waits", "podsPendingEvacuation": 3,
                "podsEvacuating": 1, "drainTargets": [{"podPriority": 1000, "podType": "Default"}],
                "blockedPods": 1, "workloadsDrained": true,
                "blockers": [{
                    "pod": {"namespace": "default", "name": "db-0", "uid": "0b1c"},
                    "reason": "PodDisruptionBudget", "message": "no disruptions allowed",
                    "sinceTime": "2025-12-31T23:20:00Z",
                }],
            }],
            "conditions": [{
                "type": "Drained", "status": "False", "reason": "Draining", "message": "", "observedGeneration": 2,
                "lastTransitionTime": "2025-12-31T23:10:00Z",
            }],
        },
    })
}
