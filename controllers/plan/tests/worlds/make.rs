//! Worlds by seed: plans, nodes, pods.

use std::collections::{BTreeMap, BTreeSet};

use drydock_api::metav1::{LabelSelector, LabelSelectorRequirement};
use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

use super::random::Random;
use super::{Live, Member, Stage, World};
use crate::model::Maintenance;
use crate::model::targets::requirements;

pub const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];
const TYPES: [PodType; 3] = [PodType::Default, PodType::DaemonSet, PodType::Static];
const PRIORITIES: [i32; 6] = [500, 1000, 0, 100, 2000, 2_000_000_000];
/// What the API inserts in each type, before the greatest value.
const INJECTED: [i32; 3] = [1_000_000_000, 2_000_000_000, 2_000_001_000];
const LABELS: [(&str, &[&str]); 2] = [("app", &["x", "y", "z"]), ("tier", &["a", "b"])];

/// The world of a seed. Half of them are small; a third are tight: two nodes, two priorities, one type of pods, so that
/// plans contradict each other and maintenances follow each other on the same nodes.
pub fn world(seed: u64) -> World {
    let mut random = Random(seed);
    let is_tight = random.chance(1, 3);
    let has_selectors = random.chance(4, 5);
    let is_small = random.chance(1, 2);
    let count = 1 + random.below(if is_small { 3 } else { 5 });
    let members = (0..count).map(|i| member(&mut random, i, has_selectors, is_small, is_tight)).collect();
    let pods = 2 + random.below(if is_small { 5 } else { 12 });
    let mut world =
        World { seed, random, step: 0, has_selectors, is_tight, members, pods: Vec::new(), born: 0 };
    for _ in 0..pods {
        let pod = live(&mut world);
        world.pods.push(pod);
    }
    world
}

fn member(random: &mut Random, i: usize, has_selectors: bool, is_small: bool, is_tight: bool) -> Member {
    let chosen: BTreeSet<String> = NODES[..if is_tight { 2 } else { 4 }]
        .iter()
        .filter(|_| random.chance(1, 2))
        .map(|n| (*n).to_owned())
        .collect();
    // Half of them drain every type.
    let last = if random.chance(1, 2) { PodType::Static } else { *random.pick(&TYPES) };
    let maintenance = Maintenance {
        name: format!("m{i}"),
        started: i64::try_from(random.below(3)).unwrap(),
        created: i64::try_from(random.below(2)).unwrap(),
        plan: plan(random, last, has_selectors, is_small, is_tight),
        last,
        nodes: chosen,
        position: None,
        recorded: BTreeMap::new(),
    };
    let stage = if random.chance(2, 3) { Stage::Drain } else { Stage::Waiting };
    Member { stage, maintenance, watch: super::Watch::default() }
}

/// A plan in the order that the API asks for, with one entry for everything at the end of each type up to the last.
fn plan(
    random: &mut Random,
    last: PodType,
    has_selectors: bool,
    is_small: bool,
    is_tight: bool,
) -> Vec<DrainPlanEntry> {
    let priorities = &PRIORITIES[..if is_tight { 2 } else { PRIORITIES.len() }];
    let mut all = Vec::new();
    let is_completed = random.chance(1, 4);
    for pod_type in TYPES.into_iter().filter(|pod_type| *pod_type <= last) {
        let entry = |pod_priority, pod_selector| DrainPlanEntry { pod_selector, pod_priority, pod_type };
        for _ in 0..random.below(if is_small { 2 } else { 4 }) {
            let by = (has_selectors && random.chance(2, 3)).then(|| selector(random));
            all.push(entry(*random.pick(priorities), by));
        }
        if is_completed {
            all.extend(INJECTED.map(|p| entry(p, None)));
        }
        all.push(entry(i32::MAX, None));
    }
    let by = |e: &DrainPlanEntry| (e.pod_type, e.pod_priority, requirements(e).is_empty(), requirements(e));
    all.sort_by_key(by);
    all.dedup_by_key(|e| by(e));
    all
}

/// Labels that must match, or expressions of any operator, or both.
fn selector(random: &mut Random) -> LabelSelector {
    let mut selector = LabelSelector::default();
    while selector.is_empty() || random.chance(1, 4) {
        let (key, values) = *random.pick(&LABELS);
        let value = (*random.pick(values)).to_owned();
        let operator = *random.pick(&["", "In", "NotIn", "Exists", "DoesNotExist"]);
        if operator.is_empty() {
            selector.match_labels.insert(key.to_owned(), value);
            continue;
        }
        let mut wanted = Vec::new();
        if operator.ends_with("In") {
            wanted.push(value);
            if random.chance(1, 3) {
                wanted.push((*random.pick(values)).to_owned());
            }
        }
        let (key, operator) = (key.to_owned(), operator.to_owned());
        selector.match_expressions.push(LabelSelectorRequirement { key, operator, values: wanted });
    }
    selector
}

/// A pod that comes now.
pub fn live(world: &mut World) -> Live {
    let (random, is_tight) = (&mut world.random, world.is_tight);
    let mut labels = BTreeMap::new();
    for (key, values) in LABELS {
        if random.chance(2, 3) {
            labels.insert(key.to_owned(), (*random.pick(values)).to_owned());
        }
    }
    world.born += 1;
    Live {
        id: world.born,
        node: (*random.pick(&NODES[..if is_tight { 2 } else { 4 }])).to_owned(),
        pod_type: if is_tight || random.chance(2, 3) { PodType::Default } else { *random.pick(&TYPES) },
        priority: *random.pick(&PRIORITIES[..if is_tight { 2 } else { PRIORITIES.len() }]),
        labels,
        came: world.step,
    }
}
