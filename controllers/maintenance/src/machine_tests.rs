//! Rules of design/controllers.md on the node maintenance controller: each test's name is the rule.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::node_maintenance::{DRAINED, FINALIZER, NodeMaintenance, NodeMaintenanceStatus, Stage};
use drydock_runtime::{Node, Pod};
use serde_json::{Value, json};

use super::*;
use crate::actions::{Action, Task};
use crate::{CORDONED_BY, OTHERS, OURS, REQUESTER};

const NOW: &str = "2026-01-01T12:00:00Z";

/// A cluster in memory, with the effects of actions.
struct Sim {
    world: World,
    memory: Memory,
    config: Config,
    now: Timestamp,
    notes: Vec<Note>,
    version: u64,
}

impl Sim {
    fn new(nodes: &[&str]) -> Self {
        let mut sim = Self {
            world: World::default(),
            memory: Memory::default(),
            config: Config::default(),
            now: NOW.parse().unwrap(),
            notes: Vec::new(),
            version: 1,
        };
        nodes.iter().for_each(|n| sim.node(n, false));
        sim
    }

    fn node(&mut self, name: &str, unschedulable: bool) {
        let labels = BTreeMap::from([("name".to_owned(), name.to_owned())]);
        let node = Node {
            name: name.into(),
            uid: format!("uid-{name}"),
            unschedulable,
            labels,
            ..Default::default()
        };
        self.put_node(node);
    }

    fn put_node(&mut self, mut node: Node) {
        self.version += 1;
        node.resource_version = self.version.to_string();
        self.world.pods.entry(node.name.clone()).or_default();
        self.world.nodes.insert(node.name.clone(), Arc::new(node));
    }

    fn change_node(&mut self, name: &str, change: impl FnOnce(&mut Node)) {
        let mut node = (*self.world.nodes[name]).clone();
        change(&mut node);
        self.put_node(node);
    }

    fn pod(&mut self, node: &str, name: &str, extra: &Value) {
        let mut value = json!({
            "metadata": { "name": name, "namespace": "ns", "uid": format!("uid-{name}") },
            "spec": { "nodeName": node }, "status": { "phase": "Running" },
        });
        merge(&mut value, extra);
        let pod: Pod = serde_json::from_value(value).unwrap();
        self.world.pods.entry(node.to_owned()).or_default().push(Arc::new(pod));
        self.locate();
    }

    fn remove_pod(&mut self, name: &str) {
        self.world.pods.values_mut().for_each(|pods| pods.retain(|p| p.name != name));
        let key = ("ns".to_owned(), format!("uid-{name}"));
        if let Some(request) = self.world.requests.get_mut(&key) {
            let mut evicted = (**request).clone();
            evicted.status.conditions = conditions("Evicted", "PodDeleted", "");
            *request = Arc::new(evicted);
        }
        self.locate();
    }

    fn maintenance(&mut self, name: &str, stage: &str, nodes: &[&str]) {
        self.maintenance_with(name, stage, json!([{ "podPriority": 10, "podType": "Default" },
            { "podPriority": i32::MAX, "podType": "Default" }, { "podPriority": i32::MAX, "podType": "DaemonSet" },
            { "podPriority": i32::MAX, "podType": "Static" }]), nodes);
    }

    fn maintenance_with(&mut self, name: &str, stage: &str, plan: Value, nodes: &[&str]) {
        let term = json!({ "matchExpressions": [{ "key": "name", "operator": "In", "values": nodes }] });
        let finalizers = if stage == "Idle" { json!([]) } else { json!([FINALIZER]) };
        let value = json!({
            "metadata": { "name": name, "uid": format!("uid-{name}"), "generation": 1, "finalizers": finalizers,
                "creationTimestamp": format!("2026-01-01T11:00:{:02}Z", self.world.maintenances.len()) },
            "spec": { "nodeSelector": { "nodeSelectorTerms": [term] }, "stage": stage, "drainPlan": plan },
        });
        self.world.maintenances.push(Arc::new(serde_json::from_value(value).unwrap()));
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut NodeMaintenance)) {
        let slot = self.world.maintenances.iter_mut().find(|m| m.metadata.name == name).unwrap();
        let mut maintenance = (**slot).clone();
        change(&mut maintenance);
        *slot = Arc::new(maintenance);
    }

    fn stage(&mut self, name: &str, stage: Stage) {
        self.change(name, |m| {
            m.spec.stage = stage;
            m.metadata.generation += 1;
            if !m.metadata.finalizers.iter().any(|f| f == FINALIZER) {
                m.metadata.finalizers.push(FINALIZER.to_owned());
            }
        });
    }

    fn request(&mut self, name: &str, change: impl FnOnce(&mut EvictionRequest)) {
        let key = ("ns".to_owned(), format!("uid-{name}"));
        let mut request = self.world.requests.get(&key).map(|r| (**r).clone()).unwrap_or_else(|| {
            let mut new = EvictionRequest::named("ns", &key.1);
            new.metadata.uid = format!("request-{name}");
            let pod = json!({ "name": name, "uid": key.1 });
            new.spec.target.pod = serde_json::from_value(pod).unwrap();
            new
        });
        change(&mut request);
        self.world.requests.insert(key, Arc::new(request));
        self.locate();
    }

    fn locate(&mut self) {
        let pods = self.world.pods.values().flatten();
        self.world.located = pods.map(|p| (p.uid.clone(), p.node_name.clone())).collect();
    }

    fn step(&mut self) -> BTreeMap<Task, Action> {
        let decision = step(&self.world, &mut self.memory, self.now, &self.config);
        self.notes.extend(decision.notes);
        decision.actions
    }

    /// Steps and carries out until nothing is left to do.
    fn settle(&mut self) {
        for _ in 0..20 {
            let actions = self.step();
            if actions.is_empty() {
                return;
            }
            actions.into_iter().for_each(|(task, action)| self.carry_out(&task, action));
        }
        panic!("does not settle: {:#?}", self.step());
    }

    fn carry_out(&mut self, task: &Task, action: Action) {
        match (task, action) {
            (Task::Cordon(name), Action::Cordon { unschedulable, annotation, .. }) => {
                self.change_node(name, |n| {
                    n.unschedulable = unschedulable.unwrap_or(n.unschedulable);
                    n.annotations.remove(CORDONED_BY);
                    n.annotations.extend(annotation.map(|a| (CORDONED_BY.to_owned(), a.to_owned())));
                })
            }
            (Task::Conditions(name), Action::Conditions { set, remove, .. }) => self.change_node(name, |n| {
                n.conditions
                    .retain(|c| !remove.contains(&&*c.type_) && !set.iter().any(|s| s.type_ == c.type_));
                n.conditions.extend(set.iter().map(|s| drydock_runtime::cache::NodeCondition {
                    type_: s.type_.to_owned(),
                    status: s.status.to_owned(),
                    reason: s.reason.to_owned(),
                    message: s.message.clone(),
                }));
            }),
            (Task::Request(..), Action::Ask { pod, .. }) => self.request(&pod, |r| {
                r.spec.requesters = serde_json::from_value(json!([{ "name": REQUESTER }])).unwrap();
            }),
            (Task::Request(..), Action::Withdraw { pod, .. }) => {
                self.request(&pod, |r| r.spec.requesters.retain(|q| q.name != REQUESTER));
            }
            (Task::Request(ns, uid), Action::Replace { .. }) => {
                self.world.requests.remove(&(ns.clone(), uid.clone()));
            }
            (Task::Status(name), Action::Status { status, .. }) => self.change(name, |m| m.status = *status),
            (Task::Finalizer(name), _) => self.change(name, |m| m.metadata.finalizers.clear()),
            other => panic!("{other:?}"),
        }
    }

    fn status(&self, name: &str) -> &NodeMaintenanceStatus {
        &self.world.maintenances.iter().find(|m| m.metadata.name == name).unwrap().status
    }

    fn drained(&self, name: &str) -> Option<(String, String)> {
        let found = self.status(name).conditions.iter().find(|c| c.type_ == DRAINED);
        found.map(|c| (c.status.clone(), c.reason.clone()))
    }

    fn requested(&self) -> Vec<String> {
        let ours = self.world.requests.values().filter(|r| r.has_requester(REQUESTER));
        let mut names: Vec<_> = ours.map(|r| r.spec.target.pod.as_ref().unwrap().name.clone()).collect();
        names.sort();
        names
    }

    fn cordon_of(&self, node: &str) -> (bool, Option<&str>) {
        let node = &self.world.nodes[node];
        (node.unschedulable, node.annotations.get(CORDONED_BY).map(String::as_str))
    }

    fn condition(&self, node: &str, type_: &str) -> Option<(String, String, String)> {
        let found = self.world.nodes[node].condition(type_);
        found.map(|c| (c.status.clone(), c.reason.clone(), c.message.clone()))
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.iter().for_each(|(k, v)| merge(into.entry(k.clone()).or_insert(Value::Null), v));
        }
        (into, from) => *into = from.clone(),
    }
}

fn conditions(type_: &str, reason: &str, message: &str) -> Vec<drydock_api::meta::Condition> {
    let value = json!([{ "type": type_, "status": "True", "reason": reason, "message": message }]);
    serde_json::from_value(value).unwrap()
}

fn pair(a: &str, b: &str) -> Option<(String, String)> {
    Some((a.to_owned(), b.to_owned()))
}

#[test]
fn idle_touches_nothing_but_its_own_status() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Idle", &["a"]);
    let actions = sim.step();
    assert_eq!(actions.keys().cloned().collect::<Vec<_>>(), [Task::Status("m".into())]);
    sim.settle();
    assert_eq!(sim.status("m").node_statuses[0].pods_pending_evacuation, 1);
    assert_eq!(sim.drained("m"), None);
}

#[test]
fn cordon_makes_nodes_unschedulable_and_evicts_nothing() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Cordon", &["a"]);
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (true, Some(OURS)));
    assert_eq!(sim.cordon_of("b"), (false, None));
    assert!(sim.requested().is_empty());
    assert_eq!(sim.condition("a", "MaintenanceInProgress").unwrap().1, "Cordon");
    assert_eq!(sim.condition("a", "DrainInProgress"), None);
}

#[test]
fn a_node_that_an_admin_cordoned_stays_cordoned_afterwards() {
    let mut sim = Sim::new(&["a"]);
    sim.node("b", true);
    sim.maintenance("m", "Cordon", &["a", "b"]);
    sim.settle();
    assert_eq!(sim.cordon_of("b"), (true, Some(OTHERS)));
    sim.stage("m", Stage::Complete);
    sim.settle();
    assert_eq!((sim.cordon_of("a"), sim.cordon_of("b")), ((false, None), (true, None)));
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
    assert_eq!(sim.condition("a", "MaintenanceInProgress"), None);
}

#[test]
fn idle_straight_to_complete_uncordons_whoever_cordoned() {
    let mut sim = Sim::new(&[]);
    sim.node("a", true);
    sim.maintenance("m", "Idle", &["a"]);
    sim.settle();
    sim.stage("m", Stage::Complete);
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (false, None));
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
    sim.change_node("a", |n| n.unschedulable = true);
    assert!(sim.step().is_empty(), "a finished maintenance must leave the node alone");
}

#[test]
fn a_deletion_before_anything_was_seen_is_no_straight_completion() {
    let mut sim = Sim::new(&[]);
    sim.node("a", true);
    sim.maintenance("m", "Complete", &["a"]);
    sim.change("m", |m| m.metadata.deletion_timestamp = Some(NOW.parse().unwrap()));
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (true, None));
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
}

#[test]
fn a_foreign_uncordon_is_reverted_and_repeated_ones_are_told() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Cordon", &["a"]);
    sim.settle();
    for told in [0, 2, 2] {
        sim.change_node("a", |n| n.unschedulable = false);
        sim.settle();
        assert_eq!(sim.cordon_of("a"), (true, Some(OURS)));
        let conflicts = sim.notes.iter().filter(|n| n.reason == "CordonConflict" && n.warning).count();
        assert_eq!(conflicts, told);
    }
}

#[test]
fn another_maintenance_keeps_the_node_cordoned() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Cordon", &["a"]);
    sim.maintenance("n", "Cordon", &["a"]);
    sim.settle();
    sim.stage("m", Stage::Complete);
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (true, Some(OURS)));
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
    sim.stage("n", Stage::Complete);
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (false, None));
}

#[test]
fn nodes_that_leave_the_selection_are_released() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
    sim.change("m", |m| m.spec.node_selector.as_mut().unwrap().node_selector_terms.clear());
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (false, None));
    assert!(sim.requested().is_empty());
    assert_eq!(sim.drained("m"), pair("False", "NoNodesSelected"));
}

#[test]
fn drain_asks_tier_by_tier_and_ends_drained() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "low", &json!({}));
    sim.pod("a", "high", &json!({ "spec": { "priority": 500 } }));
    let owner = json!({ "metadata": { "ownerReferences": [
        { "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true }] } });
    sim.pod("a", "daemon", &owner);
    sim.maintenance("m", "Drain", &["a"]);
    let mut asked = Vec::new();
    for pod in ["low", "high", "daemon"] {
        sim.settle();
        asked.push(pod);
        assert_eq!(sim.requested(), [pod]);
        assert_eq!(sim.drained("m"), pair("False", "Draining"));
        sim.remove_pod(pod);
    }
    sim.settle();
    assert!(sim.requested().is_empty(), "withdrawn as soon as the requests are Evicted");
    assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"));
    assert_eq!(sim.status("m").node_statuses[0].drain_message, "Drained");
    assert_eq!(sim.condition("a", "DrainInProgress").unwrap().0, "False");
    assert_eq!(sim.condition("a", "Drained").unwrap().0, "True");
    assert_eq!(sim.notes.iter().filter(|n| n.reason == "NodeDrained").count(), 2);
    assert_eq!(sim.status("m").stage_statuses.len(), 1);
}

#[test]
fn pending_and_evacuating_together_are_what_is_left() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "low", &json!({}));
    sim.pod("a", "high", &json!({ "spec": { "priority": 500 } }));
    sim.pod("a", "done", &json!({ "status": { "phase": "Succeeded" } }));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let node = &sim.status("m").node_statuses[0];
    assert_eq!((node.pods_pending_evacuation, node.pods_evacuating), (1, 1));
    assert_eq!(node.drain_message, "Evacuating");
}

#[test]
fn terminal_pods_and_those_of_the_node_agent_do_not_count_but_terminating_ones_do() {
    let config = Config::default();
    let pod = |extra: Value| {
        let mut value = json!({ "metadata": { "name": "p", "namespace": "drydock-system", "uid": "u" } });
        merge(&mut value, &extra);
        config.counts(&serde_json::from_value(value).unwrap())
    };
    assert!(pod(json!({ "metadata": { "deletionTimestamp": NOW } })));
    assert!(!pod(json!({ "status": { "phase": "Failed" } })));
    let owner = |name: &str| {
        json!({ "metadata": { "ownerReferences": [
        { "apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": "d", "controller": true }] } })
    };
    assert!(!pod(owner("drydock-node-agent")) && pod(owner("other")));
}

#[test]
fn drained_turns_false_again_when_a_counted_pod_appears_and_freezes_at_complete() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"));
    sim.pod("a", "p", &json!({}));
    sim.settle();
    assert_eq!(sim.drained("m"), pair("False", "Draining"));
    sim.stage("m", Stage::Complete);
    sim.settle();
    assert_eq!(sim.drained("m"), pair("False", "Canceled"));
    assert!(sim.requested().is_empty(), "requests are withdrawn when pods are left");
}

#[test]
fn a_true_drained_stays_true_at_complete() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim.stage("m", Stage::Complete);
    sim.pod("a", "p", &json!({}));
    sim.settle();
    assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"));
    assert_eq!(sim.status("m").node_statuses[0].drain_message, "");
}

#[test]
fn drained_is_confirmed_by_a_live_read_and_only_then() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Drain", &["a"]);
    let confirm_of = |actions: &BTreeMap<Task, Action>| match &actions[&Task::Status("m".into())] {
        Action::Status { confirm, .. } => confirm.clone(),
        other => panic!("{other:?}"),
    };
    let first = sim.step();
    assert!(confirm_of(&first).is_empty(), "a node that is not cordoned yet is not drained");
    first.into_iter().for_each(|(task, action)| sim.carry_out(&task, action));
    assert_eq!(confirm_of(&sim.step()), ["a"]);
}

#[test]
fn one_requester_entry_serves_overlapping_maintenances_until_the_last_ends() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.maintenance("n", "Drain", &["a"]);
    sim.settle();
    sim.stage("m", Stage::Complete);
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
    sim.stage("n", Stage::Complete);
    sim.settle();
    assert!(sim.requested().is_empty());
}

#[test]
fn a_request_of_another_requester_gets_our_entry_too() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.request("p", |r| r.spec.requesters = serde_json::from_value(json!([{ "name": "a.b" }])).unwrap());
    sim.maintenance("m", "Drain", &["a"]);
    let actions = sim.step();
    let wanted = Action::Ask { pod: "p".into(), request: Some("request-p".into()) };
    assert_eq!(actions[&Task::Request("ns".into(), "uid-p".into())], wanted);
}

#[test]
fn a_request_canceled_for_no_requesters_is_replaced_at_once() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.request("p", |r| r.status.conditions = conditions("Canceled", "NoRequesters", ""));
    sim.maintenance("m", "Drain", &["a"]);
    let actions = sim.step();
    assert!(matches!(actions[&Task::Request("ns".into(), "uid-p".into())], Action::Replace { .. }));
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
}

#[test]
fn a_request_canceled_by_validation_is_a_blocker_and_not_a_loop() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    let message =
        "Target Pod p is part of a Workload/PodGroup. Eviction of such pods is currently not supported.";
    sim.request("p", |r| r.status.conditions = conditions("Canceled", "ValidationFailed", message));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let node = &sim.status("m").node_statuses[0];
    assert_eq!((node.blocked_pods, node.blockers[0].reason.as_str()), (1, "WorkloadPod"));
    assert_eq!(node.blockers[0].message, message);
    assert!(sim.requested().is_empty());
}

#[test]
fn blockers_say_what_blocks_and_since_when() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let text = "Could not evict a pod due to failing eviction requests, number of retries: 7. PodDisruptionBudget b allows 0";
    let eviction = json!({ "activeInterceptors": ["imperative-eviction.k8s.io"], "activationTime": NOW,
        "interceptors": [{ "name": "imperative-eviction.k8s.io", "message": text }] });
    sim.request("p", |r| r.status = serde_json::from_value(eviction).unwrap());
    sim.settle();
    sim.now = "2026-01-01T13:00:00Z".parse().unwrap();
    sim.memory = Memory::default();
    sim.settle();
    let blocker = &sim.status("m").node_statuses[0].blockers[0];
    assert_eq!((blocker.reason.as_str(), blocker.message.as_str()), ("PodDisruptionBudget", text));
    assert_eq!(blocker.since_time, Some(NOW.parse().unwrap()), "kept over a restart");
    assert_eq!(blocker.pod.name, "p");
}

#[test]
fn silent_interceptors_and_pods_that_do_not_die_block() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "late", &json!({ "metadata": { "deletionTimestamp": "2026-01-01T11:59:00Z" } }));
    let kept = json!({ "metadata": { "deletionTimestamp": "2026-01-01T11:59:00Z", "finalizers": ["x/y"] } });
    sim.pod("a", "kept", &kept);
    sim.pod("a", "soon", &json!({ "metadata": { "deletionTimestamp": NOW } }));
    sim.pod("a", "quiet", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let quiet = json!({ "activeInterceptors": ["a.b"], "activationTime": "2026-01-01T11:50:00Z",
        "interceptors": [{ "name": "a.b", "message": "" }] });
    sim.request("quiet", |r| r.status = serde_json::from_value(quiet).unwrap());
    sim.settle();
    let node = &sim.status("m").node_statuses[0];
    let mut reasons: Vec<_> =
        node.blockers.iter().map(|b| (b.pod.name.as_str(), b.reason.as_str())).collect();
    reasons.sort_unstable();
    assert_eq!(reasons, [("kept", "Finalizer"), ("late", "Terminating"), ("quiet", "Interceptor")]);
    assert_eq!(node.pods_evacuating, 4, "terminating pods get a request too");
    let decision = step(&sim.world, &mut sim.memory, sim.now, &sim.config);
    assert_eq!(decision.wake, Some("2026-01-01T12:00:10Z".parse().unwrap()));
}

#[test]
fn a_daemon_set_that_puts_its_pod_back_is_named() {
    let mut sim = Sim::new(&["a"]);
    let owner = json!({ "metadata": { "ownerReferences": [
        { "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true }] } });
    sim.pod("a", "one", &owner);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.status("m").node_statuses[0].blocked_pods, 0);
    sim.remove_pod("one");
    sim.pod("a", "two", &owner);
    sim.settle();
    let blocker = &sim.status("m").node_statuses[0].blockers[0];
    assert_eq!(blocker.reason, "DaemonSetReturns");
    assert!(blocker.message.contains("DaemonSet d"));
}

#[test]
fn a_static_pod_without_an_agent_is_a_blocker() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "s", &json!({ "metadata": { "annotations": { "kubernetes.io/config.mirror": "x" } } }));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let passed = json!({ "activeInterceptors": ["imperative-eviction.k8s.io"], "activationTime": NOW,
        "processedInterceptors": ["kubelet.k8s.io"],
        "interceptors": [{ "name": "imperative-eviction.k8s.io", "message": "" }] });
    sim.request("s", |r| r.status = serde_json::from_value(passed).unwrap());
    sim.settle();
    assert_eq!(sim.status("m").node_statuses[0].blockers[0].reason, "NoNodeAgent");
}

#[test]
fn at_most_ten_blockers_are_named_and_all_are_counted() {
    let mut sim = Sim::new(&["a"]);
    for i in 0..12 {
        sim.pod(
            "a",
            &format!("p{i}"),
            &json!({ "metadata": { "deletionTimestamp": "2026-01-01T11:00:00Z" } }),
        );
    }
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let node = &sim.status("m").node_statuses[0];
    assert_eq!((node.blockers.len(), node.blocked_pods), (10, 12));
}

#[test]
fn a_newcomer_on_a_node_that_is_further_along_is_told() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("a", "high", &json!({ "spec": { "priority": 500 } }));
    sim.pod("b", "low", &json!({}));
    sim.maintenance("old", "Drain", &["a"]);
    sim.settle();
    sim.maintenance("young", "Drain", &["a", "b"]);
    sim.settle();
    let told: Vec<_> = sim.notes.iter().filter(|n| n.reason == "DrainFastForwarded").collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].message.contains("node a due to the older maintenance old"), "{}", told[0].message);
    let young = &sim.status("young").node_statuses;
    assert_eq!(young[0].drain_message, "Evacuating (fast-forwarded by older old)");
    assert_eq!(young[1].drain_message, "Evacuating");
}

#[test]
fn the_furthest_maintenance_decides_on_node_conditions_and_all_are_named() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Cordon", &["a"]);
    sim.maintenance("n", "Drain", &["a"]);
    sim.change("n", |n| n.spec.reason = "OS upgrade".to_owned());
    sim.settle();
    let wanted = Some(("True".to_owned(), "Drain".to_owned(), "m, n (OS upgrade)".to_owned()));
    assert_eq!(sim.condition("a", "MaintenanceInProgress"), wanted);
    sim.stage("n", Stage::Complete);
    sim.settle();
    assert_eq!(sim.condition("a", "MaintenanceInProgress").unwrap().1, "Cordon");
    assert_eq!(sim.condition("a", "DrainInProgress"), None);
}

#[test]
fn planned_maintenances_are_advertised_only_if_asked_for() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Idle", &["a"]);
    sim.settle();
    assert_eq!(sim.condition("a", "MaintenancePlanned"), None);
    sim.config.advertise_planned = true;
    sim.settle();
    assert_eq!(sim.condition("a", "MaintenancePlanned").unwrap().1, "Idle");
    sim.world.maintenances.clear();
    sim.settle();
    assert_eq!(sim.condition("a", "MaintenancePlanned"), None);
}

#[test]
fn a_foreign_drained_condition_is_left_alone() {
    let mut sim = Sim::new(&["a"]);
    let foreign = drydock_runtime::cache::NodeCondition {
        type_: "Drained".into(),
        status: "True".into(),
        ..Default::default()
    };
    sim.change_node("a", |n| n.conditions.push(foreign));
    assert!(sim.step().is_empty());
}
