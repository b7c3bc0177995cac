//! Random lives of maintenances, nodes and pods: everything settles at each step, and ends as it began.

use proptest::prelude::*;

use super::*;

const NODES: [&str; 3] = ["a", "b", "c"];
const NAMES: [&str; 3] = ["m0", "m1", "m2"];

/// Something that happens between two settlements.
#[derive(Clone, Debug)]
enum Event {
    /// A maintenance goes on to this stage, if it is further; it is made, if it is not there.
    Stage { maintenance: usize, stage: NodeMaintenanceStage, nodes: Vec<usize> },
    /// A maintenance selects other nodes.
    Select { maintenance: usize, nodes: Vec<usize> },
    /// A new pod, on whatever node.
    Appear { node: usize, priority: i32 },
    /// The first pod that was asked to leave does.
    Leave,
    /// The controller begins anew.
    Restart,
}

fn nodes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::btree_set(0..NODES.len(), 1..=NODES.len()).prop_map(|set| set.into_iter().collect())
}

fn event() -> impl Strategy<Value = Event> {
    let stage = prop::sample::select(vec![
        NodeMaintenanceStage::Idle,
        NodeMaintenanceStage::Cordon,
        NodeMaintenanceStage::Drain,
        NodeMaintenanceStage::Drain,
        NodeMaintenanceStage::Complete,
    ]);
    let index = 0..NAMES.len();
    prop_oneof![
        3 => (index.clone(), stage, nodes()).prop_map(|(maintenance, stage, nodes)| Event::Stage { maintenance, stage, nodes }),
        1 => (index, nodes()).prop_map(|(maintenance, nodes)| Event::Select { maintenance, nodes }),
        2 => (0..NODES.len(), 0..3).prop_map(|(node, tier)| Event::Appear { node, priority: tier * 10 }),
        3 => Just(Event::Leave),
        1 => Just(Event::Restart),
    ]
}

fn names(nodes: &[usize]) -> Vec<&'static str> {
    nodes.iter().map(|n| NODES[*n]).collect()
}

fn apply(sim: &mut Sim, event: Event, number: usize) {
    match event {
        Event::Stage { maintenance, stage, nodes } => {
            let name = NAMES[maintenance];
            let present = sim.world.maintenances.iter().find(|m| m.metadata.name == name);
            match present.map(|m| m.spec.stage) {
                None => sim.maintenance(name, stage.as_str(), &names(&nodes)),
                Some(old) if old < stage => sim.stage(name, stage),
                Some(_) => {}
            }
        }
        Event::Select { maintenance, nodes } => {
            let there = sim.world.maintenances.iter().any(|m| m.metadata.name == NAMES[maintenance]);
            let term = json!({ "matchExpressions": [
                { "key": "name", "operator": "In", "values": names(&nodes) }] });
            let selector = json!({ "nodeSelectorTerms": [term] });
            if there {
                let selector = serde_json::from_value(selector).unwrap();
                sim.change(NAMES[maintenance], |m| m.spec.node_selector = Some(selector));
            }
        }
        Event::Appear { node, priority } => {
            sim.pod(NODES[node], &format!("p{number}"), &json!({ "spec": { "priority": priority } }));
        }
        Event::Leave => {
            if let Some(pod) = sim.requested().first() {
                sim.remove_pod(pod);
            }
        }
        Event::Restart => sim.memory = MachineMemory::default(),
    }
}

/// What holds whenever nothing is left to be done.
fn check(sim: &Sim) {
    let selects = |m: &NodeMaintenance, node: &str| crate::world::selects(m, &sim.world.nodes[node]);
    let all = || sim.world.maintenances.iter();
    for node in NODES {
        let stage = all()
            .filter(|m| selects(m, node))
            .map(|m| m.spec.stage)
            .filter(|s| *s != NodeMaintenanceStage::Complete)
            .max();
        let held = matches!(stage, Some(NodeMaintenanceStage::Cordon | NodeMaintenanceStage::Drain));
        let (unschedulable, by) = sim.cordon_of(node);
        assert_eq!(by.is_some(), held, "{node}");
        assert!(unschedulable || !held, "{node} is held and schedulable");
        for pod in &sim.world.pods[node] {
            let asked = sim.requested().contains(&pod.name);
            assert!(
                !asked || stage == Some(NodeMaintenanceStage::Drain),
                "{} is asked to leave {node} in {stage:?}",
                pod.name
            );
        }
        let drained = sim.condition(node, DRAINED).is_some_and(|(status, ..)| status == "True");
        assert!(!drained || sim.world.pods[node].is_empty(), "{node} is called drained");
    }
    for maintenance in all().filter(|m| m.spec.stage == NodeMaintenanceStage::Drain) {
        let left = NODES.iter().filter(|n| selects(maintenance, n)).any(|n| !sim.world.pods[*n].is_empty());
        let drained = sim.drained(&maintenance.metadata.name).is_some_and(|(status, _)| status == "True");
        assert_eq!(drained, !left, "{}", maintenance.metadata.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_settles_and_in_the_end_nodes_are_as_they_were(
        events in prop::collection::vec(event(), 1..25), cordoned in prop::collection::vec(any::<bool>(), NODES.len()),
    ) {
        let mut sim = Sim::new(&[]);
        NODES.iter().zip(&cordoned).for_each(|(node, cordoned)| sim.node(node, *cordoned));
        // A maintenance that goes straight from Idle to Complete makes its nodes schedulable, whoever cordoned them.
        let mut never_started_nodes = false;
        for (number, event) in events.into_iter().enumerate() {
            if let Event::Stage { maintenance, stage: NodeMaintenanceStage::Complete, .. } = &event {
                let before = sim.world.maintenances.iter().find(|m| m.metadata.name == NAMES[*maintenance]);
                never_started_nodes |= before.is_none_or(|m| m.spec.stage == NodeMaintenanceStage::Idle);
            }
            apply(&mut sim, event, number);
            sim.settle();
            check(&sim);
        }
        let names: Vec<String> = sim.world.maintenances.iter().map(|m| m.metadata.name.clone()).collect();
        for name in &names {
            let idle = sim.world.maintenances.iter().any(|m| m.metadata.name == *name && m.spec.stage == NodeMaintenanceStage::Idle);
            if !idle {
                sim.stage(name, NodeMaintenanceStage::Complete);
            }
        }
        sim.settle();
        prop_assert!(sim.requested().is_empty());
        for maintenance in sim.world.maintenances.iter().filter(|m| m.spec.stage == NodeMaintenanceStage::Complete) {
            prop_assert!(maintenance.metadata.finalizers.is_empty(), "{}", maintenance.metadata.name);
        }
        for (node, cordoned) in NODES.iter().zip(&cordoned) {
            let (unschedulable, by) = sim.cordon_of(node);
            prop_assert_eq!(by, None);
            prop_assert!(never_started_nodes || unschedulable == *cordoned, "{} was {}", node, cordoned);
        }
    }
}
