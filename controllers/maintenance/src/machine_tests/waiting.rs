//! Drains that would wait forever without a blocker: for a request that targets another pod, an interceptor
//! that never ends, or pods of Drydock itself.

use drydock_runtime::cache::Taint;
use jiff::SignedDuration;

use super::*;
use crate::requests::failures::FailureCause;

fn blockers(sim: &Sim) -> Vec<(&str, &str)> {
    let blockers = sim.status("m").node_statuses.iter().flat_map(|node| &node.blockers);
    blockers.map(|b| (b.pod.name.as_str(), b.reason.as_str())).collect()
}

/// A tenant who made a request with the pod's UID as its name and another pod as its target kept the pod
/// where it was: each was replaced as fast as it was made, and no blocker said so.
#[test]
fn a_request_for_another_pod_is_replaced_at_once_and_then_with_backoff_and_is_a_blocker() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    let start = sim.now;
    let (mut squats, mut replaced) = (0, Vec::new());
    for minute in 0..180 {
        sim.now = start + SignedDuration::from_mins(minute);
        let is_there = |sim: &Sim| sim.world.requests.contains_key(&("ns".into(), "uid-p".into()));
        if !is_there(&sim) {
            squats += 1;
            let target = json!({ "name": "other", "uid": "uid-p" });
            sim.request("p", |r| {
                r.metadata.uid = format!("squat-{squats}");
                r.spec.target.pod = serde_json::from_value(target).unwrap();
            });
        }
        if minute == 0 {
            sim.maintenance("m", "Drain", &["a"]);
        }
        // The tenant is faster than we are each time.
        let actions = sim.step();
        if let Some(RequestChange::Replace { .. }) =
            actions.get(&Task::Request("ns".into(), "uid-p".into())).map(change_of)
        {
            replaced.push(minute);
            sim.delete_request("p");
        }
        actions.into_iter().filter(|(task, _)| !matches!(task, Task::Request(..))).for_each(
            |(task, action)| {
                sim.carry_out(&task, action);
            },
        );
        assert_eq!(sim.requested(), Vec::<String>::new());
    }
    assert_eq!(replaced, [1, 7, 18, 39, 80, 141]);
    assert_eq!(blockers(&sim), [("p", "WrongTarget")]);
    sim.delete_request("p");
    sim.settle();
    assert_eq!((sim.requested(), blockers(&sim)), (vec!["p".to_owned()], Vec::new()), "its name is free");
}

/// Only heartbeats count for the deadline (KEP-4563): an interceptor that sends them forever keeps its turn,
/// which is its right; but nothing said what the drain waits for.
#[test]
fn an_interceptor_that_reports_for_ever_is_a_blocker_after_an_hour_or_when_it_is_late() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let start = sim.now;
    let report = |sim: &mut Sim, minute: i64, expected: Option<i64>| {
        sim.now = start + SignedDuration::from_mins(minute);
        let at = |minute: i64| start + SignedDuration::from_mins(minute);
        let status = json!({ "activeInterceptors": ["a.b"], "activationTime": start,
            "interceptors": [{ "name": "a.b", "message": "copying", "startTime": start, "heartbeatTime": at(minute),
                "expectedFinishTime": expected.map(at) }] });
        sim.request("p", |r| r.status = serde_json::from_value(status).unwrap());
        sim.settle();
        sim.status("m").node_statuses[0].blockers.first().map(|b| bare(&b.message))
    };
    for minute in 0..60 {
        assert_eq!(report(&mut sim, minute, None), None, "after {minute} minutes");
    }
    let long = "Waiting for a.b since 2026-01-01T12:00:00Z: \"copying\"";
    assert_eq!(report(&mut sim, 60, None).as_deref(), Some(long));
    assert_eq!(report(&mut sim, 300, Some(400)).as_deref(), Some(long), "however late it expects to finish");
    assert_eq!(report(&mut sim, 10, Some(11)), None);
    let late = "Waiting for a.b, which expected to finish at 2026-01-01T12:11:00Z: \"copying\"";
    assert_eq!(report(&mut sim, 11, Some(11)).as_deref(), Some(late));
}

fn own(sim: &mut Sim, node: &str, name: &str) {
    let labels = json!({ "app.kubernetes.io/name": "drydock-controller-manager" });
    sim.pod(node, name, &json!({ "metadata": { "namespace": "drydock-system", "labels": labels } }));
}

fn asked_in_own_namespace(sim: &mut Sim) -> Vec<String> {
    let actions = sim.step().into_iter();
    let asked = actions.filter_map(|(task, action)| match (task, action) {
        (Task::Request(namespace, _), Action::Request { change: RequestChange::Ask { pod, .. }, .. }) => {
            Some((namespace, pod))
        }
        _ => None,
    });
    asked.filter(|(namespace, _)| namespace == "drydock-system").map(|(_, pod)| pod).collect()
}

/// A maintenance of all nodes evicted the controllers themselves: nothing was drained any more, and nothing
/// said why.
#[test]
fn drydocks_own_pods_stay_while_no_other_node_takes_them() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.change_node("b", |node| {
        let taint = Taint { key: "k".into(), effect: "NoSchedule".into(), ..Default::default() };
        node.taints = vec![taint];
    });
    own(&mut sim, "a", "manager");
    sim.maintenance("m", "Drain", &["a"]);
    let all = json!([{ "podPriority": i32::MAX, "podType": "Default" }]);
    sim.change("m", |m| m.spec.drain_plan = serde_json::from_value(all).unwrap());
    sim.settle();
    assert_eq!(blockers(&sim), [("manager", "NoSchedulableNode")]);
    assert!(asked_in_own_namespace(&mut sim).is_empty());
    for takes_none in [
        (|node: &mut Node| node.unschedulable = true) as fn(&mut Node),
        |node| node.deleting = true,
        |node| node.taints = vec![Taint { effect: "NoExecute".into(), ..Default::default() }],
    ] {
        sim.change_node("b", |node| {
            (node.unschedulable, node.deleting, node.taints) = Default::default();
            takes_none(node);
        });
        assert!(asked_in_own_namespace(&mut sim).is_empty());
    }
    sim.change_node("b", |node| {
        (node.unschedulable, node.deleting) = Default::default();
        node.taints = vec![Taint { effect: "PreferNoSchedule".into(), ..Default::default() }];
    });
    assert_eq!(asked_in_own_namespace(&mut sim), ["manager"], "b takes it");
    let pool = Taint { key: "pool".into(), effect: "NoSchedule".into(), ..Default::default() };
    sim.change_node("b", |node| node.taints = vec![pool.clone()]);
    assert!(asked_in_own_namespace(&mut sim).is_empty());
    sim.change_node("a", |node| node.taints = vec![pool]);
    assert_eq!(asked_in_own_namespace(&mut sim), ["manager"], "it stands the taint, as its own node has it");
}

#[test]
fn a_request_for_a_pod_of_drydocks_own_is_withdrawn_when_the_last_other_node_is_taken() {
    let mut sim = Sim::new(&["a", "b"]);
    own(&mut sim, "a", "manager");
    sim.maintenance("m", "Drain", &["a"]);
    sim.store_statuses();
    sim.change_node("a", |node| node.unschedulable = true);
    assert_eq!(asked_in_own_namespace(&mut sim), ["manager"]);
    let mut request = EvictionRequest::named("drydock-system", "uid-manager");
    request.spec.requesters = serde_json::from_value(json!([{ "name": REQUESTER }])).unwrap();
    request.spec.target.pod =
        serde_json::from_value(json!({ "name": "manager", "uid": "uid-manager" })).unwrap();
    sim.world.requests.insert(("drydock-system".into(), "uid-manager".into()), Arc::new(request));
    let withdrawn = |sim: &mut Sim| {
        let task = Task::Request("drydock-system".into(), "uid-manager".into());
        matches!(sim.step().get(&task).map(change_of), Some(RequestChange::Withdraw { .. }))
    };
    assert!(!withdrawn(&mut sim));
    sim.maintenance("n", "Cordon", &["b"]);
    assert!(withdrawn(&mut sim), "b is cordoned next");
}

/// A writer of a pod's status could end its request by a phase that lasted for a moment. The ended request
/// stayed for as long as another requester was in it, and nothing said so.
#[test]
fn a_request_that_ended_as_evicted_while_its_pod_is_there_is_a_blocker_and_replaced() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let start = sim.now;
    let other =
        || serde_json::from_value(json!([{ "name": "r.example.com" }, { "name": REQUESTER }])).unwrap();
    let mut asked = Vec::new();
    for minute in 0..100 {
        sim.now = start + SignedDuration::from_mins(minute);
        sim.settle();
        if sim.requested() == ["p"] {
            asked.push(minute);
            sim.request("p", |r| {
                r.metadata.uid = format!("request-{minute}");
                r.spec.requesters = other();
                r.status.conditions = conditions("Evicted", "PodTerminated", "");
            });
            sim.settle();
        }
        assert_eq!(blockers(&sim), [("p", "Other")]);
    }
    assert_eq!(asked, [0, 5, 15, 35, 75]);
}

/// A tenant made the request of a pod of theirs anew every few minutes, each time with room for no other requester.
#[test]
fn a_pod_whose_request_is_made_anew_again_and_again_is_a_blocker_after_an_hour() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.change_node("a", |node| node.unschedulable = true);
    let task = Task::Request("ns".into(), "uid-p".into());
    let start = sim.now;
    for minute in 0..=60 {
        sim.now = start + SignedDuration::from_mins(minute);
        let turn = json!({ "targetInterceptors": [{ "name": "a.b" }], "activeInterceptors": ["a.b"],
            "interceptors": [{ "name": "a.b", "message": "" }], "activationTime": sim.now });
        sim.world.requests.clear();
        sim.request("p", |r| {
            r.metadata.uid = format!("request-{minute}");
            r.spec.requesters = serde_json::from_value(json!([{ "name": "r.example.com" }])).unwrap();
            r.status = serde_json::from_value(turn).unwrap();
        });
        sim.settle_but(&task);
        let expected: &[_] = if minute < 60 { &[] } else { &[("p", "Interceptor")] };
        assert_eq!(blockers(&sim), expected, "after {minute} minutes");
    }
    sim.world.requests.clear();
    sim.settle_but(&task);
    assert_eq!(blockers(&sim), [("p", "Other")], "it has none");
}

/// A pod may have a grace period of years.
#[test]
fn a_pod_with_a_long_grace_period_is_a_blocker_while_it_lasts() {
    let mut sim = Sim::new(&["a"]);
    let seconds = 3600;
    let ends = sim.now + SignedDuration::from_secs(seconds);
    sim.pod(
        "a",
        "p",
        &json!({ "metadata": { "deletionTimestamp": ends, "deletionGracePeriodSeconds": seconds } }),
    );
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(blockers(&sim), []);
    sim.now += SignedDuration::from_mins(5);
    sim.settle();
    let blocker = &sim.status("m").node_statuses[0].blockers[0];
    let told = "The pod is terminating, and its grace period ends at 2026-01-01T13:00:00Z";
    assert_eq!((blocker.reason.as_str(), bare(&blocker.message).as_str()), ("Terminating", told));
}

/// Others could put our requester's name back into a request of theirs, and keep the maintenance from its
/// end.
#[test]
fn our_requester_that_others_put_back_does_not_keep_a_maintenance_from_its_end() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let names = |names: &[&str]| {
        let names: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        serde_json::from_value(Value::from(names)).unwrap()
    };
    sim.request("p", |r| r.spec.requesters = names(&["r.example.com", REQUESTER]));
    sim.settle();
    sim.stage("m", NodeMaintenanceStage::Complete);
    for _ in 0..10 {
        let actions = sim.step();
        actions.into_iter().for_each(|(task, action)| sim.carry_out(&task, action));
        sim.request("p", |r| r.spec.requesters = names(&["r.example.com", REQUESTER]));
    }
    let maintenance = sim.world.maintenances[0].clone();
    assert!(maintenance.metadata.finalizers.is_empty());
    sim.maintenance("n", "Drain", &["a"]);
    sim.request("p", |r| r.spec.requesters = names(&["r.example.com"]));
    sim.settle();
    assert_eq!(sim.requested(), ["p"], "another maintenance asks for it");
    sim.stage("n", NodeMaintenanceStage::Complete);
    sim.settle();
    assert!(sim.requested().is_empty(), "and withdraws");
}

/// Anybody may write the name of our requester: others could make requests with it again and again, and keep
/// the maintenance from its end.
#[test]
fn requests_that_are_made_after_the_end_do_not_keep_a_maintenance_from_it() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim.stage("m", NodeMaintenanceStage::Complete);
    for second in 1..10 {
        sim.now += SignedDuration::from_secs(second);
        let actions = sim.step();
        actions.into_iter().for_each(|(task, action)| sim.carry_out(&task, action));
        let now = sim.now;
        sim.delete_request("p");
        sim.request("p", |r| {
            r.metadata.uid = format!("request-{second}");
            r.metadata.creation_timestamp = Some(now);
            r.spec.requesters = serde_json::from_value(json!([{ "name": REQUESTER }])).unwrap();
        });
    }
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
    sim.settle();
    assert!(sim.requested().is_empty(), "and we withdraw from them all the same");
}

/// We had deleted our own request, and others were blamed for it.
#[test]
fn a_request_for_another_pod_with_our_requester_is_not_said_to_be_deleted_by_others() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.change_node("a", |node| node.unschedulable = true);
    sim.store_statuses();
    for squat in ["one", "two"] {
        sim.request("p", |r| {
            r.metadata.uid = squat.to_owned();
            r.spec.requesters = serde_json::from_value(json!([{ "name": REQUESTER }])).unwrap();
            let target = json!({ "name": "other", "uid": "uid-p" });
            r.spec.target.pod = serde_json::from_value(target).unwrap();
        });
        sim.step();
        sim.now += SignedDuration::from_mins(6);
        let actions = sim.step();
        assert!(
            matches!(
                change_of(&actions[&Task::Request("ns".into(), "uid-p".into())]),
                RequestChange::Replace { .. }
            ),
            "{squat}"
        );
        sim.delete_request("p");
        sim.step();
        let cause = sim.memory.failures.of(&sim.world.pods["a"][0]).unwrap().cause;
        assert!(!matches!(cause, FailureCause::Withdrawn | FailureCause::Deleted), "{squat}");
    }
}
