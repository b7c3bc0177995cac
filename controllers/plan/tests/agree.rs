//! The planner is compared with a model that implements the rules of the crate's documentation independently of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod model;
mod worlds;

use std::cell::RefCell;
use std::collections::BTreeMap;

use drydock_api::node_maintenance::DrainPlanEntry;
use drydock_api::node_maintenance::PodType;
use model::compare::compare;
use model::{FastForward, Maintenance, Other, Outcome, Pod};

#[test]
fn the_planner_does_in_random_worlds_what_the_model_does() {
    let first = number("SEED", 0);
    let failed: Vec<String> = (first..first + number("WORLDS", 10_000)).filter_map(differs).collect();
    if let Some(one) = failed.first() {
        panic!("{} worlds, the first: {one}", failed.len());
    }
}

#[test]
fn a_comparison_tells_what_differs_and_what_is_only_another_form() {
    let entry =
        |pod_priority| DrainPlanEntry { pod_priority, pod_type: PodType::Default, pod_selector: None };
    let maintenance = Maintenance {
        name: "m".to_owned(),
        plan: vec![entry(500), entry(i32::MAX)],
        nodes: ["one".to_owned()].into(),
        started: 0,
        created: 0,
        last: PodType::Static,
        position: None,
        recorded: BTreeMap::new(),
    };
    let labels = BTreeMap::new();
    let pod = |priority| Pod { node: "one", pod_type: PodType::Default, priority, labels: &labels };
    let a = model::plan(&[maintenance], &BTreeMap::new(), &[pod(100), pod(600)]);
    assert!(compare(&a, &a).is_empty());
    let mut b = a.clone();
    b.maintenances[0].nodes.get_mut("one").unwrap().drain_targets.push(entry(400));
    let found = compare(&a, &b);
    assert!(matches!(&found[..], [one] if one.contains("form: targets")), "{found:?}");
    b.targeted[1] = true;
    b.maintenances[0].cursor = 1;
    assert_eq!(compare(&a, &b).len(), 3);
}

/// How many worlds are run: `WORLDS`, from the seed `SEED` on.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// The planner, with the model's types as input and output.
fn planner(maintenances: &[Maintenance], ended: &model::Targets, pods: &[Pod<'_>]) -> Outcome {
    let all: Vec<_> = maintenances.iter().cloned().map(for_planner).collect();
    let pods: Vec<_> = pods
        .iter()
        .map(|p| drydock_plan::CountedPod {
            node: p.node,
            pod_type: p.pod_type,
            priority: p.priority,
            labels: p.labels.into(),
        })
        .collect();
    let outcome = drydock_plan::plan(&all, ended, &pods);
    Outcome {
        maintenances: outcome.maintenances.into_iter().map(of_planner).collect(),
        targeted: outcome.targeted,
        fast_forwards: outcome.fast_forwards.into_iter().map(told_by_planner).collect(),
    }
}

fn for_planner(m: Maintenance) -> drydock_plan::DrainingMaintenance {
    let Maintenance { name, started, created, plan, last: last_pod_type, nodes, position, recorded } = m;
    drydock_plan::DrainingMaintenance {
        name,
        started,
        created,
        plan,
        last_pod_type,
        nodes,
        position,
        recorded,
    }
}

fn of_planner(m: drydock_plan::MaintenanceOutcome) -> model::MaintenanceOutcome {
    let node = |n: drydock_plan::NodeOutcome| model::NodeOutcome {
        drain_targets: n.drain_targets,
        drain_message: n.drain_message,
    };
    let nodes = m.nodes.into_iter().map(|(name, n)| (name, node(n))).collect();
    model::MaintenanceOutcome { cursor: m.cursor, nodes }
}

fn told_by_planner(f: drydock_plan::FastForward) -> FastForward {
    let other = f.other.map(|o| Other { name: o.name, is_older: o.is_older });
    FastForward { maintenance: f.maintenance, node: f.node, other }
}

/// Runs the world of a seed with the planner. Returns the rule that is violated, or where the model's outcome
/// differs.
fn differs(seed: u64) -> Option<String> {
    let found = RefCell::new(None);
    let both = |all: &[Maintenance], ended: &model::Targets, pods: &[Pod<'_>]| {
        let outcome = planner(all, ended, pods);
        let lines = compare(&outcome, &model::plan(all, ended, pods));
        if let Some(first) = lines.first().filter(|line| !line.contains("form:")) {
            found.borrow_mut().get_or_insert_with(|| format!("seed {seed}: {first}"));
        }
        outcome
    };
    let lived = worlds::run(seed, both);
    found.into_inner().or(lived.err())
}
