//! Random maintenances, selectors, newcomers and reappearing pods: everything ends drained, and no target goes back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;

use common::*;
use drydock_api::node_maintenance::DrainPlanEntry;
use drydock_plan::{Maintenance, Outcome, Planner};
use proptest::prelude::*;

const NODES: [&str; 4] = ["a", "b", "c", "d"];
const APPS: [&str; 3] = ["x", "y", "z"];
const PRIORITIES: [i32; 4] = [0, 1000, 2000, i32::MAX];

fn types() -> impl Strategy<Value = drydock_api::node_maintenance::PodType> {
    prop_oneof![Just(Plain), Just(DaemonSet), Just(Static)]
}

fn a_plan(selectors: bool) -> impl Strategy<Value = Vec<DrainPlanEntry>> {
    let own = (types(), 0..PRIORITIES.len(), prop::option::of(0..APPS.len()));
    prop::collection::vec(own, 0..6).prop_map(move |own| {
        let own = own.into_iter().map(|(t, p, s)| match s.filter(|_| selectors) {
            Some(s) => app(t, PRIORITIES[p], APPS[s]),
            None => entry(t, PRIORITIES[p]),
        });
        let mut plan: Vec<DrainPlanEntry> =
            own.chain([Plain, DaemonSet, Static].map(|t| entry(t, i32::MAX))).collect();
        plan.sort_by_key(|e| (e.pod_type, e.pod_priority, e.pod_selector.is_none(), e.pod_selector.clone()));
        plan.dedup();
        plan
    })
}

fn maintenances(selectors: bool) -> impl Strategy<Value = Vec<Maintenance>> {
    let one = (a_plan(selectors), prop::collection::btree_set(0..NODES.len(), 1..4));
    prop::collection::vec(one, 1..6).prop_map(|all| {
        let named = all.into_iter().enumerate();
        named
            .map(|(i, (plan, nodes))| {
                let nodes: Vec<&str> = nodes.into_iter().map(|n| NODES[n]).collect();
                maintenance(&format!("m{i}"), i64::try_from(i).unwrap(), &plan, &nodes)
            })
            .collect()
    })
}

fn some_pods() -> impl Strategy<Value = Vec<TestPod>> {
    let one = (0..NODES.len(), types(), 0..PRIORITIES.len(), prop::option::of(0..APPS.len()));
    prop::collection::vec(one, 0..14).prop_map(|all| {
        let pod_of = |(n, t, p, a): (usize, _, usize, Option<usize>)| match a {
            Some(a) => app_pod(NODES[n], t, PRIORITIES[p], APPS[a]),
            None => pod(NODES[n], t, PRIORITIES[p]),
        };
        all.into_iter().map(pod_of).collect()
    })
}

type Shown = BTreeMap<String, Vec<DrainPlanEntry>>;

fn shown_targets(outcome: &Outcome) -> Shown {
    let nodes = outcome.maintenances.iter().flat_map(|m| &m.nodes);
    nodes.map(|(name, node)| (name.clone(), node.drain_targets.clone())).collect()
}

fn never_back(before: &Shown, after: &Shown) {
    for (node, old) in before {
        let Some(new) = after.get(node) else { continue };
        for was in old {
            let is = new.iter().find(|e| e.pod_type == was.pod_type && e.pod_selector == was.pod_selector);
            assert!(is.is_some_and(|e| e.pod_priority >= was.pod_priority), "{node}: {was:?} became {is:?}");
        }
    }
}

/// Runs to the end. `joins` says in which round each maintenance appears; `returns` lets some pods come back once;
/// `restart` starts a new planner from the recorded targets after each round.
fn run(all: &[Maintenance], mut pods: Vec<TestPod>, joins: &[usize], returns: &[TestPod], restart: bool) {
    let nodes: Vec<String> = all.iter().flat_map(|m| m.nodes.clone()).collect();
    let mut planner = Planner::default();
    let mut live: Vec<Maintenance> = Vec::new();
    let mut before = Shown::new();
    let mut quiet = 0;
    for round in 0..400 {
        let joining = all.iter().zip(joins.iter().chain(std::iter::repeat(&0)));
        live.extend(joining.filter(|(_, at)| **at == round).map(|(m, _)| m.clone()));
        if round == 3 {
            pods.extend(returns.iter().cloned());
        }
        let outcome = plan(&mut planner, &live, &pods);
        let after = shown_targets(&outcome);
        never_back(&before, &after);
        record(&mut live, &outcome);
        before = after;
        if restart {
            planner = Planner::default();
        }
        let count = pods.len();
        // One pod a round leaves, so that tiers end at different times.
        if let Some(i) = outcome.targeted.iter().position(|t| *t) {
            pods.remove(i);
        }
        quiet = if pods.len() == count { quiet + 1 } else { 0 };
        if quiet > 8 {
            break;
        }
    }
    let left: Vec<_> = pods.iter().filter(|p| nodes.contains(&p.node)).collect();
    assert!(left.is_empty(), "left: {left:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_node_ends_drained(all in maintenances(true), pods in some_pods()) {
        run(&all, pods, &[], &[], false);
    }

    #[test]
    fn newcomers_and_reappearing_pods_end_drained_too(
        all in maintenances(true), pods in some_pods(), joins in prop::collection::vec(0..6usize, 5), back in some_pods(),
    ) {
        run(&all, pods, &joins, &back, false);
    }

    #[test]
    fn a_restart_at_every_step_changes_nothing_of_that(
        all in maintenances(true), pods in some_pods(), joins in prop::collection::vec(0..6usize, 5), back in some_pods(),
    ) {
        run(&all, pods, &joins, &back, true);
    }

    #[test]
    fn without_selectors_no_plans_contradict_each_other(all in maintenances(false), mut pods in some_pods()) {
        let mut planner = Planner::default();
        while !pods.is_empty() {
            let outcome = plan(&mut planner, &all, &pods);
            prop_assert!(outcome.fast_forwards.is_empty(), "{:?}", outcome.fast_forwards);
            let Some(i) = outcome.targeted.iter().position(|t| *t) else { break };
            pods.remove(i);
        }
    }
}
