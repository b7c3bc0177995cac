//! JSON patches and merge patches according to their RFCs, and errors that change nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use serde_json::{Value, json};

use super::{WebhookPatch, json_patch, merge_patch};

fn patched(doc: &Value, ops: Value) -> Result<Value, u16> {
    json_patch(doc, ops.to_string().as_bytes()).map_err(|e| e.status.code)
}

#[test]
fn every_operation_does_what_the_rfc_says() {
    let doc = json!({"a": {"b": [1, 2]}, "c/d": "x"});
    let ops = json!([
        {"op": "add", "path": "/a/b/1", "value": 9}, {"op": "add", "path": "/a/b/-", "value": 3},
        {"op": "remove", "path": "/a/b/0"}, {"op": "replace", "path": "/c~1d", "value": null},
        {"op": "copy", "from": "/a", "path": "/e"}, {"op": "move", "from": "/a/b", "path": "/f"},
        {"op": "test", "path": "/f", "value": [9, 2, 3]}, {"op": "test", "path": "/nothing", "value": null}
    ]);
    assert_eq!(
        patched(&doc, ops).unwrap(),
        json!({"a": {}, "c/d": null, "e": {"b": [9, 2, 3]}, "f": [9, 2, 3]})
    );
}

#[test]
fn negative_indices_count_from_the_end() {
    let ops = json!([{"op": "remove", "path": "/-1"}, {"op": "add", "path": "/-1", "value": 7}]);
    assert_eq!(patched(&json!([1, 2, 3]), ops).unwrap(), json!([1, 2, 7]));
}

#[test]
fn a_text_that_is_no_patch_is_a_bad_request() {
    for text in ["", "{", "{}", "[1]", r#"[{"op":1,"path":"/a"}]"#] {
        assert_eq!(json_patch(&json!({}), text.as_bytes()).unwrap_err().status.code, 400, "{text}");
    }
}

/// evanphx/json-patch 4, as in kube-apiserver: an absent member of an object is null.
#[test]
fn what_is_absent_is_null() {
    let doc = json!({"a": 1});
    assert_eq!(
        patched(&doc, json!([{"op": "replace", "path": "/b", "value": 1}])),
        Ok(json!({"a": 1, "b": 1}))
    );
    assert_eq!(
        patched(&doc, json!([{"op": "copy", "from": "/c", "path": "/b"}])),
        Ok(json!({"a": 1, "b": null}))
    );
    assert_eq!(patched(&doc, json!([{"op": "add", "path": "/a"}])), Ok(json!({"a": null})));
    assert_eq!(patched(&doc, json!([{"op": "test", "path": "/b/c", "value": null}])), Err(422));
}

#[test]
fn a_failed_operation_is_unprocessable() {
    let doc = json!({"a": [1], "s": "x"});
    for op in [
        json!({"op": "test", "path": "/a/0", "value": 2}),
        json!({"op": "remove", "path": "/b"}),
        json!({"op": "remove", "path": ""}),
        json!({"op": "add", "path": "/b/c", "value": 1}),
        json!({"op": "add", "path": "/a/5", "value": 1}),
        json!({"op": "add", "path": "/a/-9223372036854775808", "value": 1}),
        json!({"op": "add", "path": "/s/x", "value": 1}),
        json!({"op": "add", "path": "a", "value": 1}),
        json!({"op": "move", "from": "/a", "path": "/a/b"}),
        json!({"op": "copy", "path": "/a/b"}),
        json!({"op": "copy", "from": "", "path": "/b"}),
        json!({"op": "jump", "path": "/a"}),
        json!({"op": "add", "value": 1}),
        json!({}),
    ] {
        assert_eq!(patched(&doc, json!([op])), Err(422), "{op}");
    }
    let e = json_patch(&doc, br#"[{"op":"remove","path":"/b"}]"#).unwrap_err().status;
    assert_eq!(e.message, "the server rejected our request due to an error in our request");
    assert_eq!(e.reason, "Invalid");
}

#[test]
fn more_than_ten_thousand_operations_are_too_large() {
    let op = json!({"op": "test", "path": "/x", "value": null});
    assert!(patched(&json!({}), Value::from(vec![op.clone(); 10_000])).is_ok());
    let e = json_patch(&json!({}), Value::from(vec![op; 10_001]).to_string().as_bytes()).unwrap_err().status;
    assert_eq!((e.code, e.reason.as_str()), (413, "RequestEntityTooLarge"));
    let limit = "The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(e.message, format!("Request entity too large: {limit}"));
}

/// The messages of gopkg.in/evanphx/json-patch.v4, patch.go.
#[test]
fn a_webhook_is_told_why_its_patch_does_not_apply() {
    let doc = json!({"a": [1], "s": "x"});
    for (op, why) in [
        (
            json!({"op": "replace", "path": "/spec/x", "value": 1}),
            "replace operation does not apply: doc is missing path: /spec/x: missing value",
        ),
        (
            json!({"op": "replace", "path": "/a/7", "value": 1}),
            "replace operation does not apply: doc is missing key: /a/7: missing value",
        ),
        (
            json!({"op": "add", "path": "/b/c", "value": 1}),
            "add operation does not apply: doc is missing path: \"/b/c\": missing value",
        ),
        (
            json!({"op": "add", "path": "/a/x", "value": 1}),
            "error in add for path: '/a/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            json!({"op": "add", "path": "/a/5", "value": 1}),
            "error in add for path: '/a/5': Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            json!({"op": "remove", "path": "/b"}),
            "error in remove for path: '/b': Unable to remove nonexistent key: b: missing value",
        ),
        (
            json!({"op": "move", "from": "/b", "path": "/c"}),
            "error in move for path: 'b': Unable to remove nonexistent key: b: missing value",
        ),
        (
            json!({"op": "copy", "from": "/b/c", "path": "/c"}),
            "copy operation does not apply: doc is missing from path: /b/c: missing value",
        ),
        (json!({"op": "test", "path": "/s", "value": "y"}), "testing value /s failed: test failed"),
        (json!({"op": "add"}), "add operation failed to decode path: missing value"),
        (json!({"op": "jump"}), "Unexpected kind: jump"),
        (Value::Null, "Unexpected kind: unknown"),
    ] {
        let patch = WebhookPatch::decode(json!([op]).to_string().as_bytes()).unwrap();
        assert_eq!(patch.apply(&doc).unwrap_err(), why);
    }
    let wrong = |text: &str| WebhookPatch::decode(text.as_bytes()).err().unwrap();
    assert_eq!(wrong("[1]"), "json: cannot unmarshal number into Go value of type jsonpatch.Operation");
    assert_eq!(wrong("{}"), "json: cannot unmarshal object into Go value of type jsonpatch.Patch");
    assert!(WebhookPatch::decode(b"null").unwrap().is_empty());
}

#[test]
fn a_webhooks_patch_may_be_of_any_length() {
    let op = json!({"op": "replace", "path": "/x", "value": 1});
    let patch = WebhookPatch::decode(Value::from(vec![op; 10_001]).to_string().as_bytes()).unwrap();
    assert_eq!(patch.apply(&json!({})), Ok(json!({"x": 1})));
}

#[test]
fn copies_that_double_a_document_are_refused() {
    let doc = json!({"a": ["0123456789"]});
    let ops: Vec<Value> = (0..60).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"})).collect();
    assert_eq!(patched(&doc, Value::from(ops)), Err(422));
}

#[test]
fn moves_do_not_nest_beyond_what_decodes() {
    let round = [
        json!({"op": "add", "path": "/b", "value": {}}),
        json!({"op": "move", "from": "/a", "path": "/b/a"}),
        json!({"op": "move", "from": "/b", "path": "/a"}),
    ];
    let ops: Vec<Value> = round.iter().cycle().take(9000).cloned().collect();
    assert_eq!(patched(&json!({"a": {}}), Value::from(ops)), Err(422));
}

#[test]
fn inserting_at_the_head_of_a_long_list_again_and_again_is_bounded() {
    let doc = json!({"a": vec![0; 300_000]});
    let ops: Vec<Value> = (0..10_000).map(|_| json!({"op": "add", "path": "/a/0", "value": 1})).collect();
    assert_eq!(patched(&doc, Value::from(ops)), Err(422));
}

#[test]
fn a_merge_patch_merges_objects_and_null_removes() {
    let doc = json!({"a": {"b": 1, "c": 2}, "l": [1], "d": 1});
    let patch = json!({"a": {"b": null, "x": {"y": null, "z": 1}}, "l": [2], "d": {"e": 1}});
    let want = json!({"a": {"c": 2, "x": {"z": 1}}, "l": [2], "d": {"e": 1}});
    assert_eq!(merge_patch(&doc, patch.to_string().as_bytes()).unwrap(), want);
}

#[test]
fn a_merge_patch_must_be_an_object() {
    for text in ["", "[]", "1", "{", "{\"a\":}", &"{\"a\":".repeat(100_000)] {
        assert_eq!(merge_patch(&json!({}), text.as_bytes()).unwrap_err().status.code, 400);
    }
}
