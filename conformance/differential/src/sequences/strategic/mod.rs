//! Strategic merge patches: each directive, in place and out of place, and what follows a patch.

mod generated;
mod lists;
mod refusals;
mod writes;

use serde_json::{Value, json};

use super::budget_with;
use crate::area::Area::StrategicMergePatch;
use crate::sequence::{Sequence, object};
use crate::target::{ACCOUNT, BUDGET, CONFIG_MAP, LEASE};

pub(super) fn all(seed: u64) -> Vec<Sequence> {
    let areas = [
        maps(),
        lists::lists(),
        lists::orders(),
        lists::scalars(),
        refusals::refusals(),
        refusals::misfits(),
        refusals::validation(),
        writes::writes(),
        writes::status(),
        generated::all(seed),
    ];
    areas.into_iter().flatten().collect()
}

/// A budget with labels, a selector and metadata's lists.
fn on_budget(name: &str) -> Sequence {
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid});
    let metadata = json!({"labels": {"a": "1", "b": "2"}, "annotations": {"note": "x"},
        "finalizers": ["x.io/a", "x.io/b", "x.io/c"], "ownerReferences": [owner("u1"), owner("u2"), owner("u3")]});
    let expression = json!({"key": "k", "operator": "In", "values": ["v"]});
    let selector = json!({"matchLabels": {"tier": "web"}, "matchExpressions": [expression]});
    Sequence::new(StrategicMergePatch, BUDGET, name)
        .post(budget_with("x", json!({"metadata": metadata, "spec": {"selector": selector}})))
}

/// An account with three secrets.
fn on_account(name: &str) -> Sequence {
    let lists = json!({"secrets": [{"name": "s1"}, {"name": "s2"}, {"name": "s3"}],
        "imagePullSecrets": [{"name": "p1"}, {"name": "p2"}], "metadata": {"finalizers": ["x.io/a", "x.io/b"]}});
    Sequence::new(StrategicMergePatch, ACCOUNT, name).post(object("x", lists))
}

/// One patch of the metadata of a budget.
fn metadata(name: &str, patch: Value) -> Sequence {
    on_budget(name).strategic_patch("x", json!({"metadata": patch}))
}

/// One patch of an account.
fn account(name: &str, patch: Value) -> Sequence {
    on_account(name).strategic_patch("x", patch)
}

fn maps() -> Vec<Sequence> {
    vec![
        metadata(
            "a strategic patch sets, changes and removes labels",
            json!({"labels": {"a": null, "b": "3", "c": "4"}}),
        ),
        metadata("labels are replaced by directive", json!({"labels": {"$patch": "replace", "c": "3"}})),
        metadata("labels are emptied by directive", json!({"labels": {"$patch": "delete"}})),
        metadata("labels are removed by null", json!({"labels": null})),
        metadata(
            "only retained keys of metadata stay",
            json!({"$retainKeys": ["name", "uid", "resourceVersion", "labels"], "labels": {"c": "3"}}),
        ),
        on_budget("a struct that is replaced as a whole")
            .strategic_patch("x", json!({"spec": {"selector": {"matchLabels": {"app": null, "new": "n"}}}})),
        on_budget("a struct is replaced by directive").strategic_patch(
            "x",
            json!({"spec": {"selector": {"$patch": "replace", "matchLabels": {"new": "n"}}}}),
        ),
        on_budget("a struct is emptied by directive")
            .strategic_patch("x", json!({"spec": {"$patch": "delete"}})),
        on_budget("a struct keeps the keys that are retained").strategic_patch(
            "x",
            json!({"spec": {"$retainKeys": ["maxUnavailable", "selector"], "maxUnavailable": 1}}),
        ),
        on_budget("a number becomes a text").strategic_patch("x", json!({"spec": {"minAvailable": "30%"}})),
        Sequence::new(StrategicMergePatch, CONFIG_MAP, "maps of texts and bytes merge")
            .post(object("x", json!({"data": {"a": "1", "b": "2"}, "binaryData": {"c": "AAEC"}})))
            .strategic_patch("x", json!({"data": {"a": null, "d": "4"}, "binaryData": {"e": "/w=="}}))
            .strategic_patch("x", json!({"data": {"$patch": "replace", "z": "26"}, "binaryData": null})),
        Sequence::new(StrategicMergePatch, LEASE, "pointers and times are set and unset")
            .post(object("x", json!({"spec": {"holderIdentity": "h", "leaseDurationSeconds": 5}})))
            .strategic_patch(
                "x",
                json!({"spec": {"holderIdentity": null, "renewTime": "2026-01-02T03:04:05.000006Z"}}),
            )
            .strategic_patch("x", json!({"spec": {"leaseDurationSeconds": 7.0}})),
    ]
}
