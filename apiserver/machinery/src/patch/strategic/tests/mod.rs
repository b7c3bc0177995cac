//! Every directive and every error, and generated pairs of object and patch with apimachinery's results.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod property;
mod schema;

use serde_json::{Map, Value, json};

use self::schema::thing;
use super::strategic_merge_patch;

/// Returns the result, or the code and message of the error.
fn merged(doc: &Value, patch: &Value) -> Result<Value, (u16, String)> {
    let (mut doc, mut patch) = (map(doc), map(patch));
    let done = strategic_merge_patch(&mut doc, &mut patch, &thing());
    done.map(|()| doc.into()).map_err(|e| (e.status.code, e.status.message))
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[track_caller]
fn metadata(doc: Value, patch: Value, want: Value) {
    assert_eq!(merged(&json!({"metadata": doc}), &json!({"metadata": patch})), Ok(json!({"metadata": want})));
}

#[track_caller]
fn spec(doc: Value, patch: Value, want: Value) {
    assert_eq!(merged(&json!({"spec": doc}), &json!({"spec": patch})), Ok(json!({"spec": want})));
}

#[track_caller]
fn refused(patch: Value, code: u16, message: &str) {
    let doc = json!({"metadata": {"finalizers": ["a", "b"], "owners": [{"uid": "u"}], "labels": {"a": "1"}},
        "spec": {"parts": [{"name": "p"}], "size": 1}});
    assert_eq!(merged(&doc, &patch), Err((code, message.to_owned())));
}

#[test]
fn structs_merge_and_null_removes() {
    spec(
        json!({"size": 1, "labels": {"a": "1", "b": "2"}}),
        json!({"size": null, "words": ["x"], "labels": {"b": null, "c": "3", "d": null}}),
        json!({"words": ["x"], "labels": {"a": "1", "c": "3"}}),
    );
}

#[test]
fn what_is_new_has_neither_nulls_nor_directives_in_maps_but_keeps_them_in_items_of_merged_lists() {
    spec(
        json!({}),
        json!({"labels": {"a": null, "b": "1"}, "parts": [{"name": "p", "count": null}, {"$patch": "delete", "name": "q"}]}),
        json!({"labels": {"b": "1"}, "parts": [{"name": "p"}]}),
    );
    spec(json!({}), json!({"labels": {"$patch": "replace", "a": "1"}}), json!({}));
    spec(
        json!({"parts": [{"name": "p"}]}),
        json!({"parts": [{"name": "q", "count": null}]}),
        json!({"parts": [{"name": "q", "count": null}, {"name": "p"}]}),
    );
}

#[test]
fn patch_directives_of_a_map_replace_or_empty_it() {
    let labels = json!({"a": "1", "b": "2"});
    metadata(
        json!({"labels": labels}),
        json!({"labels": {"$patch": "replace", "c": "3"}}),
        json!({"labels": {"c": "3"}}),
    );
    metadata(
        json!({"labels": labels}),
        json!({"labels": {"$patch": "delete", "c": "3"}}),
        json!({"labels": {}}),
    );
    assert_eq!(merged(&json!({"spec": {"size": 1}}), &json!({"$patch": "delete"})), Ok(json!({})));
}

#[test]
fn a_struct_may_be_one_that_is_replaced() {
    let whole = json!({"whole": {"uid": "u", "name": "n"}});
    spec(whole.clone(), json!({"whole": {"name": "m"}}), json!({"whole": {"name": "m"}}));
    // Directives in it are not applied.
    let replace = json!({"whole": {"$patch": "replace", "uid": null}});
    spec(whole, replace.clone(), replace);
}

#[test]
fn lists_merge_by_their_key_are_added_to_or_replaced() {
    spec(
        json!({"parts": [{"name": "p", "count": 1, "opts": ["x"]}, {"name": "q"}], "words": ["a"], "atoms": [{"uid": "u"}]}),
        json!({"parts": [{"name": "q", "count": 2}, {"name": "r"}, {"name": "p", "opts": ["y"]}], "words": ["b"], "atoms": []}),
        json!({"parts": [{"name": "q", "count": 2}, {"name": "r"}, {"name": "p", "count": 1, "opts": ["y"]}],
            "words": ["b"], "atoms": []}),
    );
    metadata(
        json!({"finalizers": ["a", "b"]}),
        json!({"finalizers": ["c", "b", "c"]}),
        json!({"finalizers": ["c", "a", "b"]}),
    );
}

#[test]
fn items_are_deleted_by_their_key_and_a_list_is_replaced_by_any_item_that_says_so() {
    let owners = json!({"owners": [{"uid": "u"}, {"uid": "v"}, {"uid": "w"}]});
    metadata(
        owners.clone(),
        json!({"owners": [{"uid": "v", "$patch": "delete"}, {"uid": "x", "$patch": "delete"}]}),
        json!({"owners": [{"uid": "u"}, {"uid": "w"}]}),
    );
    metadata(
        owners,
        json!({"owners": [{"uid": "x"}, {"$patch": "replace"}, {"uid": "u", "$patch": "delete"}]}),
        json!({"owners": [{"uid": "x"}]}),
    );
}

#[test]
fn scalars_are_deleted_from_lists_of_either_strategy() {
    metadata(
        json!({"finalizers": ["a", "b", "c"]}),
        json!({"$deleteFromPrimitiveList/finalizers": ["a", "c", "x"], "finalizers": ["d"]}),
        json!({"finalizers": ["d", "b"]}),
    );
    spec(
        json!({"words": ["a", "b"]}),
        json!({"$deleteFromPrimitiveList/words": ["a"]}),
        json!({"words": ["b"]}),
    );
    metadata(json!({}), json!({"$deleteFromPrimitiveList/finalizers": ["a"]}), json!({}));
    metadata(json!({"finalizers": ["a"]}), json!({"$deleteFromPrimitiveList/finalizers": null}), json!({}));
}

#[test]
fn the_order_of_a_list_is_that_of_the_directive_and_then_the_live_one() {
    metadata(
        json!({"finalizers": ["a", "b", "c", "d"]}),
        json!({"$setElementOrder/finalizers": ["e", "d", "b"], "finalizers": ["e"]}),
        json!({"finalizers": ["e", "a", "c", "d", "b"]}),
    );
    metadata(
        json!({"owners": [{"uid": "a"}, {"uid": "b"}, {"uid": "c"}]}),
        json!({"$setElementOrder/owners": [{"uid": "c"}, {"uid": "a"}]}),
        json!({"owners": [{"uid": "b"}, {"uid": "c"}, {"uid": "a"}]}),
    );
    // A new item that replaces a deleted one is after those that stay.
    metadata(
        json!({"owners": [{"uid": "a"}, {"uid": "b"}, {"uid": "c"}]}),
        json!({"$setElementOrder/owners": [{"uid": "n"}], "owners": [{"uid": "n"}, {"uid": "c", "$patch": "delete"}]}),
        json!({"owners": [{"uid": "a"}, {"uid": "b"}, {"uid": "n"}]}),
    );
}

#[test]
fn retained_keys_are_all_that_stays() {
    spec(
        json!({"size": 1, "words": ["a"], "labels": {"a": "1"}}),
        json!({"$retainKeys": ["words", "size"], "size": 2, "labels": null}),
        json!({"size": 2, "words": ["a"]}),
    );
}

#[test]
fn directives_of_the_wrong_form_are_bad_requests() {
    refused(json!({"spec": {"$retainKeys": "size"}}), 400, "invalid patch format of retainKeys");
    refused(
        json!({"spec": {"$retainKeys": ["words"], "size": 2}}),
        400,
        "invalid patch format of retainKeys",
    );
    let order = "invalid patch format of setElementOrder list";
    refused(json!({"metadata": {"$setElementOrderfinalizers": []}}), 400, order);
    let deletion = "invalid patch format of primitive list";
    refused(json!({"metadata": {"$deleteFromPrimitiveListfinalizers": []}}), 400, deletion);
}

/// For each of these kube-apiserver panics and closes the connection.
#[test]
fn what_cannot_be_compared_is_a_bad_request() {
    let told = "lists are merged by text, numbers and booleans: a list or a map cannot stand for a key";
    for patch in [
        json!({"metadata": {"$setElementOrder/finalizers": [{}]}}),
        json!({"metadata": {"$retainKeys": [[]]}}),
        json!({"metadata": {"owners": [{"uid": {}}, {"uid": {}}]}}),
    ] {
        refused(patch, 400, told);
    }
    let nulls = "list element types are not identical: [[<nil>]]";
    assert_eq!(
        merged(&json!({"metadata": {"finalizers": []}}), &json!({"metadata": {"finalizers": [null]}})),
        Err((500, nulls.replace("[[", "[[] [")))
    );
}

#[test]
fn what_does_not_fit_the_schema_is_told_as_kubernetes_tells_it() {
    let cases = [
        (json!({"$patch": "merge"}), "unknown patch type: merge in map: map[$patch:merge]"),
        (json!({"spec": {"$patch": 5}}), "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
        (
            json!({"spec": {"$setElementOrder/odd": []}}),
            "unable to find api field in struct Spec for the json field \"odd\"",
        ),
        (json!({"spec": {"$setElementOrder/size": []}}), "expected a []interface {}, but received a int64"),
        (
            json!({"spec": {"$setElementOrder/parts": {}}}),
            "expected a []interface {}, but received a map[string]interface {}",
        ),
        (
            json!({"spec": {"parts": [{"count": 1}]}}),
            "map: map[count:1] does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"parts": [{"name": "p", "$patch": "merge"}]}}),
            "merging lists cannot yet be specified in the patch",
        ),
        (json!({"metadata": {"finalizers": [1]}}), "list element types are not identical: [[a b] [1]]"),
        (
            json!({"metadata": {"finalizers": ["b", "c"], "$setElementOrder/finalizers": ["c", "b"]}}),
            "The order in patch list:\n[b c]\n doesn't match $setElementOrder list:\n[c b]\n",
        ),
    ];
    for (patch, message) in cases {
        refused(patch, 500, message);
    }
}

#[test]
fn lists_of_lists_are_unprocessable() {
    let doc = json!({"metadata": {"finalizers": []}});
    let refused = merged(&doc, &json!({"metadata": {"finalizers": [["a"]]}}));
    assert_eq!(
        refused,
        Err((422, "the server rejected our request due to an error in our request".to_owned()))
    );
}

#[test]
fn a_hundred_thousand_items_are_looked_up_and_not_compared_with_each_other() {
    let items = |n: usize| (0..n).map(|i| json!({"uid": i.to_string()})).collect::<Vec<_>>();
    let order: Vec<_> = (0..100_000).rev().map(|i| i.to_string()).collect();
    let doc = json!({"metadata": {"owners": items(100_000), "finalizers": order}});
    let patch = json!({"metadata": {"owners": items(100_000), "$setElementOrder/owners": items(100_000),
        "finalizers": order, "$deleteFromPrimitiveList/finalizers": order}});
    let merged = merged(&doc, &patch).unwrap();
    assert_eq!(merged["metadata"]["owners"].as_array().unwrap().len(), 100_000);
}

/// Generated pairs, with the results of StrategicMergeMapPatch of apimachinery v0.36.3 wherever they were the same in
/// sixty runs. The generator produces every directive, in valid and invalid places.
#[test]
fn generated_pairs_come_out_as_in_kubernetes() {
    let vectors: Vec<[Value; 3]> = serde_json::from_str(include_str!("vectors.json")).unwrap();
    assert!(vectors.len() >= 100);
    for [doc, patch, want] in vectors {
        let got = merged(&doc, &patch).map_err(|(_, message)| Value::from(message));
        assert_eq!(got.unwrap_or_else(|refused| refused), want, "{doc} {patch}");
    }
}
