//! Values of the kind's own fields.

use serde_json::{Value, json};

use super::{of, of_target};
use crate::sequence::{Sequence, object};
use crate::sequences::budget_with;
use crate::target::{ACCOUNT, CONFIG_MAP, LEASE};

pub(super) fn all() -> Vec<Sequence> {
    let mut all = amounts();
    all.extend(selectors());
    all.extend(shapes());
    all.extend(texts_and_bytes());
    all.extend(leases());
    all
}

fn amounts() -> Vec<Sequence> {
    let values = [
        json!(0),
        json!(-1),
        json!(2_147_483_647),
        json!(99_999_999_999_i64),
        json!(1.5),
        json!(1e3),
        json!(true),
        json!(null),
        json!("50%"),
        json!("150%"),
        json!("12"),
        json!(""),
        json!("x%"),
        json!([]),
        json!({}),
    ];
    let one = |value: Value| {
        of(&format!("an amount of {value}")).post(budget_with("x", json!({"spec": {"minAvailable": value}})))
    };
    values.into_iter().map(one).collect()
}

fn selectors() -> Vec<Sequence> {
    let term = |operator: &str, values: Value| {
        let name = format!("a selector with {operator} {values}");
        let terms = json!([{"key": "a", "operator": operator, "values": values}]);
        of(&name).post(object("x", json!({"spec": {"selector": {"matchExpressions": terms}}})))
    };
    let selected = |name: &str, selector: Value| {
        of(name).post(object("x", json!({"spec": {"minAvailable": 1, "selector": selector}})))
    };
    vec![
        term("In", json!(["x", "y"])),
        term("In", json!([])),
        term("NotIn", json!(["-"])),
        term("Exists", json!(null)),
        term("Exists", json!(["x"])),
        term("DoesNotExist", json!([])),
        term("Like", json!(["x"])),
        selected("an empty selector", json!({})),
        selected("a selector of null", json!(null)),
        selected("a selector with a bad key", json!({"matchLabels": {"a b": "c"}})),
        selected("a selector with a bad value", json!({"matchLabels": {"a": "c d"}})),
        selected("a selector with an expression of nothing", json!({"matchExpressions": [{}]})),
        selected("a selector in a list", json!([])),
    ]
}

fn shapes() -> Vec<Sequence> {
    let body = |name: &str, body: Value| {
        let mut whole = json!({"metadata": {"name": "x"}});
        crate::sequence::merge(&mut whole, body);
        of(name).post(whole)
    };
    vec![
        body("a spec of null", json!({"spec": null})),
        body("a spec of text", json!({"spec": "x"})),
        body("a spec in a list", json!({"spec": []})),
        body("metadata in a list", json!({"metadata": []})),
        body("a name that is a number", json!({"metadata": {"name": 5}})),
        body("a field in other letters", json!({"Spec": {"minAvailable": 1}, "spec": {"MinAvailable": 1}})),
        body("a policy that is none", json!({"spec": {"unhealthyPodEvictionPolicy": "Never"}})),
        body("a policy of the empty text", json!({"spec": {"unhealthyPodEvictionPolicy": ""}})),
        body("several errors", json!({"spec": {"minAvailable": -1, "unhealthyPodEvictionPolicy": "Never"}})),
        body("several types that are wrong", json!({"spec": {"minAvailable": [], "selector": 1}})),
    ]
}

fn texts_and_bytes() -> Vec<Sequence> {
    let of_map = |name: &str, body: Value| of_target(CONFIG_MAP, name).post(object("x", body));
    vec![
        of_map("bytes that are no base64", json!({"binaryData": {"a": "!!!!"}})),
        of_map("bytes without padding", json!({"binaryData": {"a": "AAE"}})),
        of_map("bytes in two lines", json!({"binaryData": {"a": "AA\nEC"}})),
        of_map("bytes of null", json!({"binaryData": {"a": null}})),
        of_map("bytes that are a number", json!({"binaryData": {"a": 5}})),
        of_map("texts that are numbers", json!({"data": {"a": 5}})),
        of_map("texts of null", json!({"data": {"a": null, "b": "c"}})),
        of_map("a key in both", json!({"data": {"a": "x"}, "binaryData": {"a": "AAEC"}})),
        of_map("maps of null", json!({"data": null, "binaryData": {}, "immutable": null})),
        of_map("texts of other scripts", json!({"data": {"a": "äöü \u{1F680} <&> \u{2028}"}})),
        of_map("texts with control characters", json!({"data": {"a": "\u{0}\u{1}\t\u{7f}"}})),
        of_target(ACCOUNT, "a boolean that is text")
            .post(object("x", json!({"automountServiceAccountToken": "true"}))),
        of_target(ACCOUNT, "a reference that is text").post(object("x", json!({"secrets": ["a"]}))),
        of_target(ACCOUNT, "empty lists").post(object("x", json!({"secrets": [], "imagePullSecrets": []}))),
    ]
}

fn leases() -> Vec<Sequence> {
    let spec = |name: String, spec: Value| of_target(LEASE, &name).post(object("x", json!({"spec": spec})));
    let times = [
        "2020-01-02T03:04:05Z",
        "2020-01-02T03:04:05.1Z",
        "2020-01-02T03:04:05.123456789Z",
        "2020-01-02T03:04:05.000000+02:00",
        "2020-01-02 03:04:05Z",
        "2020-01-02T03:04:05.123456",
        "2020-13-02T03:04:05.000000Z",
        "",
    ];
    let mut all: Vec<Sequence> =
        times.map(|time| spec(format!("a time of {time:?}"), json!({"renewTime": time}))).into();
    all.extend([
        spec("a duration of 0".into(), json!({"leaseDurationSeconds": 0, "leaseTransitions": 0})),
        spec("numbers below 0".into(), json!({"leaseDurationSeconds": -1, "leaseTransitions": -1})),
        spec("a number that is text".into(), json!({"leaseDurationSeconds": "5"})),
        spec("a number that is too large".into(), json!({"leaseDurationSeconds": 2_147_483_648_i64})),
        spec(
            "pointers of null".into(),
            json!({"leaseDurationSeconds": null, "holderIdentity": null, "renewTime": null}),
        ),
        spec("a time that is a number".into(), json!({"renewTime": 5})),
    ]);
    all
}
