//! Random worlds and the life of a drain in them: newcomers, leavers, nodes that join and leave, late pods, a restart
//! from the stored statuses after every step, half of the steps with writes lost. `check` holds the invariants,
//! `make` the worlds, `random` the generator.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod check;
mod make;
mod random;

use std::collections::{BTreeMap, BTreeSet};

use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

use crate::model::compare::{list, within};
use crate::model::{Maintenance, Outcome, Pod, Targets};
use random::Random;

/// The step after which nothing joins, comes or ends any more.
const QUIET: usize = 14;
/// How many steps the rest may take, with writes lost.
const BOUND: usize = 600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Waiting,
    Drain,
    /// Its status still shows targets.
    Ended,
}

/// A maintenance with its stored status, and what is known of its life.
pub struct Member {
    pub stage: Stage,
    pub maintenance: Maintenance,
    pub watch: Watch,
}

/// The life of a maintenance, for the checks.
#[derive(Default)]
pub struct Watch {
    /// When each node that it selects joined it.
    pub joined: BTreeMap<String, usize>,
    /// What its nodes showed before a node joined, by the node that joined.
    pub held: BTreeMap<String, Targets>,
    /// What its nodes showed before the last node joined.
    pub kept: Targets,
    /// The furthest entry since the last node joined.
    pub reached: usize,
    /// When its cursor last rose to or past an entry.
    pub taken: BTreeMap<usize, usize>,
    /// The nodes on which it was reported as fast-forwarded.
    pub told: BTreeSet<String>,
    /// Pods that a contradiction made it pass over, by their id.
    pub excused: BTreeSet<usize>,
}

/// A pod that has not left.
#[derive(Clone, Debug)]
pub struct Live {
    pub id: usize,
    pub node: String,
    pub pod_type: PodType,
    pub priority: i32,
    pub labels: BTreeMap<String, String>,
    pub came: usize,
}

impl Live {
    pub fn pod(&self) -> Pod<'_> {
        Pod { node: &self.node, pod_type: self.pod_type, priority: self.priority, labels: &self.labels }
    }

    pub fn is_covered(&self, entries: &[DrainPlanEntry]) -> bool {
        entries.iter().any(|e| self.pod().is_covered(e))
    }

    /// The entry of a plan to which the pod belongs: the first that covers it.
    pub fn place(&self, plan: &[DrainPlanEntry]) -> Option<usize> {
        plan.iter().position(|e| self.pod().is_covered(e))
    }
}

pub struct World {
    pub seed: u64,
    pub random: Random,
    pub step: usize,
    pub has_selectors: bool,
    pub is_tight: bool,
    pub members: Vec<Member>,
    pub pods: Vec<Live>,
    pub born: usize,
}

/// Runs the world of a seed. Returns how many steps it took, or what was violated, where and when.
pub fn run<P>(seed: u64, plan: P) -> Result<usize, String>
where
    P: Fn(&[Maintenance], &Targets, &[Pod<'_>]) -> Outcome,
{
    let mut world = make::world(seed);
    while world.step < QUIET || !world.is_over() {
        let step = world.step;
        let told = |words: String| format!("seed {seed}, step {step}: {words}\n{}", world_words(seed, step));
        if step > QUIET + BOUND {
            return Err(told("does not end".to_owned()));
        }
        world.step(&plan).map_err(told)?;
    }
    Ok(world.step)
}

/// How to see the world of a failure.
fn world_words(seed: u64, step: usize) -> String {
    format!("(worlds::show({seed}, {step}, plan) prints its life)")
}

/// Prints the life of a world up to a step.
pub fn show<P>(seed: u64, last: usize, plan: P)
where
    P: Fn(&[Maintenance], &Targets, &[Pod<'_>]) -> Outcome,
{
    let mut world = make::world(seed);
    for member in &world.members {
        println!("{}: {}", member.maintenance.name, list(&member.maintenance.plan));
    }
    while world.step <= last {
        let seen = |m: &[Maintenance], ended: &Targets, pods: &[Pod<'_>]| {
            let outcome = plan(m, ended, pods);
            print(m, ended, pods, &outcome);
            outcome
        };
        println!("step {}", world.step);
        if let Err(words) = world.step(&seen) {
            println!("{words}");
        }
    }
}

fn print(maintenances: &[Maintenance], ended: &Targets, pods: &[Pod<'_>], outcome: &Outcome) {
    for (m, o) in maintenances.iter().zip(&outcome.maintenances) {
        println!("  {} started {} at {:?}, now {}", m.name, m.started, m.position, o.cursor);
        for (n, old) in &m.recorded {
            println!("    {n} had {}", list(old));
        }
        for (n, o) in &o.nodes {
            println!("    {n} shows {} '{}'", list(&o.drain_targets), o.drain_message);
        }
    }
    for (n, old) in ended {
        println!("  ended: {n} had {}", list(old));
    }
    for (p, t) in pods.iter().zip(&outcome.targeted) {
        println!("  {} {} {} {:?} targeted {t}", p.node, p.pod_type.as_str(), p.priority, p.labels);
    }
    println!("  {:?}", outcome.fast_forwards);
}

impl World {
    /// Something happens, the statuses are read, planned and written, and pods leave.
    fn step<P>(&mut self, plan: &P) -> Result<(), String>
    where
        P: Fn(&[Maintenance], &Targets, &[Pod<'_>]) -> Outcome,
    {
        if self.step < QUIET {
            for _ in 0..self.random.below(3) {
                self.happen();
            }
        }
        let input: Vec<Maintenance> = self.draining().map(|m| m.maintenance.clone()).collect();
        let ended = self.ended();
        let outcome = plan(&input, &ended, &self.pods.iter().map(Live::pod).collect::<Vec<_>>());
        check::planned(self, &input, &outcome)?;
        self.watch(&outcome);
        self.write(&outcome);
        self.leave()?;
        self.step += 1;
        Ok(())
    }

    fn is_over(&self) -> bool {
        !self.pods.iter().any(|p| self.on_for(&p.node, p.pod_type).next().is_some())
    }

    pub fn draining(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|m| m.stage == Stage::Drain)
    }

    /// The maintenances on a node.
    pub fn on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Member> {
        self.draining().filter(move |m| m.maintenance.nodes.contains(node))
    }

    /// The maintenances on a node that drain a type.
    pub fn on_for<'a>(&'a self, node: &'a str, pod_type: PodType) -> impl Iterator<Item = &'a Member> {
        self.on(node).filter(move |m| m.maintenance.drains(pod_type))
    }

    fn ended(&self) -> Targets {
        let mut all = Targets::new();
        for member in self.members.iter().filter(|m| m.stage == Stage::Ended) {
            for (node, targets) in &member.maintenance.recorded {
                all.entry(node.clone()).or_default().extend(targets.iter().cloned());
            }
        }
        all
    }

    /// What an interceptor sees of a node: the union over the maintenances that select it.
    pub fn seen(&self, node: &str) -> Vec<DrainPlanEntry> {
        self.on(node).filter_map(|m| m.maintenance.recorded.get(node)).flatten().cloned().collect()
    }

    /// What must never go back on a node: what is seen, and what leavers show where a maintenance that stays,
    /// and drains the type, shows the node.
    pub fn counted(&self, node: &str) -> Vec<DrainPlanEntry> {
        let goes_on = |e: &&DrainPlanEntry| {
            self.on_for(node, e.pod_type).any(|m| m.maintenance.recorded.contains_key(node))
        };
        let shown = self.members.iter().filter_map(|m| m.maintenance.recorded.get(node));
        shown.flatten().filter(goes_on).cloned().collect()
    }

    /// Lets one thing happen: a newcomer, a leaver, a node that joins, one that leaves, or a late pod.
    fn happen(&mut self) {
        let i = self.random.below(self.members.len());
        let node = (*self.random.pick(&make::NODES)).to_owned();
        let kind = self.random.below(8);
        let step = i64::try_from(self.step).unwrap();
        let Member { stage, maintenance, .. } = &mut self.members[i];
        match (kind, *stage) {
            (0 | 1, Stage::Waiting) => {
                *stage = Stage::Drain;
                maintenance.started = 3 + step / 3;
            }
            (0, Stage::Drain) => *stage = Stage::Ended,
            (2 | 3, _) => _ = maintenance.nodes.insert(node),
            (4, _) => _ = maintenance.nodes.remove(&node),
            (5 | 6, _) => {
                let pod = make::live(self);
                self.pods.push(pod);
            }
            _ => {}
        }
    }

    /// Notes what the checks need to know of a planning.
    fn watch(&mut self, outcome: &Outcome) {
        let shown: Targets = make::NODES.iter().map(|n| ((*n).to_owned(), self.counted(n))).collect();
        let (step, pods) = (self.step, &self.pods);
        let draining = self.members.iter_mut().filter(|m| m.stage == Stage::Drain);
        for (i, (member, planned)) in draining.zip(&outcome.maintenances).enumerate() {
            let (m, watch) = (&member.maintenance, &mut member.watch);
            for node in m.nodes.iter().filter(|n| !watch.joined.contains_key(*n)).cloned().collect::<Vec<_>>()
            {
                watch.joined.insert(node.clone(), step);
                watch.held.insert(node, shown.clone());
                watch.kept.clone_from(&shown);
                watch.reached = planned.cursor;
            }
            watch.reached = watch.reached.max(planned.cursor);
            let first = m.position.map_or(0, |p| p + 1);
            watch.taken.extend((first..=planned.cursor).map(|e| (e, step)));
            for told in outcome.fast_forwards.iter().filter(|f| f.maintenance == i) {
                match &told.node {
                    Some(node) => _ = watch.told.insert(node.clone()),
                    None => {
                        let here = pods.iter().filter(|p| m.nodes.contains(&p.node));
                        let passed = here.filter(|p| p.place(&m.plan).is_some_and(|e| e < planned.cursor));
                        watch.excused.extend(passed.map(|p| p.id));
                    }
                }
            }
        }
    }

    /// Writes the statuses, in half of the steps without some of them. What a leaver shows of a node is
    /// released when every maintenance there shows it, or no maintenance there goes on from it.
    fn write(&mut self, outcome: &Outcome) {
        let types_of = |n| self.counted(n).into_iter().map(move |e| (n, e.pod_type));
        let counted: BTreeSet<(&str, PodType)> = make::NODES.into_iter().flat_map(types_of).collect();
        let is_lossy = self.random.chance(1, 2);
        let mut written = BTreeSet::new();
        let draining = self.members.iter_mut().filter(|m| m.stage == Stage::Drain);
        for (member, planned) in draining.zip(&outcome.maintenances) {
            if is_lossy && self.random.chance(1, 2) {
                continue;
            }
            let m = &mut member.maintenance;
            written.insert(m.name.clone());
            m.position = Some(planned.cursor);
            let targets = planned.nodes.iter().map(|(n, o)| (n.clone(), o.drain_targets.clone()));
            m.recorded.extend(targets);
        }
        let releases = |world: &Self, member: &Member, node: &str, shown: &[DrainPlanEntry]| {
            let shows = |m: &Member, e: &DrainPlanEntry| {
                m.maintenance.recorded.get(node).is_some_and(|t| within(std::slice::from_ref(e), t))
            };
            let is_shown = |e: &DrainPlanEntry| {
                !counted.contains(&(node, e.pod_type)) || world.on_for(node, e.pod_type).all(|m| shows(m, e))
            };
            let is_draining = member.stage == Stage::Drain;
            let is_written = !is_draining || written.contains(&member.maintenance.name);
            let is_left = !is_draining || !member.maintenance.nodes.contains(node);
            is_left && is_written && shown.iter().all(is_shown)
        };
        for i in 0..self.members.len() {
            let member = &self.members[i];
            let recorded = member.maintenance.recorded.clone().into_iter();
            let rest = recorded.filter(|(n, t)| !releases(self, member, n, t)).collect();
            let Member { maintenance: m, watch, .. } = &mut self.members[i];
            m.recorded = rest;
            // A node that left and came back before its leaving was written has not left for readers of the status.
            let is_here = |n: &String| m.nodes.contains(n) || m.recorded.contains_key(n);
            watch.joined.retain(|n, _| is_here(n));
            watch.told.retain(is_here);
        }
    }

    /// Lets some of the pods leave that the stored targets cover, one after another; at least one.
    fn leave(&mut self) -> Result<(), String> {
        let covered = |p: &&Live| p.is_covered(&self.seen(&p.node));
        let mut covered: Vec<usize> = self.pods.iter().filter(covered).map(|p| p.id).collect();
        let count = covered.len().min(1 + self.random.below(covered.len() + 1));
        for _ in 0..count {
            let id = covered.swap_remove(self.random.below(covered.len()));
            let at = self.pods.iter().position(|p| p.id == id).unwrap();
            check::left(self, &self.pods[at])?;
            self.pods.remove(at);
        }
        Ok(())
    }
}
