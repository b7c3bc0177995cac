//! Results of expressions, as on the host: each expression is documented or tested by k8s.io/apiserver.
#![allow(clippy::unwrap_used)]

mod bounds;
mod functions;
mod waiting;

use std::sync::Arc;

use drydock_admission::cel::library::{BlockingAuthorizer, UserAuthorizer, authorizer};
use drydock_admission::cel::{Activation, EvaluationResult, Expression, of_json, stack};
use drydock_serving::auth::authz::AuthorizationAttributes;
use drydock_serving::request::user::User;
use serde_json::json;

const VARIABLES: [&str; 4] = ["object", "oldObject", "authorizer", "variables"];

struct Deletes;

impl BlockingAuthorizer for Deletes {
    fn authorize(&self, user: &User, about: &AuthorizationAttributes) -> Result<(bool, String), String> {
        match (about.verb.as_str(), user.name.as_str()) {
            ("boom", _) => Err("no answer".to_owned()),
            (verb, "ann") => Ok((verb == "delete" && about.resource == "pods", "because".to_owned())),
            (_, name) => Ok((name == "system:serviceaccount:a:b", String::new())),
        }
    }
}

fn activation(composed: &[(&str, &str)], budget: i64) -> Activation {
    let object = json!({
        "metadata": {"name": "web", "labels": {"tier": "front"}},
        "spec": {"replicas": 3, "ratio": 0.5, "hosts": ["a", "b"], "none": null},
    });
    let ann = Arc::new(User { name: "ann".into(), ..User::default() });
    let variables = vec![
        ("object", of_json(&object)),
        ("oldObject", of_json(&json!(null))),
        ("authorizer", authorizer(UserAuthorizer::new(ann, Arc::new(Deletes)))),
    ];
    let composed = composed.iter();
    let composed = composed.map(|(name, text)| ((*name).to_owned(), Expression::compile(text, &VARIABLES)));
    Activation::new(variables, composed.collect(), budget).unwrap()
}

fn evaluate(text: &str) -> Result<EvaluationResult, String> {
    let expression = Expression::compile(text, &VARIABLES)?;
    stack::on_large_stack(|| activation(&[], 10_000_000).evaluate(&expression).unwrap()).unwrap()
}

#[track_caller]
fn holds(text: &str) {
    assert_eq!(evaluate(text), Ok(EvaluationResult::Bool(true)), "{text}");
}

#[track_caller]
fn fails(text: &str, why: &str) {
    let error = evaluate(text).unwrap_err();
    assert_eq!(error, format!("expression '{text}' resulted in error: {why}"));
}

#[test]
fn the_language_and_what_an_object_is() {
    for text in [
        "object.spec.replicas == 3 && object.spec.replicas < 3.5",
        "type(object.spec.replicas) == int && type(object.spec.ratio) == double",
        "has(object.metadata.labels) && !has(object.metadata.annotations)",
        "object.spec.hosts.all(h, h.size() == 1) && object.spec.hosts.exists_one(h, h == 'a')",
        "object.spec.hosts.map(h, h + '!') == ['a!', 'b!']",
        "object.spec.?missing.orValue(7) == 7 && object.?spec.?replicas.orValue(0) == 3",
        "optional.of(2).optMap(v, v * 2).value() == 4",
        "object.spec.none == null && oldObject == null && !has(oldObject.spec) && !has(object.metadata.name.x)",
        "!oldObject.?spec.hasValue() && type(timestamp('2026-01-01T00:00:00Z')) == google.protobuf.Timestamp",
        "'tier' in object.metadata.labels && object.metadata.labels['tier'] == 'front'",
        "duration('90s') > duration('1m') && timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
        "'%s has %d'.format([object.metadata.name, 2]) == 'web has 2'",
        "'A-B'.lowerAscii().split('-').join('+') == 'a+b' && 'aaa'.replace('a', 'b', 2) == 'bba'",
        "object.spec.replicas > 1 ? true : false",
    ] {
        holds(text);
    }
}

#[test]
fn two_variables_in_a_loop() {
    for text in [
        "[1, 2, 3].all(i, v, i < v) && ['x'].exists(i, v, i == 0 && v == 'x')",
        "{'a': 1, 'b': 2}.existsOne(k, v, k == 'a' && v == 1)",
        "[1, 2, 3].transformList(i, v, i % 2 == 0, i * v) == [0, 6]",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && [4].transformMap(i, v, v) == {0: 4}",
        "{'a': 'x'}.transformMapEntry(k, v, {v: k}) == {'x': 'a'}",
        "[[1], [2]].all(i, row, row.all(j, v, v == i + j + 1))",
    ] {
        holds(text);
    }
    fails(
        "{'a': 1, 'b': 1}.transformMapEntry(k, v, {v: k}).size() == 2",
        "insert failed: key already exists",
    );
}

#[test]
fn the_authorizer_is_asked() {
    for text in [
        "authorizer.group('').resource('pods').namespace('n').name('x').check('delete').allowed()",
        "authorizer.group('').resource('pods').check('delete').reason() == 'because'",
        "!authorizer.path('/healthz').check('get').allowed()",
        "authorizer.serviceAccount('a', 'b').group('').resource('nodes').check('get').allowed()",
        "authorizer.path('/').check('boom').errored() && authorizer.path('/').check('boom').error() == 'no answer'",
    ] {
        holds(text);
    }
}

#[test]
fn what_fails_is_said_in_the_words_of_the_host() {
    fails("object.spec.missing == 1", "no such key: missing");
    fails("oldObject.spec.x == 1", "no such key: spec");
    fails("object.metadata.name.x == 1", "no such key: x");
    fails("object.spec.hosts[5] == 'x'", "index out of bounds: 5");
    fails("object.spec.replicas / 0 == 1", "division by zero");
    fails("object.metadata.name + 1 == 2", "no such overload");
    assert_eq!(evaluate("object.spec.missing == 1 || true"), Ok(EvaluationResult::Bool(true)));
}

#[test]
fn what_this_server_does_not_have_is_refused_before_it_runs() {
    let error = evaluate("true || object.frobnicate(1)").unwrap_err();
    let wanted = "compilation failed: ERROR: <input>:1:26: undeclared reference to 'frobnicate' (in container '')\n | true || object.frobnicate(1)\n | .........................^";
    assert_eq!(error, wanted);
    assert!(evaluate("params.x == 1").unwrap_err().contains("undeclared reference to 'params'"));
    assert!(evaluate("1 +").unwrap_err().contains("Syntax error"));
    holds(&format!("{}1 == 391", "1 + ".repeat(390)));
    holds(&format!("{}true{}", "(".repeat(120), ")".repeat(120)));
    // The deepest nesting allowed, in each way that nests.
    holds(&format!("['x']{} == ['x']", ".map(t, t)".repeat(390)));
    holds(&format!("{}true", "true ? true : ".repeat(120)));
    holds(&format!("!object{}.hasValue()", ".?a".repeat(390)));
    holds(&format!("{}[1]{} != [2]", "[".repeat(120), "]".repeat(120)));
    holds(&format!("'a'{} == 'a'", ".trim()".repeat(390)));
    let deep = format!("{}1 == 1", "1 + ".repeat(2_000));
    assert!(evaluate(&deep).unwrap_err().contains("nested deeper"));
}

#[test]
fn composed_variables_are_evaluated_when_they_are_asked_for() {
    let composed = [
        ("name", "object.metadata.name"),
        ("long", "variables.name + '-' + variables.name"),
        ("broken", "object.spec.missing"),
        ("unknown", "frobnicate()"),
    ];
    let mut activation = activation(&composed, 10_000_000);
    let mut ask = |text: &str| activation.evaluate(&Expression::compile(text, &VARIABLES).unwrap()).unwrap();
    assert_eq!(ask("variables.long"), Ok(EvaluationResult::Text("web-web".into())));
    assert_eq!(ask("true || variables.broken == 1"), Ok(EvaluationResult::Bool(true)));
    let broken = ask("variables.broken == 1").unwrap_err();
    assert!(
        broken.ends_with("composited variable \"broken\" fails to evaluate: no such key: missing"),
        "{broken}"
    );
    assert!(
        ask("variables.unknown == 1")
            .unwrap_err()
            .contains("composited variable \"unknown\" fails to compile")
    );
}
