//! Creation of requests: what a schema refuses, and what it does not.

use serde_json::{Value, json};

use super::{X, Y, asked_by, made, of, request};
use crate::area::Area::Create;
use crate::request::JSON;
use crate::sequence::Sequence;

pub(super) fn all() -> Vec<Sequence> {
    let mut all = made_new();
    all.extend(refused());
    all.extend(strictly());
    all
}

fn post(name: &str, rest: Value) -> Sequence {
    of(Create, name).post(request(X, rest))
}

fn made_new() -> Vec<Sequence> {
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
    let metadata = json!({"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["a.b/c"],
        "ownerReferences": [owner]});
    vec![
        post("is created", json!({})),
        post("is created with metadata", json!({"metadata": metadata})),
        post("is created dryly", json!({})).query("dryRun=All").get(X),
        post("is created without its status", json!({"status": {"observedGeneration": 1}})),
        of(Create, "is created in YAML").post(json!({})).with(|r| r.body("application/yaml", YAML)),
        made(Create, "is there already").post(request(X, json!({}))),
        made(Create, "is there already, beside another")
            .post(request(Y, json!({})))
            .post(request(X, json!({}))),
    ]
}

const YAML: &str = "apiVersion: $(apiVersion)
kind: $(kind)
metadata: {name: 00000000-0000-1000-8000-000000000001}
spec:
  target: {pod: {name: p, uid: 00000000-0000-1000-8000-000000000001}}
  requesters: [{name: a.example.com}]
";

fn refused() -> Vec<Sequence> {
    let without_uid = json!({"metadata": {"name": X},
        "spec": {"target": {"pod": {"name": "p"}}, "requesters": asked_by(&["a.example.com"])}});
    let without_name = json!({"metadata": {"name": X},
        "spec": {"target": {"pod": {"uid": X}}, "requesters": asked_by(&["a.example.com"])}});
    let without_target =
        json!({"metadata": {"name": X}, "spec": {"requesters": asked_by(&["a.example.com"])}});
    let text = |name: &str, body: &str| of(Create, name).post(json!({})).with(|r| r.body(JSON, body));
    vec![
        of(Create, "without the pod's UID").post(without_uid),
        of(Create, "without the pod's name").post(without_name),
        of(Create, "without a target").post(without_target),
        post("with a requester without a name", json!({"spec": {"requesters": [{}]}})),
        post("with a requester twice", json!({"spec": {"requesters": asked_by(&["a.io", "a.io"])}})),
        post("with a text for its spec", json!({"spec": "x"})),
        of(Create, "with a bad name").post(request("Bad_Name", json!({}))),
        of(Create, "without a name").post(json!({"spec": request(X, json!({}))["spec"]})),
        post("with bad labels", json!({"metadata": {"labels": {"c": "d e"}}})),
        post("with a number for a label", json!({"metadata": {"labels": {"a": 1}}})),
        post("with a bad finalizer", json!({"metadata": {"finalizers": ["a b"]}})),
        post("with an owner without a name", json!({"metadata": {"ownerReferences": [{"uid": "u"}]}})),
        post("in another namespace than the path's", json!({"metadata": {"namespace": "elsewhere"}})),
        post("of another kind", json!({"kind": "Other"})),
        post("of another version", json!({"apiVersion": "$(group)/v9"})),
        post("with a version", json!({"metadata": {"resourceVersion": "5"}})),
        post("in a namespace that is not there", json!({})).with(|mut r| {
            r.path = "$(root)/namespaces/nowhere-at-all/$(plural)".into();
            r
        }),
        post("with a bad dryRun", json!({})).query("dryRun=Some"),
        post("with a bad fieldValidation", json!({})).query("fieldValidation=Some"),
        text("of nothing", ""),
        text("of a list", "[]"),
        text("that breaks off", "{\"apiVersion\": \"$(apiVersion)\", \"kind\""),
        post("in what there is not", json!({})).header("content-type", "text/plain"),
    ]
}

fn strictly() -> Vec<Sequence> {
    let odd = || json!({"spec": {"odd": 1, "target": {"pod": {"odd": 2}}}, "odd": 3});
    let odd_item = json!({"spec": {"requesters": [{"name": "a.io", "odd": 1}]}});
    let twice = "{\"apiVersion\":\"$(apiVersion)\",\"kind\":\"$(kind)\",\"metadata\":{\"name\":\"x\",\"name\":\"x\"},\
        \"spec\":{\"target\":{},\"target\":{}}}";
    vec![
        post("with unknown fields under Strict", odd()).query("fieldValidation=Strict"),
        post("with unknown fields under Warn", odd()).query("fieldValidation=Warn"),
        post("with unknown fields under Ignore", odd()).query("fieldValidation=Ignore"),
        post("with unknown fields", odd()),
        post("with an unknown field of an item under Strict", odd_item).query("fieldValidation=Strict"),
        post("with an unknown field of its metadata under Strict", json!({"metadata": {"odd": 1}}))
            .query("fieldValidation=Strict"),
        of(Create, "with keys twice under Strict")
            .post(json!({}))
            .with(|r| r.body(JSON, twice))
            .query("fieldValidation=Strict"),
    ]
}
