//! Tests that matching works as in node affinity, and that errors have the texts of core/v1.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

fn selector(terms: Value) -> NodeSelector {
    serde_json::from_value(json!({ "nodeSelectorTerms": terms })).unwrap()
}

fn selects(terms: Value) -> bool {
    let labels = [("zone", "a"), ("gen", "5"), ("word", "x")];
    let labels: BTreeMap<_, _> = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    matches(&selector(terms), "n1", &labels) == Some(true)
}

/// A kubelet labels its node: one that hid a label among thousands of others drained the node, though a selector spared it.
#[test]
fn of_a_requirement_on_a_label_that_may_be_there_or_not_nothing_is_known() {
    let labels = BTreeMap::from([("a".to_owned(), "x".to_owned())]);
    let known = KnownLabels { cut_from: Some("b"), ..KnownLabels::from(&labels) };
    for operator in ["DoesNotExist", "NotIn", "In", "Exists"] {
        let values: &[&str] = if operator.ends_with("In") { &["v"] } else { &[] };
        assert_eq!(matches(&selector(expression("zone", operator, values)), "n1", known), None, "{operator}");
    }
    for (key, operator) in [("a", "Exists"), ("aa", "DoesNotExist")] {
        assert_eq!(matches(&selector(expression(key, operator, &[])), "n1", known), Some(true), "{key}");
    }
    let by_name = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]);
    assert_eq!(matches(&selector(by_name.clone()), "n1", known), Some(true));
    // What is known decides where it can: one term selects the node, or a requirement of the term does not.
    let hidden = json!({"key": "zone", "operator": "Exists"});
    let either = json!([{"matchExpressions": [hidden]}, by_name[0]]);
    assert_eq!(matches(&selector(either), "n1", known), Some(true));
    let both = json!([{"matchExpressions": [hidden, {"key": "aa", "operator": "Exists"}]}]);
    assert_eq!(matches(&selector(both), "n1", known), Some(false));
    let elsewhere = json!([{"matchExpressions": [hidden], "matchFields": by_name[0]["matchFields"]}]);
    assert_eq!(matches(&selector(elsewhere), "n2", known), Some(false));
    let protected = KnownLabels { is_always_known: |key| key == "zone", ..known };
    assert_eq!(matches(&selector(json!([{"matchExpressions": [hidden]}])), "n1", protected), Some(false));
}

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    json!([{ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] }])
}

fn errors(terms: Value) -> Vec<String> {
    validate(&selector(terms), &Path::new("spec").child("nodeSelector"))
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn operators_match_as_in_node_affinity() {
    assert!(selects(expression("zone", "In", &["a", "b"])));
    assert!(!selects(expression("none", "In", &["a"])));
    assert!(selects(expression("none", "NotIn", &["a"])) && !selects(expression("zone", "NotIn", &["a"])));
    assert!(selects(expression("zone", "Exists", &[])) && selects(expression("none", "DoesNotExist", &[])));
    assert!(selects(expression("gen", "Gt", &["4"])) && !selects(expression("gen", "Gt", &["5"])));
    assert!(selects(expression("gen", "Lt", &["6"])) && !selects(expression("word", "Lt", &["6"])));
    assert!(!selects(expression("none", "Lt", &["6"])) && !selects(expression("gen", "Lt", &["x"])));
    assert!(!selects(expression("zone", "Like", &["a"])));
}

#[test]
fn terms_are_ored_requirements_anded_and_an_empty_term_selects_nothing() {
    assert!(!selects(json!([])) && !selects(json!([{}])));
    let name =
        |n: &str| json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [n] }] });
    assert!(selects(json!([{}, name("n1")])) && !selects(json!([name("n2")])));
    let both = json!([{ "matchExpressions": [{ "key": "zone", "operator": "Exists" }],
        "matchFields": [{ "key": "metadata.name", "operator": "NotIn", "values": ["n1"] }] }]);
    assert!(!selects(both));
}

#[test]
fn the_core_rules_are_enforced_with_their_words() {
    let at = "spec.nodeSelector.nodeSelectorTerms";
    assert_eq!(
        errors(json!([])),
        [format!("{at}: Required value: must have at least one node selector term")]
    );
    assert!(errors(json!([{}])).is_empty());
    let e = errors(expression("zone", "In", &[]));
    let words = "must be specified when `operator` is 'In' or 'NotIn'";
    assert_eq!(e, [format!("{at}[0].matchExpressions[0].values: Required value: {words}")]);
    assert!(
        errors(expression("zone", "Exists", &["a"]))[0].contains("values: Forbidden: may not be specified")
    );
    assert!(errors(expression("gen", "Gt", &["1", "2"]))[0].contains("must be specified single value"));
    assert!(
        errors(expression("z", "Like", &[]))[0].contains("operator: Invalid value: \"Like\": not a valid")
    );
    assert!(
        errors(expression("a b", "Exists", &[]))[0].contains("key: Invalid value: \"a b\": name part must")
    );
    assert!(errors(expression("zone", "In", &["a b"]))[0].contains("values[0]: Invalid value: \"a b\""));
}

#[test]
fn match_fields_take_metadata_name_only() {
    let field = |key: &str, operator: &str, values: Value| {
        errors(json!([{ "matchFields": [{ "key": key, "operator": operator, "values": values }] }]))
    };
    assert!(field("metadata.name", "In", json!(["n1"])).is_empty());
    assert!(
        field("spec.x", "In", json!(["n1"]))[0].contains("key: Invalid value: \"spec.x\": not a valid field")
    );
    assert!(field("metadata.name", "In", json!(["a", "b"]))[0].contains("must be only one value"));
    assert!(field("metadata.name", "Exists", json!([]))[0].contains("not a valid selector operator"));
    assert!(
        field("metadata.name", "In", json!(["A_"]))[0]
            .contains("values[0]: Invalid value: \"A_\": a lowercase")
    );
}

fn names_of(terms: &Value) -> Option<Vec<String>> {
    names(&selector(terms.clone())).map(|names| names.into_iter().map(str::to_owned).collect())
}

#[test]
fn a_selector_names_its_nodes_when_every_term_does() {
    let field = |operator: &str, node: &str| json!({ "key": "metadata.name", "operator": operator, "values": [node] });
    let named = |node: &str| json!({ "matchFields": [field("In", node)] });
    let of_a_zone = json!({ "matchFields": [field("In", "c"), field("NotIn", "d")],
        "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a"] }] });
    let all = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(names_of(&json!([named("b"), named("a"), of_a_zone])), Some(all));
    let by_label = json!({ "matchExpressions": of_a_zone["matchExpressions"] });
    for other in [by_label, json!({ "matchFields": [field("NotIn", "a")] }), json!({})] {
        assert_eq!(names_of(&json!([named("a"), other])), None, "{other}");
    }
}

/// Every name by which a term selects is included.
#[test]
fn what_a_selector_of_names_selects_is_among_them() {
    let terms = json!([{ "matchFields": [
        { "key": "metadata.name", "operator": "In", "values": ["n1"] },
        { "key": "metadata.name", "operator": "In", "values": ["n2"] }] }]);
    assert_eq!(names_of(&terms), Some(vec!["n1".to_owned(), "n2".to_owned()]));
    assert!(!selects(terms), "no node has two names");
}

#[test]
fn a_selector_that_cannot_be_read_is_an_error() {
    let object = |spec: Value| Object::from(serde_json::Map::from_iter([("spec".to_owned(), spec)]));
    for spec in
        [json!({}), json!({ "nodeSelector": "a" }), json!({ "nodeSelector": { "nodeSelectorTerms": 1 } })]
    {
        assert!(of(&object(spec.clone())).is_err(), "{spec}");
    }
    let nulls = json!({ "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": null }] } });
    assert_eq!(of(&object(nulls)), Ok(selector(json!([{}]))));
}
