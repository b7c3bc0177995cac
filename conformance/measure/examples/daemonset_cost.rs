//! What draining DaemonSet pods costs beside the host: `cargo run -p drydock-measure --example
//! daemonset_cost -- NODES PODS_PER_NODE MAINTENANCES`. The host takes every write at once, and the caches
//! show it. It should grow with the number of pods, and hardly with that of the maintenances.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use drydock_api::eviction_request::interceptors::DAEMON_SET;
use drydock_api::eviction_request::{EvictionRequest, Interceptor, InterceptorStatus, LocalPodReference};
use drydock_api::node_maintenance::{
    DrainPlanEntry, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceStage, NodeReference, PodType,
};
use drydock_interceptors::daemonset;
use drydock_runtime::{HostCaches, Node, ObjectKey, Pod, testing};
use serde_json::json;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let argument = |i: usize, default| arguments.get(i).copied().unwrap_or(default);
    let (nodes, pods, maintenances) = (argument(0, 4000), argument(1, 10), argument(2, 12));
    let (caches, writes) = (Arc::new(OnceLock::<HostCaches>::new()), Arc::new(AtomicUsize::new(0)));
    let (stored, counted) = (caches.clone(), writes.clone());
    let context = testing::context(move |method, path, body| {
        counted.fetch_add(1, SeqCst);
        let caches = stored.get().unwrap();
        let name = path.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        match method {
            "DELETE" => caches.pods.delete(&ObjectKey::new("ns", name)),
            _ if path.contains("/nodes/") => {
                let taints = serde_json::from_value(body["spec"]["taints"].clone()).unwrap();
                caches.nodes.apply(Node { taints, ..node(name) });
            }
            _ => {}
        }
        let kind = if path.contains("/pods/") { "Pod" } else { "Node" };
        (200, json!({ "kind": kind, "apiVersion": "v1", "metadata": { "name": name } }))
    });
    fill(&context.caches, nodes, pods, maintenances);
    caches.set(context.caches.clone()).ok().unwrap();
    let began = Instant::now();
    tokio::spawn(daemonset::run(context.clone()));
    while !context.caches.pods.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let took = began.elapsed();
    println!("{} pods are gone after {took:?} and {} writes", nodes * pods, writes.load(SeqCst));
}

/// Nodes whose pods are all covered, each named by half of the maintenances.
fn fill(caches: &HostCaches, nodes: usize, pods: usize, maintenances: usize) {
    let name = |n: usize| format!("node-{n:05}");
    for n in 0..nodes {
        caches.nodes.apply(node(&name(n)));
        for p in 0..pods {
            let pod = pod(&format!("pod-{n:05}-{p}"), &name(n));
            caches.requests.apply(request(&pod.name));
            caches.pods.apply(pod);
        }
    }
    for m in 0..maintenances {
        let mine = (0..nodes).filter(|n| maintenances == 1 || (n + m) % 2 == 0).map(name);
        caches.maintenances.apply(maintenance(&format!("m{m}"), mine));
    }
    caches.daemon_sets.finish_list(&Default::default());
    caches.nodes.finish_list(&caches.nodes.all().iter().map(|n| ObjectKey::new("", &n.name)).collect());
    caches
        .pods
        .finish_list(&caches.pods.all().iter().map(|p| ObjectKey::new(&p.namespace, &p.name)).collect());
    caches
        .requests
        .finish_list(&caches.requests.all().iter().map(|r| ObjectKey::new("ns", &r.metadata.name)).collect());
    let named = caches.maintenances.all();
    caches.maintenances.finish_list(&named.iter().map(|m| ObjectKey::new("", &m.metadata.name)).collect());
}

fn node(name: &str) -> Node {
    Node { name: name.into(), uid: name.into(), ..Node::default() }
}

fn pod(name: &str, node: &str) -> Pod {
    let pod = Pod {
        name: name.into(),
        namespace: "ns".into(),
        uid: name.into(),
        node_name: node.into(),
        ..Pod::default()
    };
    testing::of_daemon_set("agent", name.rsplit('-').next().unwrap(), pod)
}

fn request(pod: &str) -> EvictionRequest {
    let mut request = EvictionRequest::named("ns", pod);
    request.spec.requesters = serde_json::from_value(json!([{ "name": "r.example.com" }])).unwrap();
    request.spec.target.pod = Some(LocalPodReference { name: pod.into(), uid: pod.into() });
    request.status.target_interceptors = vec![Interceptor { name: DAEMON_SET.into() }];
    request.status.interceptors =
        vec![InterceptorStatus { name: DAEMON_SET.into(), ..InterceptorStatus::default() }];
    request.status.active_interceptors = vec![DAEMON_SET.into()];
    request
}

fn maintenance(name: &str, nodes: impl Iterator<Item = String>) -> NodeMaintenance {
    let all = DrainPlanEntry { pod_type: PodType::DaemonSet, pod_priority: i32::MAX, ..Default::default() };
    let mut maintenance = NodeMaintenance::default();
    maintenance.metadata.name = name.into();
    maintenance.spec.stage = NodeMaintenanceStage::Drain;
    maintenance.status.node_statuses = nodes
        .map(|name| NodeMaintenanceNodeStatus {
            node_ref: NodeReference { name },
            drain_targets: vec![all.clone()],
            ..Default::default()
        })
        .collect();
    maintenance
}
