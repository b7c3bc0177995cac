//! Bytes of resident memory that a pod, and an EvictionRequest, take in the caches of the controllers.
//!
//! ```console
//! $ cargo run --release -p drydock-measure --example cache_memory
//! ```

use anyhow::Result;
use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::{Cacheable, Pod, SharedParts, Store};
use drydock_testkit::proc;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many of each.
const OBJECTS: usize = 100_000;

fn main() -> Result<()> {
    println!("sizes: Pod {}, EvictionRequest {}", size_of::<Pod>(), size_of::<EvictionRequest>());
    let (pods, requests) = (Store::<Pod>::default(), Store::<EvictionRequest>::default());
    println!("pod: {} bytes", each(&pods, pod)?);
    println!("request, made by the maintenance controller: {} bytes", each(&requests, request)?);
    println!("{} pods and {} requests stay", pods.len(), requests.len());
    Ok(())
}

/// Bytes that each object takes in a store.
fn each<T: Cacheable>(store: &Store<T>, object: fn(usize) -> Value) -> Result<u64> {
    let before = proc::memory(std::process::id())?.resident;
    let mut parts = SharedParts::default();
    for index in 0..OBJECTS {
        let text = object(index).to_string();
        let mut object: T = serde_json::from_str(&text)?;
        object.compact(&mut parts);
        store.apply(object);
    }
    Ok((proc::memory(std::process::id())?.resident - before) * 1024 / OBJECTS as u64)
}

fn pod(index: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("ledger-5d4f8c7b9d-{index:06}"), "namespace": "shop", "uid": uid(index), "resourceVersion": "123456",
            "creationTimestamp": "2026-01-01T12:00:00Z",
            "labels": {"app": "ledger", "pod-template-hash": "5d4f8c7b9d", "tier": "backend"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "ledger-5d4f8c7b9d",
                "uid": "7b6ce2a4-3c7b-4a9d-9a80-0123456789ab", "controller": true}],
        },
        "spec": {"nodeName": format!("node-{:04}", index % 5000), "priority": 0, "containers": [{"name": "main"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn request(index: usize) -> Value {
    let labels = json!({"f:app": {}, "f:pod-template-hash": {}, "f:tier": {}});
    json!({
        "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "EvictionRequest",
        "metadata": {
            "name": uid(index), "namespace": "shop", "uid": uid(index + 1_000_000), "resourceVersion": "123456",
            "creationTimestamp": "2026-01-01T12:00:00Z", "generation": 1,
            "labels": {"app": "ledger", "pod-template-hash": "5d4f8c7b9d", "tier": "backend"},
            "annotations": {"nodemaintenance.k8s.io/maintenances": "[{\"name\":\"upgrade\",\"reason\":\"OS upgrade\"}]"},
            "managedFields": [
                {"manager": "nodemaintenance.k8s.io", "operation": "Apply", "apiVersion": "coordination.k8s.io/v1alpha1",
                 "time": "2026-01-01T12:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {
                    "f:metadata": {"f:annotations": {"f:nodemaintenance.k8s.io/maintenances": {}}, "f:labels": labels},
                    "f:spec": {"f:requesters": {"k:{\"name\":\"nodemaintenance.k8s.io\"}": {".": {}, "f:name": {}}},
                               "f:target": {"f:pod": {"f:name": {}, "f:uid": {}}}}}},
                {"manager": "drydock-eviction-controller", "operation": "Update", "subresource": "status",
                 "apiVersion": "coordination.k8s.io/v1alpha1", "time": "2026-01-01T12:00:00Z", "fieldsType": "FieldsV1",
                 "fieldsV1": {"f:status": {"f:activeInterceptors": {}, "f:targetInterceptors": {}}}},
            ],
        },
        "spec": {
            "target": {"pod": {"name": format!("ledger-5d4f8c7b9d-{index:06}"), "uid": uid(index)}},
            "requesters": [{"name": "nodemaintenance.k8s.io"}],
        },
        "status": {
            "observedGeneration": 1,
            "targetInterceptors": [{"name": "checkpoint.example.com"}, {"name": "imperative-eviction.k8s.io"}],
            "activeInterceptors": ["checkpoint.example.com"],
            "interceptors": [
                {"name": "checkpoint.example.com", "startTime": "2026-01-01T12:00:01Z", "heartbeatTime": "2026-01-01T12:00:01Z",
                 "message": "half of it is written"},
                {"name": "imperative-eviction.k8s.io", "message": ""},
            ],
            "activationTime": "2026-01-01T12:00:00.000000Z",
            "podInfo": {"nodeName": format!("node-{:04}", index % 5000), "priority": 0, "podType": "Default"},
        },
    })
}

fn uid(index: usize) -> String {
    format!("7b6ce2a4-3c7b-4a9d-9a80-{index:012}")
}
