//! Lists: merged, put in order, added to and taken from.

use serde_json::{Value, json};

use super::{account, metadata, on_budget};
use crate::area::Area::StrategicMergePatch;
use crate::sequence::{Sequence, object};
use crate::target::ACCOUNT;

pub(super) fn lists() -> Vec<Sequence> {
    let owner = |uid: &str, name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid});
    vec![
        account("items merge by their key", json!({"secrets": [{"name": "s4"}, {"name": "s2"}]})),
        account("an atomic list is replaced", json!({"imagePullSecrets": [{"name": "p3"}]})),
        account("an item is deleted by its key", json!({"secrets": [{"name": "s2", "$patch": "delete"}]})),
        account("an item that is not there is deleted", json!({"secrets": [{"name": "s9", "$patch": "delete"}]})),
        account("a list is replaced by an item that says so", json!({"secrets": [{"name": "s9"}, {"$patch": "replace"}]})),
        account("a list is emptied by an item that says so", json!({"secrets": [{"$patch": "replace"}]})),
        account("a list is removed by null", json!({"secrets": null, "imagePullSecrets": null})),
        account("a list is removed by null, with an empty order", json!({"secrets": null, "$setElementOrder/secrets": []})),
        account("null among items where lists merge", json!({"secrets": [null]})),
        account("null beside an item where lists merge", json!({"secrets": [{"name": "s1"}, null]})),
        account("null among items where lists are replaced", json!({"imagePullSecrets": [null]})),
        account("a key of null where lists merge", json!({"secrets": [{"name": null}]})),
        account("an empty list changes nothing where lists merge", json!({"secrets": [], "imagePullSecrets": []})),
        account("an item that stands twice is merged twice", json!({"secrets": [{"name": "s4"}, {"name": "s4"}]})),
        metadata("an owner is added and another changed", json!({"ownerReferences": [owner("u4", "n"), {"uid": "u1", "name": "other"}]})),
        metadata("an owner is deleted", json!({"ownerReferences": [{"uid": "u2", "$patch": "delete"}]})),
        on_budget("expressions of a selector are replaced").strategic_patch(
            "x",
            json!({"spec": {"selector": {"matchExpressions": [{"key": "n", "operator": "Exists"}]}}}),
        ),
        Sequence::new(StrategicMergePatch, ACCOUNT, "null where there is no list")
            .post(object("x", json!({})))
            .strategic_patch("x", json!({"secrets": null}))
            .strategic_patch("x", json!({"secrets": [null]}))
            .strategic_patch("x", json!({"secrets": null})),
        Sequence::new(StrategicMergePatch, ACCOUNT, "null for a list of an empty item and of a key that stands twice")
            .post(object("x", json!({"secrets": [{}]})))
            .strategic_patch("x", json!({"secrets": null}))
            .post(object("y", json!({"secrets": [{"name": "a"}, {"name": "a"}, null]})))
            .strategic_patch("y", json!({"secrets": null})),
        Sequence::new(StrategicMergePatch, ACCOUNT, "lists are added where there were none")
            .post(object("x", json!({})))
            .strategic_patch("x", json!({"secrets": [{"name": "s1"}, {"name": "s2", "$patch": "delete"}], "imagePullSecrets": [{"name": null}]})),
    ]
}

pub(super) fn orders() -> Vec<Sequence> {
    let named = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Value>();
    vec![
        account("items are put in order", json!({"$setElementOrder/secrets": named(&["s3", "s1"])})),
        account(
            "new items go where the order has them",
            json!({"$setElementOrder/secrets": named(&["s0", "s1", "s9", "s3"]), "secrets": named(&["s0", "s9"])}),
        ),
        account(
            "an item that comes for a deleted one stands at the end",
            json!({"$setElementOrder/secrets": named(&["s4"]), "secrets": [{"name": "s4"}, {"name": "s1", "$patch": "delete"}]}),
        ),
        account(
            "the order must have the items of the patch in theirs",
            json!({"$setElementOrder/secrets": named(&["s1", "s2"]), "secrets": named(&["s2", "s1"])}),
        ),
        account(
            "the order must have every item of the patch",
            json!({"$setElementOrder/secrets": named(&["s1"]), "secrets": named(&["s2"])}),
        ),
        account("an empty order leaves the list as it is", json!({"$setElementOrder/secrets": []})),
        account("an order of what is not there changes nothing", json!({"$setElementOrder/metadata": []})),
        metadata("finalizers are put in order", json!({"$setElementOrder/finalizers": ["x.io/c", "x.io/a"]})),
        metadata(
            "a finalizer goes where the order has it",
            json!({"$setElementOrder/finalizers": ["x.io/b", "x.io/d"], "finalizers": ["x.io/d"]}),
        ),
        metadata(
            "owners are put in order",
            json!({"$setElementOrder/ownerReferences": [{"uid": "u3"}, {"uid": "u1"}]}),
        ),
    ]
}

pub(super) fn scalars() -> Vec<Sequence> {
    vec![
        metadata("finalizers are added once", json!({"finalizers": ["x.io/d", "x.io/a", "x.io/d"]})),
        metadata(
            "finalizers are taken away",
            json!({"$deleteFromPrimitiveList/finalizers": ["x.io/a", "x.io/c", "x.io/z"]}),
        ),
        metadata(
            "all finalizers are taken away by null",
            json!({"$deleteFromPrimitiveList/finalizers": null}),
        ),
        on_budget("the last finalizer of what is deleted goes by a strategic patch")
            .delete("x")
            .strategic_patch(
                "x",
                json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a", "x.io/b"]}}),
            )
            .strategic_patch("x", json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/c"]}}))
            .get("x"),
        on_budget("what is deleted takes no new finalizer by a strategic patch")
            .delete("x")
            .strategic_patch("x", json!({"metadata": {"finalizers": ["x.io/new"]}})),
    ]
}
