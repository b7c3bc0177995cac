//! Tests of the entities that a change of an object changes.

use drydock_api::node_maintenance::limits::MAX_OBJECT_BYTES;
use drydock_proto::status::v1alpha1::watch_nodes_response::Event;
use drydock_proto::status::v1alpha1::{EvictionCounts, Node, WatchNodesResponse};
use prost::Message;
use serde_json::{Value, json};

use super::*;

fn now(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn maintenance(name: &str, created: &str, nodes: &[(&str, i32)], evicted: i32) -> NodeMaintenance {
    let status =
        |(node, pending): &(&str, i32)| json!({"nodeRef": {"name": node}, "podsPendingEvacuation": pending});
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": "u", "creationTimestamp": created},
        "spec": {"stage": "Drain"},
        "status": {
            "nodeStatuses": nodes.iter().map(status).collect::<Vec<_>>(),
            "outcomes": {"evicted": evicted, "canceled": 0, "passedOver": 0, "returned": 0},
        },
    }))
    .unwrap()
}

fn eviction(status: Value) -> EvictionRequest {
    serde_json::from_value(json!({"metadata": {"namespace": "shop", "name": "uid"}, "status": status}))
        .unwrap()
}

fn intercepting(node: &str, finish: &str) -> EvictionRequest {
    eviction(json!({
        "podInfo": {"nodeName": node, "podType": "Default"}, "activeInterceptors": ["a.example.com"],
        "interceptors": [{"name": "a.example.com", "message": "", "expectedFinishTime": finish}],
    }))
}

fn touched(updates: &[Update]) -> Vec<String> {
    updates
        .iter()
        .map(|u| format!("{}{:?} {}", if u.state.is_some() { "" } else { "no " }, u.entity, u.key))
        .collect()
}

fn node(updates: &[Update]) -> Node {
    let found = updates.iter().find(|update| update.entity == Entity::Node).unwrap();
    let event = found.state.as_ref().unwrap().event.clone();
    match WatchNodesResponse::decode(event).unwrap().event.unwrap() {
        Event::Updated(node) => node,
        other => panic!("{other:?}"),
    }
}

const OLD: &str = "2026-01-01T00:00:00Z";
const NEW: &str = "2026-02-01T00:00:00Z";

#[test]
fn a_maintenance_touches_the_nodes_whose_part_has_changed() {
    let mut facts = Facts::new(Duration::from_secs(1200));
    let key: Arc<str> = "m".into();
    let mut set = |nodes: Option<&[(&str, i32)]>| {
        let object = nodes.map(|nodes| maintenance("m", OLD, nodes, 0));
        touched(&facts.set_maintenance(&key, object.as_ref(), now(0)))
    };
    assert_eq!(set(Some(&[("a", 1), ("b", 1)])), ["Maintenance m", "Node a", "Node b"]);
    assert_eq!(set(Some(&[("a", 1), ("b", 0)])), ["Maintenance m", "Node b"]);
    assert_eq!(set(Some(&[("b", 0), ("c", 1)])), ["Maintenance m", "no Node a", "Node c"]);
    assert_eq!(set(None), ["no Maintenance m", "no Node b", "no Node c"]);
    assert_eq!(set(None), ["no Maintenance m"]);
}

#[test]
fn a_node_is_told_of_while_any_maintenance_speaks_of_it_the_oldest_first() {
    let mut facts = Facts::new(Duration::from_secs(1200));
    let (one, other): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
    facts.set_maintenance(&one, Some(&maintenance("a", NEW, &[("n", 1)], 0)), now(0));
    let updates = facts.set_maintenance(&other, Some(&maintenance("b", OLD, &[("n", 2)], 0)), now(0));
    let names: Vec<_> = node(&updates).progress.into_iter().map(|said| said.maintenance).collect();
    assert_eq!(names, ["b", "a"]);
    let updates = facts.set_maintenance(&other, None, now(0));
    assert_eq!(node(&updates).progress.len(), 1);
    // An object that is created again under the same name has another age.
    let updates = facts.set_maintenance(&one, Some(&maintenance("a", OLD, &[("n", 1)], 0)), now(0));
    assert_eq!(node(&updates).progress.len(), 1);
}

#[test]
fn evictions_are_counted_on_the_node_where_they_are_and_nowhere_else() {
    let mut facts = Facts::new(Duration::from_secs(1200));
    let (m, key): (Arc<str>, Arc<str>) = ("m".into(), "shop/uid".into());
    assert_eq!(touched(&facts.set_eviction(&key, Some(&intercepting("n1", NEW)))), ["Eviction shop/uid"]);
    let updates = facts.set_maintenance(&m, Some(&maintenance("m", OLD, &[("n1", 1), ("n2", 1)], 0)), now(0));
    let told = node(&updates);
    assert_eq!(told.evictions.unwrap(), EvictionCounts { intercepting: 1, ..Default::default() });
    assert!(told.expected_finish_time.is_some());
    let updates = facts.set_eviction(&key, Some(&intercepting("n2", NEW)));
    assert_eq!(touched(&updates), ["Eviction shop/uid", "Node n1", "Node n2"]);
    assert_eq!(node(&updates).evictions.unwrap(), EvictionCounts::default());
    let ended = json!({"podInfo": {"nodeName": "n2"}, "conditions": [{"type": "Evicted", "status": "True"}]});
    let told = node(&facts.set_eviction(&key, Some(&eviction(ended))));
    assert_eq!((told.evictions.unwrap(), told.expected_finish_time), (EvictionCounts::default(), None));
    assert_eq!(touched(&facts.set_eviction(&key, None)), ["no Eviction shop/uid", "Node n2"]);
    assert_eq!(
        touched(&facts.set_maintenance(&m, None, now(0))),
        ["no Maintenance m", "no Node n1", "no Node n2"]
    );
    assert_eq!(facts.all_nodes().len(), 0, "nothing is kept of what is gone");
}

#[test]
fn a_rate_is_told_while_evictions_happen_and_fades() {
    let mut facts = Facts::new(Duration::from_secs(1200));
    let key: Arc<str> = "m".into();
    for n in 0..=60 {
        facts.set_maintenance(&key, Some(&maintenance("m", OLD, &[("a", 30)], n)), now(i64::from(n)));
    }
    let drain_rate = facts.drain_rate("m");
    assert_eq!((drain_rate.evictions_per_minute, drain_rate.finish_time), (Some(60.0), Some(now(90))));
    assert_eq!(touched(&facts.rates(now(120))), ["Maintenance m"]);
    assert_eq!(facts.drain_rate("m").evictions_per_minute, Some(30.0));
    facts.rates(now(1000));
    assert_eq!((facts.drain_rate("m"), facts.rates(now(1001)).len()), (DrainRate::default(), 0));
    assert_eq!(facts.drain_rate("other"), DrainRate::default());
}

/// gRPC clients refuse a longer message by default, so that the stream would end at it again and again.
const LARGEST_MESSAGE: usize = 4 << 20;

/// A maintenance of one node whose status is as large as it may be.
fn large_maintenance(name: &str, node: &str) -> NodeMaintenance {
    let blocker = json!({"pod": {"namespace": "n".repeat(9_000), "name": "p"}, "reason": "Other", "message": "m".repeat(90_000)});
    let left = |n: usize| json!({"podType": "Default", "priority": n, "podSelector": {"matchLabels": {"a": "x".repeat(800)}}, "count": 1});
    let status = json!({
        "nodeRef": {"name": node}, "drainMessage": "d".repeat(40_000), "blockedPods": 10,
        "blockers": vec![blocker; 10], "left": (0..300).map(left).collect::<Vec<_>>(),
    });
    let object = json!({
        "metadata": {"name": name, "uid": "u", "creationTimestamp": OLD},
        "spec": {"stage": "Drain", "reason": "r".repeat(60_000)},
        "status": {"nodeStatuses": [status], "conditions": [{"type": "Drained", "status": "False", "message": "c".repeat(40_000)}]},
    });
    let size = object.to_string().len();
    assert!((1_200_000..MAX_OBJECT_BYTES).contains(&size), "{size}");
    serde_json::from_value(object).unwrap()
}

#[test]
fn no_message_is_larger_than_what_clients_take_and_it_says_how_much_there_is() {
    let mut facts = Facts::new(Duration::from_secs(1200));
    for n in 0..20 {
        let key: Arc<str> = format!("m{n}").into();
        for update in facts.set_maintenance(&key, Some(&large_maintenance(&key, "n1")), now(0)) {
            let size = update.state.unwrap().event.len();
            assert!(size < LARGEST_MESSAGE - (64 << 10), "{:?}: {size}", update.entity);
        }
    }
    let node = facts.node("n1").unwrap();
    assert_eq!((node.maintenances, node.progress[0].maintenance.as_str()), (20, "m0"));
    assert!((4..20).contains(&node.progress.len()), "{}", node.progress.len());
    let updates =
        facts.set_maintenance(&"long".into(), Some(&large_maintenance("long", &"n".repeat(254))), now(0));
    assert_eq!(touched(&updates), ["Maintenance long"], "no node has such a name");
}

#[test]
fn a_request_that_is_as_large_as_storage_takes_makes_a_message_that_clients_take() {
    let names = |n: usize| (0..n).map(|n| format!("{n}.{}", "a".repeat(240))).collect::<Vec<_>>();
    let interceptor =
        |name: &String| json!({"name": name, "message": "\u{1f600}".repeat(4000), "startTime": OLD});
    let targets = names(17);
    let request: EvictionRequest = serde_json::from_value(json!({
        "metadata": {"namespace": "shop", "name": "uid"},
        "spec": {"requesters": names(100).iter().map(|name| json!({"name": name})).collect::<Vec<_>>()},
        "status": {
            "podInfo": {"nodeName": "n", "podType": "Default"},
            "targetInterceptors": targets.iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
            "activeInterceptors": [targets[16]], "processedInterceptors": targets[..16],
            "interceptors": targets.iter().map(interceptor).collect::<Vec<_>>(),
            "conditions": [{"type": "Canceled", "status": "False", "message": "c".repeat(32 << 10)}],
        },
    }))
    .unwrap();
    let mut facts = Facts::new(Duration::from_secs(1200));
    let updates = facts.set_eviction(&"shop/uid".into(), Some(&request));
    let size = updates[0].state.as_ref().unwrap().event.len();
    assert!((32 << 10..1 << 20).contains(&size), "{size}");
}
