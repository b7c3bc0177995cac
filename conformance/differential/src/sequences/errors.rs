//! Refusals that belong to no verb.

use http::Method;
use serde_json::{Value, json};

use super::{budget, budget_with, map};
use crate::area::Area::Errors;
use crate::request::SequenceRequest;
use crate::sequence::Sequence;
use crate::target::{BUDGET, CONFIG_MAP};

pub(super) fn all() -> Vec<Sequence> {
    let mut all = paths();
    all.extend(outside());
    all.extend(methods());
    all.extend(options());
    all.extend(sizes());
    all
}

fn of(name: &str) -> Sequence {
    Sequence::new(Errors, BUDGET, name)
}

fn paths() -> Vec<Sequence> {
    let path = |name: &str, path: &str| of(name).post(budget("x")).ask(SequenceRequest::get(path));
    vec![
        path("a subresource that there is not", "$(collection)/x/scale"),
        path("a path below a subresource", "$(collection)/x/status/y"),
        path("a resource that there is not", "$(root)/nothing"),
        path("a resource that there is not in a namespace", "$(root)/namespaces/$(namespace)/nothing"),
        path("an object without its namespace", "$(root)/$(plural)/x"),
        path("a name with an encoded slash", "$(collection)/a%2Fb"),
        path("a name with an encoded percent sign", "$(collection)/a%25b"),
        path("a name of dots", "$(collection)/.."),
        path("a collection with a slash at the end", "$(collection)/"),
        path("an object with a slash at the end", "$(collection)/x/"),
        path("a proxy", "$(root)/proxy/namespaces/$(namespace)/$(plural)/x"),
    ]
}

/// Paths of no group that is served.
fn outside() -> Vec<Sequence> {
    let path = |path: &str| of(&format!("the path {path}")).ask(SequenceRequest::get(path));
    let mut all: Vec<Sequence> = [
        "/apis/nothing.example",
        "/apis/nothing.example/v1",
        "/apis/nothing.example/v1/namespaces/$(namespace)/things/x",
        "/nowhere",
        "/openapi",
        "/openapi/v2/",
        "/openapi/v3/",
        "/openapi/v3/apis/nothing.example/v1",
        "/version/x",
    ]
    .map(path)
    .into();
    all.push(
        of("a creation in a group that there is not")
            .ask(SequenceRequest::new(Method::POST, "/apis/nothing.example/v1/things").object(budget("x"))),
    );
    all
}

fn methods() -> Vec<Sequence> {
    let method = |method: Method, path: &str| {
        of(&format!("{method} {path}"))
            .post(budget("x"))
            .ask(SequenceRequest::new(method, path).object(budget("x")))
    };
    let mut all = vec![
        method(Method::PUT, "$(collection)"),
        method(Method::PATCH, "$(collection)"),
        method(Method::POST, "$(collection)/x"),
        method(Method::POST, "$(root)/$(plural)"),
        method(Method::DELETE, "$(root)/$(plural)"),
        method(Method::PUT, "$(root)/$(plural)"),
        method(Method::OPTIONS, "$(collection)"),
        method(Method::from_bytes(b"LIST").unwrap_or_default(), "$(collection)"),
        of("HEAD of an object").post(budget("x")).ask(SequenceRequest::new(Method::HEAD, "$(collection)/x")),
    ];
    for verb in [Method::PUT, Method::POST, Method::PATCH, Method::DELETE] {
        all.push(method(verb, "$(collection)/x/nothing"));
    }
    all
}

fn options() -> Vec<Sequence> {
    let get = |query: &str| of(&format!("an object with {query:?}")).post(budget("x")).get("x").query(query);
    let put = |query: &str| of(&format!("a write with {query:?}")).post(budget("x")).query(query);
    let mut all: Vec<Sequence> = [
        "timeout=5s",
        "timeout=x",
        "timeout=-1s",
        "timeout=0",
        "resourceVersion=abc",
        "odd=1",
        "pretty=maybe",
        "limit=x",
        "export=true",
    ]
    .map(get)
    .into();
    all.extend(
        ["timeout=5s", "timeout=x", "dryRun=All,All", "fieldManager=", "odd=1", "pretty=true"].map(put),
    );
    all
}

fn sizes() -> Vec<Sequence> {
    let body = |size: usize| map("x", json!({"a": "x".repeat(size)}));
    let of_map = |name: &str| Sequence::new(Errors, CONFIG_MAP, name);
    let operations =
        |count: usize| json!(vec![json!({"op": "test", "path": "/kind", "value": "$(kind)"}); count]);
    vec![
        of_map("a body of more than three megabytes").post(body(3 << 20)),
        of_map("a merge patch of more than three megabytes").post(body(1)).merge_patch("x", body(3 << 20)),
        of_map("an update of more than three megabytes").post(body(1)).put("x", body(3 << 20)),
        of("a JSON patch of too many operations").post(budget("x")).json_patch("x", operations(10_001)),
        of("a JSON patch of as many operations as may be")
            .post(budget("x"))
            .json_patch("x", operations(10_000)),
        of("a JSON patch that doubles what there is with each operation")
            .post(budget("x"))
            .json_patch("x", doubled())
            .get("x"),
        of("an apply whose aliases explode")
            .apply("x", "one", json!({}))
            .with(|r| r.body("application/apply-patch+yaml", explosive())),
        of("annotations of as much as may be")
            .post(budget_with("x", json!({"metadata": {"annotations": {"a": "x".repeat(262_143)}}}))),
    ]
}

/// Thirty doublings of a thousand characters.
fn doubled() -> Value {
    let annotations = json!({"op": "add", "path": "/metadata/annotations", "value": {"a": "x".repeat(1000)}});
    let copy = |number: usize| json!({"op": "copy", "from": "/metadata/annotations", "path": format!("/metadata/annotations/c{number}")});
    std::iter::once(annotations).chain((0..30).map(copy)).collect()
}

/// Ten times ten times ten and so on, in a few lines.
fn explosive() -> String {
    let mut yaml = "apiVersion: $(apiVersion)\nkind: $(kind)\nmetadata: {name: x}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        yaml.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    yaml
}
