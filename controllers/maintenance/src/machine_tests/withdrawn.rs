//! Requests that others withdraw while the maintenance still wants the pod to leave.

use jiff::SignedDuration;

use super::*;

/// A maintenance that has asked a pod to leave.
fn draining() -> Sim {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
    sim
}

/// Somebody else takes all requesters out, and the eviction controller cancels the request.
fn withdraw(sim: &mut Sim) {
    sim.request("p", |r| r.spec.requesters.clear());
    sim.request("p", |r| r.status.conditions = conditions("Canceled", "NoRequesters", ""));
}

fn blocker(sim: &Sim) -> Option<(String, String)> {
    let blocker = sim.status("m").node_statuses[0].blockers.first();
    blocker.map(|blocker| (blocker.reason.clone(), bare(&blocker.message)))
}

/// A tenant took the requester out of the request of a pod of theirs whenever it was there: each time cost
/// them one write, and the controllers five, as fast as they could; and nothing said why the pod did not
/// leave.
#[test]
fn a_request_that_others_withdraw_is_made_again_with_backoff_and_the_blocker_says_why() {
    let mut sim = draining();
    let start = sim.now;
    let mut asked = Vec::new();
    for minute in 0..180 {
        sim.now = start + SignedDuration::from_mins(minute);
        sim.settle();
        // Three times within the minute.
        for _ in 0..3 {
            if sim.requested() == ["p"] {
                asked.push(minute);
                withdraw(&mut sim);
            }
            sim.settle();
        }
    }
    assert_eq!(asked, [0, 5, 15, 35, 75, 135]);
    let (reason, message) = blocker(&sim).unwrap();
    assert_eq!(reason, "RequestWithdrawn");
    assert_eq!(
        message,
        "Others took the requester nodemaintenance.k8s.io out of the pod's EvictionRequest 6 times in a row; the pod is \
         asked for again at 2026-01-01T15:15:00Z"
    );
    sim.now = start + SignedDuration::from_hours(4);
    sim.settle();
    assert_eq!((sim.requested(), blocker(&sim)), (vec!["p".to_owned()], None), "it is on its way again");
}

#[test]
fn a_request_that_other_requesters_keep_open_is_joined_again_with_the_same_backoff() {
    let mut sim = draining();
    let other = || serde_json::from_value(json!([{ "name": "r.example.com" }])).unwrap();
    sim.request("p", |r| r.spec.requesters = other());
    sim.settle();
    assert!(sim.requested().is_empty());
    assert!(blocker(&sim).is_some_and(|(reason, _)| reason == "RequestWithdrawn"));
    let decision = step(&sim.world, &mut sim.memory, sim.now, &sim.config);
    assert_eq!(decision.wake, Some(sim.now + SignedDuration::from_mins(5)));
    sim.now += SignedDuration::from_mins(5);
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
}

#[test]
fn a_request_that_others_delete_is_made_again_at_once_the_first_time_and_then_with_backoff() {
    let mut sim = draining();
    sim.delete_request("p");
    sim.settle();
    assert_eq!((sim.requested(), blocker(&sim)), (vec!["p".to_owned()], None));
    sim.delete_request("p");
    sim.settle();
    assert!(sim.requested().is_empty());
    let deleted = "Others deleted the pod's EvictionRequest 2 times in a row; the pod is asked for again at ";
    assert!(blocker(&sim).is_some_and(|(_, message)| message.starts_with(deleted)), "{:?}", blocker(&sim));
    sim.now += SignedDuration::from_mins(5);
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
}

/// Others could put a finalizer on the request and delete it, and so keep the pod where it was; no blocker
/// said so.
#[test]
fn a_request_that_a_finalizer_keeps_is_a_blocker_at_once_and_replaced_the_moment_it_is_gone() {
    let mut sim = draining();
    let now = sim.now;
    sim.request("p", |r| {
        r.metadata.deletion_timestamp = Some(now);
        r.metadata.finalizers = vec!["veto.example.com/stay".to_owned()];
        let fields = json!({ "f:metadata": { "f:finalizers": { "v:\"veto.example.com/stay\"": {} } } });
        let entry = json!({ "manager": "kubectl-edit", "fieldsV1": fields });
        r.metadata.managed_fields = [serde_json::from_value(entry).unwrap()].into();
    });
    let held = "The pod's EvictionRequest is being deleted and kept by its finalizers: veto.example.com/stay (field \
                manager kubectl-edit)";
    sim.settle();
    assert_eq!(blocker(&sim), pair("Finalizer", held));
    // The eviction controller ends it.
    sim.request("p", |r| r.status.conditions = conditions("Canceled", "RequestDeleted", ""));
    sim.settle();
    assert_eq!(blocker(&sim), pair("Finalizer", held));
    let node = &sim.status("m").node_statuses[0];
    assert_eq!((node.pods_pending_evacuation, node.pods_evacuating), (1, 0), "nobody is at work on it");
    sim.delete_request("p");
    sim.settle();
    assert_eq!((sim.requested(), blocker(&sim)), (vec!["p".to_owned()], None), "the deletion counts once");
}

/// It was there before the maintenance asked for the pod, and is somebody else's.
#[test]
fn a_request_of_others_that_a_finalizer_keeps_is_a_blocker_too() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    let now = sim.now;
    sim.request("p", |r| {
        r.metadata.deletion_timestamp = Some(now);
        r.metadata.finalizers = vec!["x.example.com/y".to_owned()];
    });
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert!(
        blocker(&sim)
            .is_some_and(|(reason, message)| reason == "Finalizer" && message.ends_with(": x.example.com/y"))
    );
    assert!(sim.requested().is_empty());
    sim.delete_request("p");
    sim.settle();
    assert_eq!((sim.requested(), blocker(&sim)), (vec!["p".to_owned()], None));
}

/// Its requester is withdrawn all the same, and the maintenance ends.
#[test]
fn a_request_that_a_finalizer_keeps_does_not_keep_a_maintenance_from_its_end() {
    let mut sim = draining();
    let now = sim.now;
    sim.request("p", |r| {
        r.metadata.deletion_timestamp = Some(now);
        r.metadata.finalizers = vec!["x.example.com/y".to_owned()];
    });
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert!(sim.requested().is_empty() && sim.world.maintenances[0].metadata.finalizers.is_empty());
}

/// The one that ends withdraws; the next one asks at once.
#[test]
fn what_a_maintenance_withdraws_itself_is_no_failure() {
    let mut sim = draining();
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    sim.request("p", |r| r.status.conditions = conditions("Canceled", "NoRequesters", ""));
    sim.maintenance("n", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
}

/// The withdrawal is on its way to the API server when a maintenance wants the pod again.
#[test]
fn a_withdrawal_of_ours_that_is_seen_late_is_no_failure() {
    let mut sim = draining();
    sim.stage("m", NodeMaintenanceStage::Complete);
    let task = Task::Request("ns".into(), "uid-p".into());
    let withdraw = sim.step().remove(&task).unwrap();
    assert!(matches!(change_of(&withdraw), RequestChange::Withdraw { .. }));
    sim.maintenance("n", "Drain", &["a"]);
    sim.settle();
    sim.carry_out(&task, withdraw);
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
}

/// A node leaves the selection for a moment, and the request has another requester. The caches show our withdrawal
/// before it is noted, and we ask again in between.
fn asked_again_before_the_withdrawal_is_noted() -> Sim {
    let mut sim = draining();
    let both =
        || serde_json::from_value(json!([{ "name": REQUESTER }, { "name": "r.example.com" }])).unwrap();
    sim.request("p", |r| r.spec.requesters = both());
    let task = Task::Request("ns".into(), "uid-p".into());
    sim.change_node("a", |node| node.labels.clear());
    let withdraw = sim.step().remove(&task).unwrap();
    assert!(matches!(change_of(&withdraw), RequestChange::Withdraw { .. }));
    sim.carry_out(&task, withdraw);
    let noted_late = std::mem::take(&mut sim.world.since.lost);
    assert_eq!(noted_late.len(), 1);
    sim.change_node("a", |node| node.labels.extend([("name".to_owned(), "a".to_owned())]));
    let ask = sim.step().remove(&task).unwrap();
    assert!(matches!(change_of(&ask), RequestChange::Ask { .. }));
    sim.carry_out(&task, ask);
    sim.request("p", |r| r.spec.requesters = both());
    sim.world.since.lost = noted_late;
    sim.settle();
    assert_eq!((sim.requested(), blocker(&sim)), (vec!["p".to_owned()], None));
    sim
}

/// It counted as a request in which others had written our name, and nobody withdrew it at the end.
#[test]
fn a_request_in_which_we_ask_again_before_our_withdrawal_is_noted_is_withdrawn_at_the_end() {
    let mut sim = asked_again_before_the_withdrawal_is_noted();
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert!(sim.requested().is_empty(), "it stays asked for after the end");
}

/// Our earlier withdrawal hid that of others, after which we asked again at once.
#[test]
fn who_withdraws_a_request_in_which_we_ask_again_is_somebody_else() {
    let mut sim = asked_again_before_the_withdrawal_is_noted();
    sim.request("p", |r| r.spec.requesters.retain(|requester| requester.name != REQUESTER));
    sim.settle();
    assert!(blocker(&sim).is_some_and(|(reason, _)| reason == "RequestWithdrawn"), "{:?}", blocker(&sim));
}

/// It was withdrawn from first, and then removed by another controller: two writes for each pod.
#[test]
fn an_evicted_request_goes_at_once_unless_others_ask_in_it_too() {
    for (others, goes) in [(&[][..], true), (&["other.example.com"][..], false)] {
        let mut sim = draining();
        sim.request("p", |r| {
            let names = others.iter().chain([&REQUESTER]).map(|name| json!({ "name": name }));
            r.spec.requesters = serde_json::from_value(names.collect()).unwrap();
            r.metadata.resource_version = "7".into();
            r.status.conditions = conditions("Evicted", "PodDeleted", "");
        });
        sim.world.pods.clear();
        let change = change_of(&sim.step()[&Task::Request("ns".into(), "uid-p".into())]).clone();
        match change {
            RequestChange::Delete { resource_version, .. } => assert!(goes && resource_version == "7"),
            other => assert!(!goes && matches!(other, RequestChange::Withdraw { .. }), "{other:?}"),
        }
    }
}

#[test]
fn failures_are_in_a_row_only_if_little_time_lies_between_them() {
    let mut sim = draining();
    for _ in 0..3 {
        withdraw(&mut sim);
        sim.settle();
        sim.now += SignedDuration::from_mins(5);
        sim.settle();
        assert_eq!(sim.requested(), ["p"]);
        sim.now += SignedDuration::from_mins(61);
    }
}
