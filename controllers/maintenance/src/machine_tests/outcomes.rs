//! The outcomes of requests in the status.

use drydock_api::node_maintenance::NodeMaintenanceOutcomes;

use super::*;

fn outcomes(sim: &Sim, maintenance: &str) -> [i32; 4] {
    let NodeMaintenanceOutcomes { evicted, canceled, passed_over, returned } =
        sim.status(maintenance).outcomes.clone();
    [evicted, canceled, passed_over, returned]
}

fn draining(pods: &[&str]) -> Sim {
    let mut sim = Sim::new(&["a", "b"]);
    pods.iter().for_each(|name| sim.pod("a", name, &json!({})));
    sim.maintenance("m", "Drain", &["a"]);
    sim.maintenance("n", "Drain", &["a", "b"]);
    sim.maintenance("elsewhere", "Drain", &["b"]);
    sim.settle();
    sim
}

#[test]
fn evictions_are_counted_for_each_maintenance_of_the_node_and_outlive_requests_and_restarts() {
    let mut sim = draining(&["p", "q"]);
    sim.remove_pod("p");
    sim.settle();
    assert_eq!((outcomes(&sim, "m"), outcomes(&sim, "n")), ([1, 0, 0, 0], [1, 0, 0, 0]));
    sim.delete_request("p");
    sim.memory = MachineMemory::default();
    sim.settle();
    sim.remove_pod("q");
    sim.settle();
    assert_eq!((outcomes(&sim, "m"), outcomes(&sim, "elsewhere")), ([2, 0, 0, 0], [0; 4]));
}

#[test]
fn requests_that_end_without_eviction_count_as_canceled() {
    let mut sim = draining(&["withdrawn", "deleted", "canceled"]);
    sim.request("withdrawn", |r| r.spec.requesters.clear());
    sim.delete_request("deleted");
    sim.request("canceled", |r| r.status.conditions = conditions("Canceled", "ValidationFailed", ""));
    sim.settle();
    assert_eq!(outcomes(&sim, "m"), [0, 3, 0, 0]);
}

/// The watch was away while it ended.
#[test]
fn a_request_that_is_gone_with_its_pod_counts_as_evicted() {
    let mut sim = draining(&["p"]);
    sim.world.pods.values_mut().for_each(Vec::clear);
    sim.delete_request("p");
    sim.settle();
    assert_eq!(outcomes(&sim, "m"), [1, 0, 0, 0]);
}

#[test]
fn what_is_withdrawn_at_complete_counts_as_canceled() {
    let mut sim = draining(&["p", "q"]);
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.stage("n", NodeMaintenanceStage::Complete);
    // The status of the end comes first.
    sim.store_statuses();
    sim.store_statuses();
    sim.settle();
    assert_eq!(outcomes(&sim, "m"), [0, 2, 0, 0]);
}

#[test]
fn turns_that_end_without_completion_are_counted() {
    let mut sim = draining(&["p"]);
    let turn = |sim: &mut Sim, processed: Value, interceptors: Value| {
        sim.request("p", |r| {
            let status = json!({ "processedInterceptors": processed, "interceptors": interceptors,
                "podInfo": { "nodeName": "a", "priority": 0, "podType": "Default" } });
            r.status = serde_json::from_value(status).unwrap();
        });
        sim.settle();
    };
    turn(&mut sim, json!([]), json!([{ "name": "a.com/x" }]));
    assert_eq!(outcomes(&sim, "m"), [0; 4]);
    let completed = json!([{ "name": "a.com/x" }, { "name": "a.com/y", "completionTime": NOW }]);
    turn(&mut sim, json!(["a.com/x", "a.com/y"]), completed);
    assert_eq!(outcomes(&sim, "m"), [0, 0, 1, 0]);
}

#[test]
fn pods_that_a_workload_puts_back_are_counted() {
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "rs", "controller": true }]);
    let of_workload = json!({ "metadata": { "ownerReferences": owner } });
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "w0", &of_workload);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim.remove_pod("w0");
    let mut new = of_workload.clone();
    sim.now += jiff::SignedDuration::from_secs(1);
    new["metadata"]["creationTimestamp"] = sim.now.to_string().into();
    sim.pod("a", "w1", &new);
    sim.pod("a", "w2", &new);
    sim.settle();
    assert_eq!(outcomes(&sim, "m"), [1, 0, 0, 2]);
}

/// The counts began with an old status and stayed below the stored ones forever; a count that was zero was
/// left out of the write, so that the stored number stayed.
#[test]
fn counts_never_go_back_behind_the_status() {
    let mut sim = draining(&["p"]);
    sim.settle();
    let stored = NodeMaintenanceOutcomes { evicted: 50, passed_over: 1, ..Default::default() };
    sim.change("m", |m| m.status.outcomes = stored);
    sim.remove_pod("p");
    sim.settle();
    assert_eq!(outcomes(&sim, "m"), [51, 0, 1, 0]);
    let written = serde_json::to_value(&sim.status("m").outcomes).unwrap();
    assert_eq!(written, json!({ "evicted": 51, "canceled": 0, "passedOver": 1, "returned": 0 }));
}
