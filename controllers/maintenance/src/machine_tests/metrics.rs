//! What a scrape shows of maintenances.

use drydock_runtime::metrics::Metrics;

use super::*;
use crate::io::metrics::MaintenanceGauges;

fn scraped(sim: &Sim) -> String {
    let metrics = Metrics::new();
    MaintenanceGauges::register(&metrics).update(&sim.world, &sim.memory.blockers);
    metrics.render()
}

fn has(text: &str, line: &str) -> bool {
    text.lines().any(|found| found == line)
}

#[test]
fn a_scrape_says_of_each_maintenance_how_far_it_is_and_what_keeps_its_pods() {
    let mut sim = Sim::new(&["a", "b"]);
    for (node, pod) in [("a", "p"), ("a", "q"), ("b", "r")] {
        sim.pod(node, pod, &json!({ "spec": { "schedulingGroup": { "podGroupName": "g" } } }));
        let failed = conditions("Canceled", "ValidationFailed", "part of a Workload/PodGroup");
        sim.request(pod, |r| r.status.conditions = failed);
    }
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim.settle();
    let text = scraped(&sim);
    let blocked = |node: &str, count: u8| {
        let labels = format!("nodemaintenance=\"m\",node=\"{node}\",reason=\"WorkloadPod\"");
        format!("nodemaintenance_controller_blocked_pods{{{labels}}} {count}")
    };
    for line in [
        &blocked("a", 2),
        &blocked("b", 1),
        "nodemaintenance_stage{nodemaintenance=\"m\",stage=\"Drain\"} 1",
        "nodemaintenance_stage{nodemaintenance=\"m\",stage=\"Cordon\"} 0",
        "nodemaintenance_status_condition{nodemaintenance=\"m\",condition=\"Drained\",status=\"false\"} 1",
        "nodemaintenance_status_condition{nodemaintenance=\"m\",condition=\"Drained\",status=\"true\"} 0",
        "nodemaintenance_controller_nodes{nodemaintenance=\"m\"} 2",
    ] {
        assert!(has(&text, line), "{line} is not in:\n{text}");
    }
    assert!(
        text.contains("nodemaintenance_stage_start_time{nodemaintenance=\"m\",stage=\"Drain\"} "),
        "{text}"
    );
    sim.world.maintenances.clear();
    sim.settle();
    let text = scraped(&sim);
    assert!(!text.contains("nodemaintenance=\"m\""), "{text}");
}
