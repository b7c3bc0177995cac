//! Lists by key, sets, atomic values and maps under apply.

use serde_json::{Value, json};

use super::{of, on_account, secrets};
use crate::area::Area::Apply;
use crate::sequence::Sequence;
use crate::sequences::budget;
use crate::target::CONFIG_MAP;

pub(super) fn all() -> Vec<Sequence> {
    let mut all = by_key();
    all.extend(sets());
    all.extend(maps());
    all.extend(conditions());
    all
}

fn by_key() -> Vec<Sequence> {
    vec![
        on_account("items are merged by key").apply("x", "one", secrets(&["b", "a"])).apply(
            "x",
            "two",
            secrets(&["c", "a"]),
        ),
        on_account("the order of the applier wins")
            .apply("x", "one", secrets(&["a", "b", "c"]))
            .apply("x", "one", secrets(&["c", "a", "b"]))
            .apply("x", "two", secrets(&["b", "d", "c"])),
        on_account("an item that is left out is removed").apply("x", "one", secrets(&["a", "b"])).apply(
            "x",
            "one",
            secrets(&["b"]),
        ),
        on_account("a shared item stays")
            .apply("x", "one", secrets(&["a", "b"]))
            .apply("x", "two", secrets(&["a"]))
            .apply("x", "one", secrets(&["b"])),
        on_account("the last item is removed").apply("x", "one", secrets(&["a"])).apply(
            "x",
            "one",
            json!({}),
        ),
        on_account("an empty list is applied").apply("x", "one", json!({"secrets": []})).apply(
            "x",
            "one",
            secrets(&["a"]),
        ),
        on_account("a key twice is refused").apply("x", "one", secrets(&["a", "a"])),
        on_account("an item without its key is refused").apply(
            "x",
            "one",
            json!({"secrets": [{"kind": "Secret"}]}),
        ),
        on_account("an item of null is refused").apply("x", "one", json!({"secrets": [null]})),
        on_account("an item of text is refused").apply("x", "one", json!({"secrets": ["a"]})),
        on_account("an update among applied items")
            .apply("x", "one", secrets(&["a", "b"]))
            .merge_patch("x", secrets(&["b", "c"]))
            .apply("x", "one", secrets(&["a", "b"])),
        on_account("an atomic list is replaced")
            .apply("x", "one", json!({"imagePullSecrets": [{"name": "a"}]}))
            .apply("x", "two", json!({"imagePullSecrets": [{"name": "b"}]}))
            .apply_by_force("x", "two", json!({"imagePullSecrets": [{"name": "b"}, {"name": "b"}]})),
        on_account("a boolean changes hands")
            .apply("x", "one", json!({"automountServiceAccountToken": false}))
            .apply("x", "two", json!({"automountServiceAccountToken": true})),
    ]
}

fn sets() -> Vec<Sequence> {
    let finalizers = |all: &[&str]| json!({"metadata": {"finalizers": all}});
    let owner = |uid: &str, controller: bool| json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": controller}]}});
    vec![
        of("finalizers are a set")
            .apply("x", "one", finalizers(&["a.b/c", "a.b/d"]))
            .apply("x", "two", finalizers(&["a.b/d", "a.b/e"]))
            .apply("x", "one", finalizers(&["a.b/d"])),
        of("a finalizer twice is refused").apply("x", "one", finalizers(&["a.b/c", "a.b/c"])),
        of("owners are merged by UID").apply("x", "one", owner("u", false)).apply(
            "x",
            "two",
            owner("v", false),
        ),
        of("an owner is one value").apply("x", "one", owner("u", false)).apply("x", "two", owner("u", true)),
    ]
}

fn maps() -> Vec<Sequence> {
    let of_map = |name: &str| Sequence::new(Apply, CONFIG_MAP, name);
    let data = |data: Value| json!({"data": data});
    vec![
        of_map("keys of a map are owned one by one")
            .apply("x", "one", data(json!({"a": "1", "b": "1"})))
            .apply("x", "two", data(json!({"b": "2"})))
            .apply("x", "two", data(json!({"c": "1"})))
            .apply("x", "one", data(json!({"a": "1"}))),
        of_map("an empty map is applied")
            .apply("x", "one", data(json!({})))
            .apply("x", "one", data(json!({"a": "1"})))
            .apply("x", "one", data(json!({}))),
        of_map("bytes are applied").apply("x", "one", json!({"binaryData": {"a": "AAEC"}})).apply(
            "x",
            "one",
            json!({"binaryData": {"a": "AAED"}}),
        ),
        of_map("keys with dots and quotes").apply("x", "one", data(json!({"a.b": "1", "_c-d": "2"}))),
        of_map("a value of null").apply("x", "one", data(json!({"a": null, "b": "1"}))),
    ]
}

fn conditions() -> Vec<Sequence> {
    let status = |all: &[(&str, &str)]| {
        let one = |(type_, status): &(&str, &str)| json!({"type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"});
        json!({"status": {"conditions": all.iter().map(one).collect::<Vec<_>>()}})
    };
    vec![
        of("conditions of two managers")
            .post(budget("x"))
            .apply("x/status", "one", status(&[("A", "True")]))
            .apply("x/status", "two", status(&[("B", "True")]))
            .apply("x/status", "one", status(&[("A", "False")]))
            .apply("x/status", "two", json!({"status": {}})),
        of("a condition of another")
            .post(budget("x"))
            .apply("x/status", "one", status(&[("A", "True")]))
            .apply("x/status", "two", status(&[("A", "False")])),
        of("a condition twice").post(budget("x")).apply(
            "x/status",
            "one",
            status(&[("A", "True"), ("A", "False")]),
        ),
    ]
}
