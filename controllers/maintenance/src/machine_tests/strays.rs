//! Pods that are put on a node that is drained, and whose workload was not there before.

use jiff::SignedDuration;

use super::*;

/// A pod that is made now, of a controller of this kind and UID, or of none.
fn made_now(sim: &mut Sim, name: &str, controller: Option<(&str, &str)>) {
    let owner = controller.map(|(kind, uid)| {
        json!({ "apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": uid, "controller": true })
    });
    let owners: Vec<Value> = owner.into_iter().collect();
    let made = sim.now.to_string();
    sim.pod("a", name, &json!({ "metadata": { "creationTimestamp": made, "ownerReferences": owners } }));
}

/// A node that has been drained for a minute.
fn draining(prepare: impl FnOnce(&mut Sim)) -> Sim {
    let mut sim = Sim::new(&["a"]);
    prepare(&mut sim);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim.now += SignedDuration::from_mins(1);
    sim
}

fn blockers(sim: &Sim) -> Vec<(&str, &str)> {
    let blockers = &sim.status("m").node_statuses[0].blockers;
    blockers.iter().map(|blocker| (blocker.pod.name.as_str(), blocker.reason.as_str())).collect()
}

/// Puts pods on a node, each when the one before has gone; returns how long each was not asked to leave.
fn put_again(controller: impl Fn(usize) -> Option<(&'static str, String)>) -> Vec<i64> {
    let mut sim = draining(|_| ());
    let mut waits = Vec::new();
    for round in 0..5 {
        let name = format!("p{round}");
        let controller = controller(round);
        made_now(&mut sim, &name, controller.as_ref().map(|(kind, uid)| (*kind, uid.as_str())));
        sim.settle();
        let begun = sim.now;
        if sim.requested().is_empty() {
            assert_eq!(blockers(&sim), [(name.as_str(), "WorkloadReturns")]);
            let message = &sim.status("m").node_statuses[0].blockers[0].message;
            let words =
                format!("Pods are put on the node again and again in namespace ns, {name} among them");
            assert!(message.starts_with(&words), "{message}");
            sim.now = step(&sim.world, &mut sim.memory, sim.now, &sim.config).wake.unwrap();
            sim.settle();
        }
        assert_eq!((sim.requested(), blockers(&sim)), (vec![name.clone()], vec![]));
        waits.push(sim.now.duration_since(begun).as_secs());
        sim.remove_pod(&name);
        sim.settle();
    }
    assert_eq!(
        sim.events
            .iter()
            .filter(|note| note.reason == "WorkloadReturns" && note.severity == Severity::Warning)
            .count(),
        4
    );
    assert_eq!(sim.status("m").outcomes.returned, 4);
    waits
}

/// Each was a new pod and was asked to leave at once: the tier never ended, and nothing said so.
#[test]
fn pods_without_a_controller_that_are_put_there_again_are_told_by_their_namespace_and_wait() {
    assert_eq!(put_again(|_| None), [0, 10, 20, 40, 80]);
}

/// A writer of pods can name any owner.
#[test]
fn pods_of_another_controller_each_are_told_by_their_namespace_and_wait() {
    assert_eq!(put_again(|round| Some(("Widget", format!("widget-{round}")))), [0, 10, 20, 40, 80]);
    assert_eq!(put_again(|round| Some(("DaemonSet", format!("set-{round}")))), [0, 10, 20, 40, 80]);
}

/// Otherwise a tenant that puts one there every few minutes would keep all of them.
#[test]
fn pods_that_come_while_others_wait_do_not_make_them_wait_longer() {
    let mut sim = draining(|_| ());
    for name in ["p0", "p1"] {
        made_now(&mut sim, name, None);
        sim.settle();
        sim.remove_pod("p0");
    }
    for second in 1..10 {
        sim.now += SignedDuration::from_secs(1);
        made_now(&mut sim, &format!("q{second}"), None);
        sim.settle();
    }
    assert_eq!((sim.requested().len(), blockers(&sim).len()), (0, 10));
    sim.now += SignedDuration::from_secs(1);
    sim.settle();
    assert_eq!((sim.requested().len(), blockers(&sim).len()), (10, 0));
    assert_eq!(sim.events.iter().filter(|note| note.reason == "WorkloadReturns").count(), 1);
}

#[test]
fn pods_and_workloads_that_were_there_before_and_mirror_pods_do_not_wait_for_those() {
    let of = |uid: &str| json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": uid, "uid": uid, "controller": true }]);
    let high = json!({ "spec": { "priority": 1000 } });
    let mut sim = draining(|sim| {
        sim.pod("a", "web-0", &json!({ "metadata": { "ownerReferences": of("web") } }));
        sim.pod("a", "bare", &high);
        sim.pod(
            "a",
            "web-1",
            &json!({ "metadata": { "ownerReferences": of("web") }, "spec": { "priority": 1000 } }),
        );
    });
    for name in ["p0", "p1"] {
        made_now(&mut sim, name, None);
        sim.settle();
        sim.remove_pod("p0");
    }
    let made = sim.now.to_string();
    let late = json!({ "metadata": { "creationTimestamp": made, "ownerReferences": of("web") } });
    sim.pod("a", "web-2", &late);
    let mut mirror = mirror("a");
    mirror["metadata"]["creationTimestamp"] = json!(made);
    sim.pod("a", "mirror", &mirror);
    sim.settle();
    assert_eq!(
        (sim.requested(), blockers(&sim)),
        (vec!["web-0".into(), "web-2".into()], vec![("p1", "WorkloadReturns")])
    );
    ["web-0", "web-2", "p1"].iter().for_each(|pod| sim.remove_pod(pod));
    sim.settle();
    assert_eq!((sim.requested(), blockers(&sim)), (vec!["bare".into(), "web-1".into()], vec![]));
    ["bare", "web-1"].iter().for_each(|pod| sim.remove_pod(pod));
    sim.settle();
    assert_eq!(sim.requested(), ["mirror"]);
}

/// They were bound before the node was cordoned, and a restart knows nothing of what was there.
#[test]
fn pods_that_were_made_before_or_are_there_after_a_restart_do_not_wait() {
    let mut sim = draining(|_| ());
    for name in ["p0", "p1"] {
        let made = "2026-01-01T11:59:59Z";
        sim.pod("a", name, &json!({ "metadata": { "creationTimestamp": made } }));
        sim.settle();
        assert_eq!((sim.requested(), blockers(&sim)), (vec![name.to_owned()], vec![]));
        sim.remove_pod(name);
        sim.settle();
    }
    for name in ["q0", "q1"] {
        made_now(&mut sim, name, None);
        sim.memory = MachineMemory::default();
        sim.settle();
        assert_eq!((sim.requested(), blockers(&sim)), (vec![name.to_owned()], vec![]));
        sim.remove_pod(name);
        sim.settle();
    }
}

#[test]
fn other_namespaces_do_not_wait() {
    let mut sim = draining(|_| ());
    for name in ["p0", "p1"] {
        made_now(&mut sim, name, None);
        sim.settle();
        sim.remove_pod("p0");
    }
    sim.pod(
        "a",
        "q",
        &json!({ "metadata": { "namespace": "other", "creationTimestamp": sim.now.to_string() } }),
    );
    let asked = sim.step();
    assert!(asked.contains_key(&Task::Request("other".into(), "uid-q".into())), "{asked:?}");
}

/// A tenant may make up as many controllers as he likes.
#[test]
fn no_more_than_so_many_absent_controllers_are_remembered() {
    let mut sim = draining(|_| ());
    for pod in 0..12_000 {
        let metadata = json!({ "name": format!("p{pod}"), "namespace": "ns", "uid": format!("{pod}"),
            "creationTimestamp": sim.now.to_string(),
            "ownerReferences": [{ "apiVersion": "v1", "kind": "X", "name": "x", "uid": format!("x{pod}"), "controller": true }] });
        let pod =
            json!({ "metadata": metadata, "spec": { "nodeName": "a" }, "status": { "phase": "Running" } });
        sim.world.pods.get_mut("a").unwrap().push(Arc::new(serde_json::from_value(pod).unwrap()));
    }
    sim.step();
    assert_eq!(sim.memory.returns.len(), 12_001);
    sim.world.pods.values_mut().for_each(Vec::clear);
    sim.step();
    assert!(sim.memory.returns.len() <= 10_000);
}

/// A node that could not be cordoned took the pods of every CronJob, whose namespace was blamed, and held
/// back for a quarter of an hour when it was cordoned at last.
#[test]
fn pods_that_come_while_the_node_is_schedulable_are_blamed_on_nobody() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "before", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.world.refused.insert("a".to_owned(), "no".to_owned());
    let cordon = Task::Cordon("a".into());
    sim.settle_but(&cordon);
    for round in 0..5 {
        sim.now += SignedDuration::from_mins(1);
        let name = format!("p{round}");
        made_now(&mut sim, &name, Some(("Job", &format!("job-{round}"))));
        sim.settle_but(&cordon);
        if round < 4 {
            sim.remove_pod(&name);
        }
    }
    assert!(sim.events.iter().all(|note| note.reason != "WorkloadReturns"), "{:?}", sim.events);
    sim.world.refused.clear();
    sim.settle();
    assert_eq!(
        (sim.requested(), sim.status("m").outcomes.returned),
        (vec!["before".to_owned(), "p4".to_owned()], 0)
    );
}

/// A pod that came in the step in which the others' wait ended made them wait again.
#[test]
fn a_pod_that_comes_when_the_wait_is_over_makes_no_other_one_wait() {
    let mut sim = draining(|_| ());
    made_now(&mut sim, "p0", None);
    sim.settle();
    sim.remove_pod("p0");
    made_now(&mut sim, "p1", None);
    sim.settle();
    assert!(sim.requested().is_empty());
    sim.now = step(&sim.world, &mut sim.memory, sim.now, &sim.config).wake.unwrap();
    made_now(&mut sim, "p2", None);
    sim.settle();
    assert_eq!(sim.requested(), ["p1"]);
}
