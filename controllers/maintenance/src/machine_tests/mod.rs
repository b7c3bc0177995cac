//! Rules of the node maintenance controller: each test's name is one. What a blocker says is in
//! `blockers.rs`, and when one shows after a time in `waiting.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answer;
mod asked_again;
mod awaiting_cordon;
mod blockers;
mod conditions;
mod cordon;
mod drain;
mod gone;
mod hidden_labels;
mod inert;
mod kept;
mod metrics;
mod milestones;
mod order;
mod outcomes;
mod properties;
mod reasons;
mod returns;
mod silent;
mod static_pods;
mod status_too_large;
mod strays;
mod turns;
mod types;
mod types_recorded;
mod unscheduled;
mod waiting;
mod will_be_lost;
mod withdrawn;

use std::collections::BTreeMap;
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::maintenances::MAINTENANCES_ANNOTATION;
use drydock_api::node_maintenance::{
    DRAINED, FINALIZER, NodeMaintenance, NodeMaintenanceStage, NodeMaintenanceStatus, PodReference, PodType,
    StageStatus,
};
use drydock_runtime::cache::DaemonSetOwner;
use drydock_runtime::cache::node::{CORDONED_BY, CORDONED_BY_OTHERS, CORDONED_BY_US};
use drydock_runtime::events::Severity;
use drydock_runtime::testing::with_its_daemon_set;
use drydock_runtime::{Node, ObjectChange};
use serde_json::{Value, json};

use super::*;
use crate::REQUESTER;
use crate::actions::{Action, EventDraft, RequestChange, Task};
use crate::observed::RequestTransition;
use crate::observed::asked_again::ASKED_AGAIN_ANNOTATION;
use crate::observed::{ChangesSince, LostRequest, PodLocation, uncordoned_by};

const NOW: &str = "2026-01-01T12:00:00Z";

/// A cluster in memory, with the effects of actions.
struct Sim {
    world: World,
    memory: MachineMemory,
    config: Config,
    now: Timestamp,
    events: Vec<EventDraft>,
    version: u64,
}

impl Sim {
    fn new(nodes: &[&str]) -> Self {
        let mut sim = Self {
            world: World::default(),
            memory: MachineMemory::default(),
            config: Config::default(),
            now: NOW.parse().unwrap(),
            events: Vec::new(),
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
        let new = Arc::new(node);
        let old = self.world.nodes.insert(new.name.clone(), new.clone());
        if let Some(node) = uncordoned_by(&ObjectChange::between(old, Some(new))) {
            *self.world.since.uncordoned.entry(node.name.clone()).or_default() += 1;
        }
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
        let pod = with_its_daemon_set(serde_json::from_value(value).unwrap());
        self.world.pods.entry(node.to_owned()).or_default().push(Arc::new(pod));
        self.locate();
    }

    /// What is known of the DaemonSet that a pod names changes.
    fn daemon_set_owner(&mut self, name: &str, daemon_set_owner: DaemonSetOwner) {
        let mut pods = self.world.pods.values_mut().flatten();
        let pod = pods.find(|pod| pod.name == name).unwrap();
        Arc::make_mut(pod).daemon_set_owner = daemon_set_owner;
        self.locate();
    }

    /// A node leaves the cluster, with its pods.
    fn remove_node(&mut self, name: &str) {
        self.world.nodes.remove(name);
        self.world.pods.remove(name);
        self.locate();
    }

    fn remove_pod(&mut self, name: &str) {
        self.world.pods.values_mut().for_each(|pods| pods.retain(|p| p.name != name));
        let key = ("ns".to_owned(), format!("uid-{name}"));
        if let Some(request) = self.world.requests.get_mut(&key) {
            let mut evicted = (**request).clone();
            evicted.status.conditions = conditions("Evicted", "PodDeleted", "");
            let new = Arc::new(evicted);
            let old = std::mem::replace(request, new.clone());
            self.heard(key, Some(old), Some(new));
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
            // The API server notes the stage.
            "status": { "stageStatuses": [{ "name": stage }] },
        });
        self.world.maintenances.push(Arc::new(serde_json::from_value(value).unwrap()));
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut NodeMaintenance)) {
        let slot = self.world.maintenances.iter_mut().find(|m| m.metadata.name == name).unwrap();
        let mut maintenance = (**slot).clone();
        change(&mut maintenance);
        *slot = Arc::new(maintenance);
    }

    fn stage(&mut self, name: &str, stage: NodeMaintenanceStage) {
        self.change(name, |m| {
            m.spec.stage = stage;
            m.status.stage_statuses.push(StageStatus { name: stage, start_timestamp: None });
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
            new.metadata.creation_timestamp = Some(self.now);
            let pod = json!({ "name": name, "uid": key.1 });
            new.spec.target.pod = serde_json::from_value(pod).unwrap();
            new
        });
        change(&mut request);
        let new = Arc::new(request);
        let old = self.world.requests.insert(key.clone(), new.clone());
        self.heard(key, old, Some(new));
        self.locate();
    }

    /// Somebody else deletes a request.
    fn delete_request(&mut self, name: &str) {
        let key = ("ns".to_owned(), format!("uid-{name}"));
        let old = self.world.requests.remove(&key);
        self.heard(key, old, None);
    }

    fn heard(
        &mut self,
        key: (String, String),
        old: Option<Arc<EvictionRequest>>,
        new: Option<Arc<EvictionRequest>>,
    ) {
        let change = ObjectChange::between(old, new);
        self.world.since.steps.extend(RequestTransition::of(&change));
        if let Some(lost) = LostRequest::by(&change) {
            self.world.since.note_lost(key, lost);
        }
    }

    fn locate(&mut self) {
        let pods = self.world.pods.values().flatten();
        self.world.located = Arc::new(pods.map(|p| (p.uid.clone(), PodLocation::of(p))).collect());
    }

    fn step(&mut self) -> BTreeMap<Task, Action> {
        let decision = step(&self.world, &mut self.memory, self.now, &self.config);
        self.world.since = ChangesSince::default();
        self.events.extend(decision.events);
        decision.actions
    }

    /// Steps, and writes the statuses alone.
    fn store_statuses(&mut self) {
        let statuses = self.step().into_iter().filter(|(task, _)| matches!(task, Task::Status(_)));
        statuses.for_each(|(task, action)| self.carry_out(&task, action));
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

    /// Like [`Sim::settle`], but this one task is not carried out.
    fn settle_but(&mut self, held: &Task) {
        for _ in 0..20 {
            let mut actions = self.step();
            actions.remove(held);
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
            (Task::Conditions(name), Action::Conditions { set, remove, confirm, .. }) => {
                self.world.since.confirmed.extend(confirm.map(|last| (name.clone(), last)));
                self.change_node(name, |n| {
                    n.conditions
                        .retain(|c| !remove.contains(&&*c.type_) && !set.iter().any(|s| s.type_ == c.type_));
                    n.conditions.extend(set.iter().map(|s| drydock_runtime::cache::NodeCondition {
                        type_: s.type_.to_owned(),
                        status: s.status.to_owned(),
                        reason: s.reason.to_owned(),
                        message: s.message.clone(),
                    }));
                });
            }
            (task, Action::Request { change, .. }) => self.change_request(task, change),
            (Task::Status(name), Action::Status { status, confirm, events, .. }) => {
                self.events.extend(events);
                self.world.since.confirmed.extend(confirm);
                self.change(name, |m| m.status = *status);
            }
            (Task::Finalizer(name), _) => self.change(name, |m| m.metadata.finalizers.clear()),
            other => panic!("{other:?}"),
        }
    }

    fn change_request(&mut self, task: &Task, change: RequestChange) {
        match change {
            RequestChange::Ask { pod, maintenances, asked_again, .. } => self.request(&pod, |r| {
                let annotation = (MAINTENANCES_ANNOTATION.to_owned(), maintenances.to_string());
                let again = asked_again.map(|a| (ASKED_AGAIN_ANNOTATION.to_owned(), a.value()));
                Arc::make_mut(&mut r.metadata.annotations).extend([annotation].into_iter().chain(again));
                r.spec.requesters = serde_json::from_value(json!([{ "name": REQUESTER }])).unwrap();
            }),
            RequestChange::Withdraw { pod, .. } => {
                self.request(&pod, |r| r.spec.requesters.retain(|q| q.name != REQUESTER));
            }
            RequestChange::Delete { .. } | RequestChange::Replace { .. } => {
                let Task::Request(ns, uid) = task else { panic!("{task:?}") };
                self.world.requests.remove(&(ns.clone(), uid.clone()));
            }
        }
    }

    fn status(&self, name: &str) -> &NodeMaintenanceStatus {
        &self.world.maintenances.iter().find(|m| m.metadata.name == name).unwrap().status
    }

    fn drained(&self, name: &str) -> Option<(String, String)> {
        self.says(name, DRAINED).map(|(status, reason, _)| (status, reason))
    }

    /// Status, reason and message of a condition of a maintenance.
    fn says(&self, name: &str, type_: &str) -> Option<(String, String, String)> {
        let found = self.status(name).conditions.iter().find(|c| c.type_ == type_);
        found.map(|c| (c.status.clone(), c.reason.clone(), c.message.clone()))
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

/// What makes a pod on a node the mirror of a static one.
fn mirror(node: &str) -> Value {
    let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": node, "uid": format!("uid-{node}"), "controller": true });
    json!({ "metadata": { "annotations": { "kubernetes.io/config.mirror": "x" }, "ownerReferences": [owner] } })
}

/// What makes a pod one of a DaemonSet.
fn of_daemon_set(name: &str) -> Value {
    let owner = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": name, "controller": true });
    json!({ "metadata": { "ownerReferences": [owner] } })
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.iter().for_each(|(k, v)| merge(into.entry(k.clone()).or_insert(Value::Null), v));
        }
        (into, from) => *into = from.clone(),
    }
}

fn conditions(type_: &str, reason: &str, message: &str) -> Vec<drydock_api::metav1::Condition> {
    let value = json!([{ "type": type_, "status": "True", "reason": reason, "message": message }]);
    serde_json::from_value(value).unwrap()
}

/// A blocker's message without the reference to the guide.
fn bare(message: &str) -> String {
    let Some((words, rest)) = message.split_once(" (see ") else { return message.to_owned() };
    words.to_owned() + rest.split_once("controllers/README.md)").expect("a place in the guide").1
}

fn pair(a: &str, b: &str) -> Option<(String, String)> {
    Some((a.to_owned(), b.to_owned()))
}

/// The change of a request in an action.
fn change_of(action: &Action) -> &RequestChange {
    match action {
        Action::Request { change, .. } => change,
        other => panic!("{other:?}"),
    }
}
