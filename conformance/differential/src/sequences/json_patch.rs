//! JSON patches.

use serde_json::{Value, json};

use super::{budget_with, map};
use crate::area::Area::JsonPatch;
use crate::sequence::{Sequence, object};
use crate::target::{ACCOUNT, BUDGET, CONFIG_MAP};

const TYPE: &str = "application/json-patch+json";

pub(super) fn all() -> Vec<Sequence> {
    let mut all = operations();
    all.extend(metadata());
    all.extend(bodies());
    all.extend(lists());
    all
}

fn of(name: &str) -> Sequence {
    let labels = json!({"metadata": {"labels": {"a": "b", "c/d": "e"}}});
    Sequence::new(JsonPatch, BUDGET, name).post(budget_with("x", labels))
}

fn patched(name: &str, patch: Value) -> Sequence {
    of(name).json_patch("x", patch)
}

fn operations() -> Vec<Sequence> {
    let one = |op: &str, path: &str, value: Value| {
        let name = format!("{op} {path} {value}");
        patched(&name, json!([{"op": op, "path": path, "value": value}]))
    };
    vec![
        one("add", "/spec/maxUnavailable", json!(null)),
        one("add", "/metadata/labels/x~1y", json!("z")),
        one("add", "/metadata/annotations/x", json!("y")),
        one("add", "/metadata/annotations", json!({"x": "y"})),
        one("add", "/nothing/here", json!(1)),
        one("add", "", json!({})),
        one("replace", "/spec/minAvailable", json!("50%")),
        one("replace", "/spec/minAvailable", json!([])),
        one("replace", "/spec/nothing", json!(1)),
        one("replace", "/metadata/labels/a", json!("f g")),
        one("replace", "/spec", json!({})),
        one("remove", "/spec/minAvailable", json!(null)),
        one("remove", "/spec/nothing", json!(null)),
        one("remove", "/metadata/labels/c~1d", json!(null)),
        one("remove", "/metadata", json!(null)),
        one("test", "/spec/minAvailable", json!(1)),
        one("test", "/spec/minAvailable", json!(7)),
        one("test", "/spec/nothing", json!(null)),
        one("test", "/metadata/labels", json!({"c/d": "e", "a": "b"})),
        one("guess", "/spec", json!({})),
        patched(
            "copy of a label",
            json!([{"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/b"}]),
        ),
        patched(
            "copy of nothing",
            json!([{"op": "copy", "from": "/metadata/labels/n", "path": "/metadata/labels/b"}]),
        ),
        patched(
            "move of a label",
            json!([{"op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/b"}]),
        ),
        patched("move into itself", json!([{"op": "move", "from": "/spec", "path": "/spec/selector"}])),
        patched(
            "several operations, the last of which fails",
            json!([
            {"op": "replace", "path": "/spec/minAvailable", "value": 3},
            {"op": "test", "path": "/spec/minAvailable", "value": 4}]),
        ),
        patched(
            "operations that see one another",
            json!([
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": "/metadata/annotations/a", "value": "b"},
            {"op": "test", "path": "/metadata/annotations/a", "value": "b"}]),
        ),
    ]
}

fn metadata() -> Vec<Sequence> {
    let one = |name: &str, path: &str, value: Value| {
        patched(name, json!([{"op": "add", "path": path, "value": value}]))
    };
    vec![
        one("a patch of the name", "/metadata/name", json!("y")),
        one("a patch of the namespace", "/metadata/namespace", json!("y")),
        one("a patch of the UID", "/metadata/uid", json!("aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa")),
        one("a patch of the version that is not the present", "/metadata/resourceVersion", json!("1")),
        one(
            "a patch of the version that is the present",
            "/metadata/resourceVersion",
            json!("$(0.metadata.resourceVersion)"),
        ),
        one("a patch of the kind", "/kind", json!("Other")),
        one("a patch of the API version", "/apiVersion", json!("v9")),
        one("a patch of the creation", "/metadata/creationTimestamp", json!("2001-01-01T00:00:00Z")),
        one("a patch of the deletion", "/metadata/deletionTimestamp", json!("2001-01-01T00:00:00Z")),
        one("a patch of managed fields", "/metadata/managedFields", json!([])),
        one("a patch that resets managed fields", "/metadata/managedFields", json!([{}])),
        one("a patch of the status through the object", "/status/currentHealthy", json!(5)),
        one("a patch of an unknown field", "/spec/odd", json!(5)),
        one("a patch of an unknown field, strictly", "/spec/odd", json!(5)).query("fieldValidation=Strict"),
        one("a patch of an unknown field, ignored", "/spec/odd", json!(5)).query("fieldValidation=Ignore"),
        one("a patch of a finalizer", "/metadata/finalizers", json!(["a.b/c"])),
    ]
}

fn bodies() -> Vec<Sequence> {
    let body = |name: &str, text: &str| of(name).json_patch("x", json!([])).with(|r| r.body(TYPE, text));
    vec![
        body("a JSON patch of nothing", ""),
        body("a JSON patch of null", "null"),
        body("a JSON patch that is an object", "{}"),
        body("a JSON patch that is no JSON", "hello"),
        body("a JSON patch of no operations", "[]"),
        body("an operation of null", "[null]"),
        body("an operation without a path", r#"[{"op":"add","value":1}]"#),
        body("an operation without an op", r#"[{"path":"/spec","value":1}]"#),
        body("an add without a value", r#"[{"op":"add","path":"/spec/minAvailable"}]"#),
        body("a path without a slash", r#"[{"op":"add","path":"spec","value":1}]"#),
        body("a path that is a number", r#"[{"op":"add","path":5,"value":1}]"#),
        body("a JSON patch with a key twice", r#"[{"op":"add","op":"remove","path":"/spec/minAvailable"}]"#),
        Sequence::new(JsonPatch, BUDGET, "a JSON patch of what is not there").json_patch("x", json!([])),
        of("a JSON patch by force").json_patch("x", json!([])).query("force=true"),
        of("a JSON patch of the status")
            .json_patch("x/status", json!([{"op": "replace", "path": "/status/currentHealthy", "value": 5}])),
        of("a JSON patch of the spec through the status")
            .json_patch("x/status", json!([{"op": "replace", "path": "/spec/minAvailable", "value": 5}])),
        of("a dry run of a JSON patch")
            .json_patch("x", json!([{"op": "replace", "path": "/spec/minAvailable", "value": 5}]))
            .query("dryRun=All")
            .get("x"),
    ]
}

fn lists() -> Vec<Sequence> {
    let of_list = |name: &str, op: &str, path: &str| {
        Sequence::new(JsonPatch, ACCOUNT, name)
            .post(object("x", json!({"imagePullSecrets": [{"name": "a"}, {"name": "b"}]})))
            .json_patch("x", json!([{"op": op, "path": path, "value": {"name": "c"}}]))
    };
    vec![
        of_list("add at the end of a list", "add", "/imagePullSecrets/-"),
        of_list("add within a list", "add", "/imagePullSecrets/1"),
        of_list("add behind a list", "add", "/imagePullSecrets/3"),
        of_list("add before a list", "add", "/imagePullSecrets/-1"),
        of_list("add at no number", "add", "/imagePullSecrets/x"),
        of_list("remove from a list", "remove", "/imagePullSecrets/0"),
        of_list("remove behind a list", "remove", "/imagePullSecrets/2"),
        of_list("replace in a list", "replace", "/imagePullSecrets/0"),
        of_list("replace with a leading zero", "replace", "/imagePullSecrets/00"),
        Sequence::new(JsonPatch, CONFIG_MAP, "a JSON patch of a map")
            .post(map("x", json!({"a": "b"})))
            .json_patch(
                "x",
                json!([{"op": "remove", "path": "/data/a"}, {"op": "add", "path": "/data/c", "value": "d"}]),
            ),
    ]
}
