//! Which pods belong to DaemonSets that are alive, whatever comes first.

#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::super::{Cacheable, HostCaches};
use super::*;
use crate::cache::DaemonSetOwner::{Alive, Gone, Undecided, Unnamed};
use crate::testing::of_daemon_set;

fn daemon_set(uid: &str, is_being_deleted: bool) -> DaemonSet {
    let (name, namespace) = ("agent".into(), "ns".into());
    DaemonSet { name, namespace, uid: uid.into(), is_being_deleted, ..DaemonSet::default() }
}

/// A pod as it comes from the host, of a DaemonSet with this UID.
fn pod(uid: &str) -> Pod {
    let pod = Pod { name: "p".into(), namespace: "ns".into(), uid: "pod".into(), ..Pod::default() };
    Pod { daemon_set_owner: Undecided, ..of_daemon_set("agent", uid, pod) }
}

fn seen(caches: &HostCaches) -> DaemonSetOwner {
    caches.pods.find("ns", "p").unwrap().daemon_set_owner
}

/// Takes in a pod, and returns what is then known of it.
fn taken_in(caches: &HostCaches, pod: Pod) -> DaemonSetOwner {
    caches.owners.take_in(pod);
    seen(caches)
}

#[test]
fn a_pod_is_one_of_a_daemon_set_that_the_cache_has_and_that_is_not_being_deleted() {
    for (uid, is_being_deleted, known) in [("a", false, Alive), ("a", true, Gone), ("b", false, Undecided)] {
        let caches = HostCaches::default();
        caches.daemon_sets.apply(daemon_set(uid, is_being_deleted));
        assert_eq!(taken_in(&caches, pod("a")), known, "{uid} {is_being_deleted}");
    }
    let caches = HostCaches::default();
    assert_eq!(taken_in(&caches, Pod { controller: None, ..pod("a") }), Unnamed);
}

/// The writer of a pod chooses the UID: it may be one of another namespace.
#[test]
fn a_daemon_set_of_another_namespace_or_name_controls_no_pod() {
    for other in [
        DaemonSet { namespace: "other".into(), ..daemon_set("a", false) },
        DaemonSet { name: "other".into(), ..daemon_set("a", false) },
    ] {
        let caches = HostCaches::default();
        caches.daemon_sets.apply(other);
        assert_eq!(taken_in(&caches, pod("a")), Gone);
    }
}

/// A DaemonSet that a finalizer keeps makes no pods any more, and owned pods that were no workload to a drain.
#[test]
fn a_pod_follows_its_daemon_set_and_handlers_hear_of_it() {
    let caches = HostCaches::default();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = heard.clone();
    caches.pods.subscribe(move |change| log.lock().push(change.new.as_ref().unwrap().daemon_set_owner));
    caches.owners.take_in(pod("a"));
    caches.daemon_sets.apply(daemon_set("a", false));
    caches.daemon_sets.apply(DaemonSet { resource_version: "2".into(), ..daemon_set("a", false) });
    caches.daemon_sets.apply(DaemonSet { resource_version: "3".into(), ..daemon_set("a", true) });
    assert_eq!(*heard.lock(), [Undecided, Alive, Gone]);
    caches.daemon_sets.finish_list(&Default::default());
    assert_eq!((seen(&caches), heard.lock().len()), (Gone, 3));
}

#[test]
fn a_daemon_set_that_is_deleted_or_replaced_is_gone_and_one_that_a_list_lacks_is_asked_for_again() {
    let with = |change: &dyn Fn(&Store<DaemonSet>)| {
        let caches = HostCaches::default();
        caches.daemon_sets.apply(daemon_set("a", false));
        caches.owners.take_in(pod("a"));
        change(&caches.daemon_sets);
        seen(&caches)
    };
    assert_eq!(with(&|sets| sets.delete(&daemon_set("a", false).key())), Gone);
    assert_eq!(with(&|sets| sets.apply(daemon_set("b", false))), Gone);
    assert_eq!(with(&|sets| sets.finish_list(&Default::default())), Undecided);
}

#[test]
fn what_the_host_answered_holds_until_the_cache_knows_better() {
    let answers = |answer| {
        let caches = HostCaches::default();
        caches.owners.take_in(pod("a"));
        let named = NamedDaemonSet::of(&pod("a")).unwrap();
        assert!(caches.owners.is_awaited(&named) && !caches.owners.has(&named));
        caches.owners.answered(&named, answer);
        (caches, named)
    };
    let (caches, _) = answers(Alive);
    let newer = Pod { resource_version: "2".into(), ..pod("a") };
    assert_eq!(taken_in(&caches, newer), Alive, "a change of the pod changes nothing");
    caches.daemon_sets.apply(daemon_set("a", false));
    caches.daemon_sets.delete(&daemon_set("a", false).key());
    assert_eq!(seen(&caches), Gone);
    let (caches, named) = answers(Gone);
    assert!(!caches.owners.is_awaited(&named));
    caches.owners.answered(&named, Alive);
    assert_eq!(seen(&caches), Gone, "an earlier answer that comes late");
    caches.daemon_sets.apply(daemon_set("a", false));
    assert_eq!(seen(&caches), Alive);
}

/// A tenant who named another DaemonSet each second kept his pod undecided, and so on its node.
#[test]
fn a_pod_that_named_a_daemon_set_that_is_gone_is_not_undecided_again() {
    let caches = HostCaches::default();
    caches.owners.take_in(pod("a"));
    caches.owners.answered(&NamedDaemonSet::of(&pod("a")).unwrap(), Gone);
    assert_eq!(taken_in(&caches, pod("b")), Gone);
    assert_eq!(taken_in(&caches, Pod { controller: None, ..pod("b") }), Gone);
    assert_eq!(taken_in(&caches, pod("c")), Gone);
    assert!(seen(&caches) == Gone && caches.pods.find("ns", "p").unwrap().is_bare());
    caches.daemon_sets.apply(daemon_set("d", false));
    assert_eq!(taken_in(&caches, pod("d")), Alive, "it was adopted");
    assert_eq!(
        taken_in(&caches, Pod { uid: "new".into(), ..pod("e") }),
        Undecided,
        "another pod of this name"
    );
}

/// The host takes any text in an owner reference, and answered a question for such a name with another error than 404, or as
/// one for something else: the pod stayed undecided, and its node was never drained.
#[test]
fn an_owner_whose_name_no_object_can_have_is_gone_without_a_question() {
    let long = "a".repeat(MAX_NAME + 1);
    let impossible = [
        "a%b",
        "a/b",
        "../deployments/web",
        "?watch=true",
        "a b",
        "..",
        "",
        ".a",
        "a-",
        "-a",
        "A",
        "a.-b",
        "\u{e9}",
        long.as_str(),
    ];
    for name in impossible {
        let caches = HostCaches::default();
        let pod = Pod { daemon_set_owner: Undecided, ..of_daemon_set(name, "a", pod("a")) };
        assert_eq!(caches.owners.owner_of(&pod), Gone, "{name}");
        assert_eq!(taken_in(&caches, pod), Gone, "{name}");
    }
    for name in ["a", "7", "kube-proxy", "a.b-c.9", &long[1..]] {
        let pod = of_daemon_set(name, "a", pod("a"));
        assert_eq!(taken_in(&HostCaches::default(), pod), Undecided, "{name}");
    }
}

/// A pod is deleted while its DaemonSet changes.
#[test]
fn a_pod_that_is_gone_does_not_come_back() {
    let caches = HostCaches::default();
    caches.owners.take_in(pod("a"));
    let old = caches.pods.find("ns", "p").unwrap();
    caches.pods.delete(&old.key());
    caches.pods.exchange(&old, Pod { daemon_set_owner: Gone, ..Pod::clone(&old) });
    assert!(caches.pods.is_empty());
}

#[test]
fn of_a_daemon_set_nothing_is_kept_but_which_it_is_and_whether_it_is_being_deleted() {
    let of = |deleted: serde_json::Value| -> DaemonSet {
        let labels: serde_json::Map<_, _> = (0..10_000).map(|at| (format!("k{at}"), json!(""))).collect();
        let metadata = json!({
            "name": "agent", "namespace": "ns", "uid": "a", "resourceVersion": "7", "labels": labels,
            "deletionTimestamp": deleted,
        });
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    };
    let wanted = DaemonSet { resource_version: "7".into(), ..daemon_set("a", false) };
    assert_eq!(of(json!(null)), wanted);
    assert_eq!(of(json!("2026-01-01T00:00:00Z")), DaemonSet { is_being_deleted: true, ..wanted });
}
