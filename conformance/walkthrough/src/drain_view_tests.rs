//! Statuses, and the rows and lines that they become.

use serde_json::{Value, json};

use super::*;

const WEB: &str = "web-6f7c9d8b54-x2x9k";

fn maintenance(status: Value) -> NodeMaintenance {
    let plan = json!([{"podPriority": 1000}, {"podPriority": i32::MAX}, {"podPriority": 1000, "podType": "DaemonSet"}]);
    serde_json::from_value(json!({"spec": {"drainPlan": plan}, "status": status})).unwrap()
}

fn node(name: &str, pending: i32, evacuating: i32, message: &str) -> Value {
    json!({"nodeRef": {"name": name}, "podsPendingEvacuation": pending, "podsEvacuating": evacuating,
        "drainMessage": message, "drainTargets": [{"podPriority": 1000}]})
}

fn blocked(mut node: Value, pod: &str, reason: &str, message: &str) -> Value {
    let pod = json!({"namespace": "demo", "name": pod, "uid": "u"});
    node["blockers"] = json!([{"pod": pod, "reason": reason, "message": message}]);
    node["blockedPods"] = json!(1);
    node
}

fn by_budget(node: Value) -> Value {
    let message = "The disruption budget web needs 47 healthy pods and has 47 currently";
    blocked(node, WEB, POD_DISRUPTION_BUDGET, message)
}

fn view(nodes: &[&str]) -> DrainView {
    DrainView::new("rack-1", &nodes.iter().map(|node| (*node).to_owned()).collect::<Vec<_>>())
}

fn rows(view: &DrainView, width: usize) -> Vec<String> {
    let joined = |line: Vec<Span>| line.iter().map(|span| span.text.as_str()).collect::<String>();
    view.table(width).into_iter().map(|line| joined(line).trim_end().to_owned()).collect()
}

fn of(node: Value) -> DrainView {
    let mut view = view(&[]);
    view.update(&maintenance(json!({"nodeStatuses": [node]})));
    view
}

#[test]
fn the_table_has_a_row_for_each_node() {
    let mut view = view(&["a", "b"]);
    view.update(&maintenance(json!({"nodeStatuses": [
        node("a", 2, 8, "Evacuating"), node("b", 4, 0, "Waiting for node a."),
    ]})));
    view.update(&maintenance(json!({"drainPlanPosition": 0, "nodeStatuses": [
        by_budget(node("a", 2, 3, "Evacuating")), node("b", 4, 0, "Waiting for node a."),
    ]})));
    assert_eq!(
        rows(&view, 90),
        [
            "  NODE  PODS        LEFT  LEAVING  BLOCKED  TIER    STATE",
            "  a     █████▒▒▒░░     5        3        1  ≤ 1000  budget web: web-6f7c9d8b54-x2x9k",
            "  b     ░░░░░░░░░░     4        0        0  ≤ 1000  waits for a",
        ]
    );
    assert_eq!(view.title(), "NodeMaintenance rack-1 · tier 1 of 3 · 9 of 14 pods left");
}

#[test]
fn one_pod_is_singular() {
    let mut view = view(&[]);
    let changes = |view: &mut DrainView, left| {
        view.update(&maintenance(json!({"nodeStatuses": [node("a", left, 0, "")]}))).join("\n")
    };
    assert_eq!(changes(&mut view, 1), "a: 1 pod left, tier ≤ 1000");
    assert!(view.title().ends_with("1 of 1 pod left"), "{}", view.title());
    assert_eq!(changes(&mut view, 2), "a: 2 pods left, tier ≤ 1000");
    assert_eq!(changes(&mut view, 0), "a: 0 pods left, tier ≤ 1000");
}

#[test]
fn no_line_of_the_table_is_longer_than_the_terminal() {
    let view = of(by_budget(node("a", 2, 3, "Evacuating")));
    for width in 60..140 {
        let longest = rows(&view, width).iter().map(|row| row.chars().count()).max().unwrap();
        assert!(longest <= width, "{longest} of {width}:\n{}", rows(&view, width).join("\n"));
    }
    assert!(rows(&view, 70)[1].ends_with("budget web: web-6\u{2026}"), "{}", rows(&view, 70)[1]);
    assert!(rows(&view, 120)[1].ends_with(WEB), "{}", rows(&view, 120)[1]);
}

#[test]
fn a_pipe_gets_the_blocker_in_full() {
    let status = json!({"nodeStatuses": [by_budget(node("a", 2, 3, "Evacuating"))]});
    let lines = view(&[]).update(&maintenance(status));
    assert_eq!(lines, [format!("a: 5 pods left, 3 leaving, 1 blocked, tier ≤ 1000; budget web: {WEB}")]);
}

#[test]
fn blockers_are_named_by_their_budget_or_else_by_their_reason() {
    let several = "The pod is covered by more than one PodDisruptionBudget (\"a\" and \"b\" at least)";
    let unobserved = "The disruption budget web is still being processed by the server.";
    for (pod, reason, message, shown) in [
        ("p", POD_DISRUPTION_BUDGET, unobserved, "budget web: p"),
        ("p", POD_DISRUPTION_BUDGET, "PodDisruptionBudget \"zero\" allows 0 disruptions", "budget zero: p"),
        ("p", POD_DISRUPTION_BUDGET, several, "PodDisruptionBudget: p"),
        ("p", "Interceptor", "PodDisruptionBudget \"zero\"", "Interceptor: p"),
        ("", "NodeUpdateRefused", "no", "NodeUpdateRefused: the node itself"),
    ] {
        let view = of(blocked(node("a", 1, 1, "Evacuating"), pod, reason, message));
        assert!(rows(&view, 120)[1].ends_with(shown), "{}", rows(&view, 120)[1]);
    }
}

#[test]
fn an_unchanged_node_has_no_line() {
    let mut view = view(&["a", "b"]);
    let state = |left| maintenance(json!({"nodeStatuses": [node("a", left, 0, ""), node("b", 1, 0, "")]}));
    assert_eq!(view.update(&state(2)).len(), 2);
    assert!(view.update(&state(2)).is_empty());
    assert_eq!(view.update(&state(1)), ["a: 1 pod left, tier ≤ 1000"]);
}

#[test]
fn an_empty_status_shows_the_nodes_as_not_begun() {
    let mut view = view(&["a"]);
    assert!(view.update(&maintenance(json!({}))).is_empty());
    assert_eq!(view.title(), "NodeMaintenance rack-1");
    assert_eq!(
        rows(&view, 80)[1],
        "  a     ░░░░░░░░░░                                not begun"
            .replace("                                 ", &" ".repeat(27))
    );
}

#[test]
fn a_node_without_pods_is_drained_and_its_bar_is_full() {
    let view = of(node("a", 0, 0, "Drained"));
    assert_eq!(view.title(), "NodeMaintenance rack-1 · drained");
    let row = &rows(&view, 80)[1];
    assert!(row.contains("██████████") && row.ends_with("drained"), "{row}");
}

#[test]
fn a_node_that_left_the_cluster_keeps_its_row() {
    let mut view = view(&["a", "b"]);
    view.update(&maintenance(json!({"nodeStatuses": [node("a", 3, 0, ""), node("b", 1, 0, "")]})));
    let left = "The node left the cluster before it was drained";
    let lines = view.update(&maintenance(json!({"nodeStatuses": [node("b", 1, 0, left)]})));
    assert_eq!(
        lines,
        ["a: no longer under maintenance".to_owned(), format!("b: 1 pod left, tier ≤ 1000; {left}")]
    );
    let rows = rows(&view, 120);
    assert!(rows[1].ends_with("no longer under maintenance") && rows[2].ends_with(left), "{rows:?}");
}

#[test]
fn tiers_are_named_by_priority_or_type() {
    for (target, name) in [
        (json!({"podPriority": 1000}), "≤ 1000"),
        (json!({"podPriority": i32::MAX}), "all pods"),
        (json!({"podPriority": 7, "podType": "DaemonSet"}), "DaemonSets"),
        (json!({"podPriority": 7, "podType": "Static"}), "static pods"),
    ] {
        let mut status = node("a", 1, 0, "");
        status["drainTargets"] = json!([{"podPriority": 1}, target]);
        assert!(rows(&of(status), 120)[1].ends_with(name), "{name}");
    }
}

#[test]
fn the_outcome_names_only_what_happened() {
    let outcome = |pods, outcomes: Value| {
        let mut view = view(&["a"]);
        view.update(&maintenance(json!({"nodeStatuses": [node("a", pods, 0, "")], "outcomes": outcomes})));
        view.update(&maintenance(
            json!({"nodeStatuses": [node("a", 0, 0, "Drained")], "outcomes": outcomes}),
        ));
        view.outcome()
    };
    assert_eq!(outcome(1, json!({"evicted": 1})), "1 pod has left 1 node");
    assert_eq!(
        outcome(2, json!({"returned": 3, "canceled": 1})),
        "2 pods have left 1 node, workloads put 3 pods back, 1 request was canceled"
    );
}
