//! Why a request was made: the annotation that names its maintenances.

use drydock_api::eviction_request::maintenances::clause_of;

use super::*;

fn clause(sim: &Sim, pod: &str) -> String {
    clause_of(&sim.world.requests[&("ns".to_owned(), format!("uid-{pod}"))])
}

#[test]
fn a_request_names_the_maintenances_that_drain_its_pod_the_oldest_first() {
    let mut sim = Sim::new(&["a"]);
    let agent = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "d", "controller": true });
    sim.pod("a", "web", &json!({}));
    sim.pod("a", "agent", &json!({ "metadata": { "ownerReferences": [agent] } }));
    sim.maintenance("tidy", "Drain", &["a"]);
    sim.maintenance("workloads", "Drain", &["a"]);
    sim.maintenance("cordons", "Cordon", &["a"]);
    sim.change("tidy", |m| m.spec.reason = "RAM swap".to_owned());
    sim.change("workloads", |m| m.spec.last_pod_type = PodType::Default);
    sim.settle();
    assert_eq!(clause(&sim, "web"), "for NodeMaintenances tidy (RAM swap) and workloads");
    sim.remove_pod("web");
    sim.settle();
    assert_eq!(clause(&sim, "agent"), "for NodeMaintenance tidy (RAM swap)");
}

/// A blocker belongs to one maintenance: the clause in the interceptor's report adds nothing to it.
#[test]
fn blockers_have_the_words_of_our_interceptors_without_the_clause() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let status = json!({
        "activeInterceptors": ["imperative-eviction.k8s.io"], "podInfo": { "nodeName": "a" },
        "interceptors": [{ "name": "imperative-eviction.k8s.io", "startTime": NOW, "heartbeatTime": NOW,
            "message": "for NodeMaintenance m on node a: b allows 0",
            "blocked": { "reason": "PodDisruptionBudget", "name": "b", "state": "ShortNow" } }],
    });
    sim.request("p", |r| r.status = serde_json::from_value(status).unwrap());
    sim.settle();
    assert_eq!(bare(&sim.status("m").node_statuses[0].blockers[0].message), "b allows 0");
}
