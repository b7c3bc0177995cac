//! What one planning costs: `cargo run --release -p drydock-measure --example planning_cost -- NODES PODS_PER_NODE
//! ENTRIES`, the last being entries of the drain plan with a selector of their own. It should grow with the number of
//! pods, and no faster.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStrategy};
use drydock_machinery::Object;
use drydock_machinery::kind::Kind;
use drydock_machinery::strategy::Strategy;
use drydock_maintenance::{
    Action, Config, MachineMemory, PodLocation, REQUESTER, RequestChange, Task, World, step,
};
use drydock_runtime::{Node, Pod};
use serde_json::json;

fn main() {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let argument = |i: usize, default| arguments.get(i).copied().unwrap_or(default);
    let (nodes, pods, entries) = (argument(0, 4000), argument(1, 30), argument(2, 0));
    let mut world = world(nodes, pods, entries);
    let (mut memory, config, now) =
        (MachineMemory::default(), Config::default(), "2026-01-01T00:00:00Z".parse().unwrap());
    for round in ["first", "with requests", "again"] {
        let began = Instant::now();
        let decision = step(&world, &mut memory, now, &config);
        println!("{round}: {:?}, {} actions", began.elapsed(), decision.actions.len());
        carry_out(&mut world, decision.actions);
    }
}

fn world(nodes: usize, pods: usize, entries: usize) -> World {
    let mut world = World::default();
    world.maintenances.push(maintenance(entries));
    for n in 0..nodes {
        let name = format!("node-{n:05}");
        let node = Node { name: name.clone(), uid: name.clone(), unschedulable: true, ..Node::default() };
        world.nodes.insert(name.clone(), Arc::new(node));
        world.pods.insert(name.clone(), (0..pods).map(|p| pod(&name, n * pods + p)).collect());
    }
    let located = world.pods.values().flatten().map(|p| (p.uid.clone(), PodLocation::of(p)));
    world.located = Arc::new(located.collect());
    world
}

fn pod(node: &str, number: usize) -> Arc<Pod> {
    let labels = [("app", number % 50), ("tier", number % 7)].map(|(k, v)| (k.to_owned(), format!("v{v}")));
    Arc::new(Pod {
        name: format!("pod-{number}"),
        namespace: format!("ns-{}", number % 100),
        uid: format!("{number:036}"),
        labels: BTreeMap::from(labels).into(),
        node_name: node.to_owned(),
        priority: i32::try_from(number % 3).unwrap() * 1000,
        ..Pod::default()
    })
}

/// All nodes, in Drain.
fn maintenance(entries: usize) -> Arc<NodeMaintenance> {
    let own: Vec<_> = (0..entries)
        .map(|i| json!({ "podPriority": 2000, "podSelector": { "matchLabels": { "app": format!("v{i}") } } }))
        .collect();
    let mut object = Object::default();
    object.0.insert("metadata".into(), json!({ "name": "m", "uid": "m", "generation": 1 }));
    let all = json!({ "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "x", "operator": "DoesNotExist" }] }] });
    object.0.insert("spec".into(), json!({ "stage": "Drain", "drainPlan": own, "nodeSelector": all }));
    NodeMaintenanceStrategy.into_kind().set_defaults(&mut object);
    Arc::new(serde_json::from_value(object.into_value()).unwrap())
}

/// Requests are made and the status is written; the rest does not change what a planning costs.
fn carry_out(world: &mut World, actions: BTreeMap<Task, Action>) {
    for (task, action) in actions {
        match (task, action) {
            (
                Task::Request(namespace, uid),
                Action::Request { change: RequestChange::Ask { pod, .. }, .. },
            ) => {
                let mut request = EvictionRequest::named(&namespace, &uid);
                let spec = json!({ "target": { "pod": { "name": pod, "uid": uid } }, "requesters": [{ "name": REQUESTER }] });
                request.spec = serde_json::from_value(spec).unwrap();
                world.requests.insert((namespace, uid), Arc::new(request));
            }
            (Task::Status(_), Action::Status { status, .. }) => {
                let mut maintenance = (*world.maintenances[0]).clone();
                maintenance.status = *status;
                world.maintenances[0] = Arc::new(maintenance);
            }
            _ => {}
        }
    }
}
