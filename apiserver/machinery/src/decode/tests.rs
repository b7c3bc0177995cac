//! Decoding: the values that are kept, those that are dropped and reported, and the errors for hostile input.

#![allow(clippy::unwrap_used)]
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::common::{list, meta_schema, object, optional, required_text, strings_map, text};
use crate::schema::{ListType, Shape};

const NAMES: Names = Names {
    group: "g.io",
    version: "v1",
    kind: "Thing",
    plural: "things",
    singular: "thing",
    short_names: &[],
    categories: &[],
    namespaced: true,
};

fn schema() -> Schema {
    let item = object("", "io.k8s.api.g.v1.Item", vec![required_text("name", 1, ""), text("note", 2, "")]);
    let spec = vec![
        text("a", 1, ""),
        optional("count", 2, Schema::new("", Shape::Int32)),
        optional("flag", 3, Schema::new("", Shape::Boolean)),
        optional("time", 4, Schema::new("", Shape::Time)),
        optional("micro", 5, Schema::new("", Shape::MicroTime)),
        optional("items", 6, list("", item, ListType::Map(&["name"]))),
        optional("map", 7, strings_map("")),
        optional("words", 8, list("", crate::schema::common::string(), ListType::Set)),
        optional("mode", 9, Schema { default: Some("\"auto\""), ..crate::schema::common::string() }),
    ];
    let fields = vec![
        text("apiVersion", 0, ""),
        text("kind", 0, ""),
        optional("metadata", 1, meta_schema()),
        optional("spec", 2, object("", "io.k8s.api.g.v1.ThingSpec", spec)),
    ];
    object("", "io.k8s.api.g.v1.Thing", fields)
}

fn json(body: &str) -> Result<Decoded, ApiError> {
    decode(body.as_bytes(), Format::Json, &NAMES, &schema())
}

fn yaml(body: &str) -> Result<Decoded, ApiError> {
    decode(body.as_bytes(), Format::Yaml, &NAMES, &schema())
}

/// Returns the decoded spec without the defaulted field.
fn spec(body: &str) -> Value {
    without_default(json(&format!(r#"{{"spec":{body}}}"#)).unwrap())
}

fn without_default(decoded: Decoded) -> Value {
    let mut spec = decoded.object.0["spec"].clone();
    assert_eq!(spec.as_object_mut().unwrap().remove("mode"), Some(json!("auto")));
    spec
}

fn refused(body: &str) -> String {
    let error = json(body).unwrap_err();
    assert_eq!(error.code(), 400);
    error.status.message
}

fn spec_refused(body: &str) -> String {
    let message = refused(&format!(r#"{{"spec":{body}}}"#));
    message.strip_prefix(r#"Thing in version "v1" cannot be handled as a Thing: "#).unwrap().to_owned()
}

#[test]
fn kind_and_version_are_filled_in() {
    let object = json("{}").unwrap().object;
    assert_eq!(object.into_value(), json!({"apiVersion": "g.io/v1", "kind": "Thing"}));
}

#[test]
fn another_kind_or_version_is_refused() {
    assert_eq!(
        refused(r#"{"kind":"Other"}"#),
        r#"Other in version "v1" cannot be handled as a Thing: no kind "Other" is registered for version "g.io/v1" in scheme "pkg/runtime/scheme.go:111""#
    );
    assert_eq!(
        refused(r#"{"kind":"Thing","apiVersion":"g.io/v2"}"#),
        r#"Thing in version "v2" cannot be handled as a Thing: no kind "Thing" is registered for version "g.io/v2" in scheme "pkg/runtime/scheme.go:111""#
    );
    assert!(refused(r#"{"apiVersion":"a/b/c"}"#).contains("unexpected GroupVersion string: a/b/c"));
    assert!(refused(r#"{"apiVersion":1}"#).contains("couldn't get version/kind; json parse error: "));
}

#[test]
fn unknown_fields_are_dropped_and_told() {
    let decoded =
        json(r#"{"x":1,"spec":{"y":{},"items":[{"name":"a"},{"name":"b","z":[]}],"A":""}}"#).unwrap();
    assert_eq!(without_default(decoded.clone()), json!({"items": [{"name": "a"}, {"name": "b"}]}));
    assert_eq!(
        decoded.strict_errors,
        [
            r#"unknown field "x""#,
            r#"unknown field "spec.y""#,
            r#"unknown field "spec.items[1].z""#,
            r#"unknown field "spec.A""#
        ]
    );
    assert!(decoded.strict_error(&NAMES).unwrap().status.message.starts_with(
        r#"Thing in version "v1" cannot be handled as a Thing: strict decoding error: unknown field "x", unknown"#
    ));
}

#[test]
fn the_last_of_duplicate_fields_wins() {
    let decoded = json(r#"{"spec":{"a":"1","a":"2","a":"3","map":{"k":"1","k":"2"}}}"#).unwrap();
    assert_eq!(without_default(decoded.clone()), json!({"a": "3", "map": {"k": "2"}}));
    assert_eq!(decoded.strict_errors, [r#"duplicate field "spec.a""#, r#"duplicate field "spec.map.k""#]);
}

#[test]
fn texts_with_a_type_of_their_own_are_refused_by_its_name() {
    let refused = |owner: &str| {
        json(&format!(r#"{{"metadata":{{"ownerReferences":[{owner}]}}}}"#)).map(drop).unwrap_err()
    };
    let error = refused(r#"{"uid":1}"#);
    assert!(error.status.message.ends_with("OwnerReference.metadata.ownerReferences.uid of type types.UID"));
    let error = refused(r#"{"name":1}"#);
    assert!(error.status.message.ends_with("OwnerReference.metadata.ownerReferences.name of type string"));
}

#[test]
fn wrong_types_are_refused_as_go_words_it() {
    assert_eq!(
        spec_refused(r#"{"count":"1"}"#),
        "json: cannot unmarshal string into Go struct field ThingSpec.spec.count of type int32"
    );
    assert_eq!(
        spec_refused(r#"{"count":1.5}"#),
        "json: cannot unmarshal number 1.5 into Go struct field ThingSpec.spec.count of type int32"
    );
    assert_eq!(
        spec_refused(r#"{"count":2147483648}"#),
        "json: cannot unmarshal number 2147483648 into Go struct field ThingSpec.spec.count of type int32"
    );
    assert_eq!(
        spec_refused(r#"{"items":[{"name":{}}]}"#),
        "json: cannot unmarshal object into Go struct field Item.spec.items.name of type string"
    );
    assert_eq!(
        spec_refused(r#"{"items":{}}"#),
        "json: cannot unmarshal object into Go struct field ThingSpec.spec.items of type []v1.Item"
    );
    assert_eq!(
        spec_refused(r#"{"time":1}"#),
        "json: cannot unmarshal number into Go struct field ThingSpec.spec.time of type string"
    );
    assert_eq!(
        spec_refused("[]"),
        "json: cannot unmarshal array into Go struct field Thing.spec of type v1.ThingSpec"
    );
}

#[test]
fn numbers_beyond_64_bits_are_refused() {
    assert!(spec_refused(r#"{"count":99999999999999999999999}"#).contains("of type int32"));
    assert!(refused(r#"{"metadata":{"generation":9223372036854775808}}"#).contains("of type int64"));
}

#[test]
fn a_body_of_null_says_what_a_body_of_no_fields_says() {
    let schema = schema();
    let object = |body: &str, format| decode(body.as_bytes(), format, &NAMES, &schema).unwrap().object;
    assert_eq!(object("null", Format::Json), object("{}", Format::Json));
    assert_eq!(object("", Format::Yaml), object("{}", Format::Yaml));
}

#[test]
fn nulls_are_as_if_absent() {
    assert_eq!(spec(r#"{"a":null,"items":null,"flag":null}"#), json!({}));
    assert_eq!(spec(r#"{"a":"x","a":null}"#), json!({}));
    assert_eq!(
        spec(r#"{"words":[null],"items":[null],"map":{"k":null}}"#),
        json!({"words": [""], "items": [{"name": ""}], "map": {"k": ""}})
    );
}

#[test]
fn empty_optional_fields_are_left_out() {
    assert_eq!(
        spec(r#"{"a":"","items":[],"map":{},"count":0,"flag":false}"#),
        json!({"count": 0, "flag": false})
    );
    assert_eq!(spec(r#"{"items":[{"note":""}]}"#), json!({"items": [{"name": ""}]}));
}

#[test]
fn times_are_written_as_kubernetes_writes_them() {
    assert_eq!(
        spec(r#"{"time":"2024-01-01T01:00:00.9+01:00","micro":"2024-01-01T01:00:00.000000+01:00"}"#),
        json!({"time": "2024-01-01T00:00:00Z", "micro": "2024-01-01T00:00:00.000000Z"})
    );
    assert!(
        spec_refused(r#"{"time":"soon"}"#)
            .starts_with(r#"parsing time "soon" as "2006-01-02T15:04:05Z07:00""#)
    );
}

#[test]
fn free_form_fields_are_kept_as_they_are() {
    let body =
        r#"{"metadata":{"managedFields":[{"fieldsV1":{"f:spec":{".":{},"k":[null,1,"",1.5,true]}}}]}}"#;
    let fields = json(body).unwrap().object.to_value()["metadata"]["managedFields"][0]["fieldsV1"].clone();
    assert_eq!(fields, json!({"f:spec": {".": {}, "k": [null, 1, "", 1.5, true]}}));
}

#[test]
fn the_fields_of_a_manager_come_out_sorted_in_whatever_form_they_came() {
    let sorted = r#"{"managedFields":[{"fieldsV1":{"f:spec":{".":{},"f:a":{},"f:b":{}}},"manager":"m"}]}"#;
    let tree: Value = serde_json::from_str(sorted).unwrap();
    let written = |object: Object| Value::Object(object.metadata()).to_string();
    let body = r#"{"metadata":{"managedFields":[{"manager":"m","fieldsV1":
        {"f:spec":{"f:a":1,"f:b":{ },"f:a":{},".":{}}}, "time": null, "operation": ""}]}}"#;
    for decoded in [
        json(body),
        yaml(
            "metadata:\n  managedFields:\n  - manager: m\n    fieldsV1: {f:spec: {f:b: {}, f:a: {}, .: {}}}\n",
        ),
    ] {
        let object = decoded.unwrap().object;
        assert_eq!(written(object.clone()), sorted);
        assert!(String::from_utf8(object.to_json().to_vec()).unwrap().contains(&sorted[1..]));
    }
    // The result of a patch is a tree; managed fields that are not a list of entries get the same errors as before.
    let mut patched = Object::raw(json!({"metadata": tree}).as_object().unwrap().clone());
    decode_patched(&mut patched, &NAMES, &schema()).unwrap();
    assert_eq!(written(patched), sorted);
    let odd = json(r#"{"metadata":{"managedFields":[{"manager":1}]}}"#).unwrap_err().status.message;
    assert!(odd.contains("cannot unmarshal number into Go struct field"), "{odd}");
    let unknown = json(r#"{"metadata":{"managedFields":[{"x":1,"fieldsV1":{"y":1}}]}}"#).unwrap();
    assert_eq!(unknown.strict_errors, [r#"unknown field "metadata.managedFields[0].x""#]);
    assert_eq!(written(unknown.object), r#"{"managedFields":[{"fieldsV1":{"y":1}}]}"#);
}

#[test]
fn deep_nesting_is_refused_and_not_fatal() {
    let deep = |open: &str, close: &str, n: usize| format!("{}{}", open.repeat(n), close.repeat(n));
    for body in [deep("[", "]", 10_000), deep(r#"{"a":"#, "}", 10_000)] {
        assert_eq!(json(&body).unwrap_err().code(), 400);
        assert_eq!(yaml(&body).unwrap_err().code(), 400);
    }
    let raw = format!(r#"{{"metadata":{{"managedFields":[{{"fieldsV1":{}}}]}}}}"#, deep("[", "]", 10_000));
    assert_eq!(json(&raw).unwrap_err().code(), 400);
    // An unknown field is skipped, but only up to the maximum depth.
    assert_eq!(json(&format!(r#"{{"x":{}}}"#, deep("[", "]", 9_000))).unwrap().strict_errors.len(), 1);
    assert!(refused(&format!(r#"{{"x":{}}}"#, deep("[", "]", 10_000))).contains("exceeded max depth"));
}

#[test]
fn what_follows_the_object_is_refused() {
    for body in ["", " ", "{} {}", "{}]", "1", "\"x\"", "[]", "{", "\u{feff}{}", "{\"a\":\"\\ud800\"}x"] {
        assert_eq!(json(body).unwrap_err().code(), 400, "{body}");
    }
    assert_eq!(
        decode(b"{\"spec\":{\"a\":\"\xff\"}}", Format::Json, &NAMES, &schema()).unwrap_err().code(),
        400
    );
    assert!(refused("nonsense").ends_with("(6e6f6e73656e7365)"));
}

#[test]
fn yaml_is_read_like_json() {
    let decoded =
        yaml("spec:\n  a: x\n  count: 3\n  items:\n  - name: n\n  map: {k: 'v'}\n  nope: 1\n").unwrap();
    assert_eq!(
        without_default(decoded.clone()),
        json!({"a": "x", "count": 3, "items": [{"name": "n"}], "map": {"k": "v"}})
    );
    assert_eq!(decoded.strict_errors, [r#"unknown field "spec.nope""#]);
    assert_eq!(
        without_default(yaml("spec: {map: {1: x, true: y}}").unwrap()),
        json!({"map": {"1": "x", "true": "y"}})
    );
    assert!(
        yaml("spec: {a: 1}")
            .unwrap_err()
            .status
            .message
            .contains("cannot unmarshal number into Go struct field ThingSpec.spec.a of type string")
    );
    for body in ["a: [", "- x", "---\na: 1\n---\nb: 2\n", "x: *y", "spec: {a: !t v}"] {
        assert_eq!(yaml(body).unwrap_err().code(), 400, "{body}");
    }
}

#[test]
fn yaml_aliases_cannot_multiply() {
    let long = "x".repeat(100_000);
    let many: Vec<_> = (0..10_000).map(|i| format!("k{i}: *a")).collect();
    let many = many.join(", ");
    for place in
        [format!("  map: {{{many}}}"), format!("metadata: {{managedFields: [{{fieldsV1: {{{many}}}}}]}}")]
    {
        let message = yaml(&format!("spec:\n  a: &a {long}\n{place}\n")).unwrap_err().status.message;
        assert!(message.contains("excessive aliasing"), "{}", &message[..200]);
    }
}

#[test]
fn a_patched_object_is_made_to_fit() {
    let mut object =
        Object::from(json!({"spec": {"a": "", "x": 1, "count": 2}}).as_object().unwrap().clone());
    assert_eq!(decode_patched(&mut object, &NAMES, &schema()).unwrap(), [r#"unknown field "spec.x""#]);
    assert_eq!(object.into_value(), json!({"spec": {"count": 2, "mode": "auto"}}));
    let mut object = Object::from(json!({"spec": {"count": "2"}}).as_object().unwrap().clone());
    let error = decode_patched(&mut object, &NAMES, &schema()).unwrap_err();
    assert_eq!(error.code(), 422);
    assert_eq!(
        error.status.message,
        r#" "" is invalid: patch: Invalid value: "{\"spec\":{\"count\":\"2\"}}": json: cannot unmarshal string into Go struct field ThingSpec.spec.count of type int32"#
    );
}

/// Regression: the YAML scanner takes time quadratic in depth; three megabytes of `[` kept it busy for minutes.
#[test]
fn much_nesting_does_not_hang() {
    for piece in ["[", "{", "? ", "- ", "a: {", "[a: ", "&a [", "[*a,"] {
        let body = piece.repeat((1 << 20) / piece.len());
        assert_eq!(json(&body).unwrap_err().code(), 400);
        // Brackets nest too deep, and the other structural characters are too many.
        let code = if matches!(piece, "? " | "- ") { 413 } else { 400 };
        assert_eq!(yaml(&body).unwrap_err().code(), code, "{piece}");
        // A stray quote must not hide what follows it.
        assert_eq!(yaml(&format!("a: b\"\nc: {body}")).unwrap_err().code(), code, "{piece}");
    }
    let wide = format!("{}{}", "[".repeat(255), "a,".repeat(100_000));
    assert_eq!(yaml(&wide).unwrap_err().code(), 400);
}

#[test]
fn defaults_stand_for_what_is_absent_or_empty() {
    let mode = |body: &str| json(body).unwrap().object.0.get("spec").map(|spec| spec["mode"].clone());
    assert_eq!(mode(r#"{"spec":{"mode":""}}"#), Some(json!("auto")));
    assert_eq!(mode(r#"{"spec":{"mode":null}}"#), Some(json!("auto")));
    assert_eq!(mode(r#"{"spec":{"mode":"x"}}"#), Some(json!("x")));
    assert_eq!(mode("{}"), None);
}

proptest! {
    #[test]
    fn any_body_is_decoded_or_refused(body in "[\\[\\]{}:,\"a-c0-9 \n*&!-]{0,60}") {
        for format in [Format::Json, Format::Yaml] {
            let _ = decode(body.as_bytes(), format, &NAMES, &schema());
            let _ = decode_value(body.as_bytes(), format);
        }
    }

    #[test]
    fn what_was_decoded_conforms(a in "[a-z]{0,3}", count in any::<i32>(), words in proptest::collection::vec("[a-z]{0,2}", 0..4), extra in "[a-z]{1,3}") {
        let body = json!({"spec": {"a": a, "count": count, "words": words, extra: {"deep": [1]}}}).to_string();
        if let Ok(decoded) = json(&body) {
            let mut again = decoded.object.clone();
            prop_assert_eq!(decode_patched(&mut again, &NAMES, &schema()).unwrap(), Vec::<String>::new());
            prop_assert_eq!(again, decoded.object);
        }
    }
}

#[test]
fn strict_errors_are_bounded() {
    let body: Vec<_> = (0..1000).map(|i| format!(r#""k{i}":1"#)).collect();
    assert_eq!(json(&format!("{{{}}}", body.join(","))).unwrap().strict_errors.len(), 100);
}

/// The body of an apply is YAML by its content type and often JSON by its bytes: it is read as JSON, with the rules
/// of YAML.
#[test]
fn json_that_is_sent_as_yaml_comes_out_as_yaml_does() {
    for text in [
        r#"{"a": {"b": [1, 2.5, -3, true, null, "x: y # z", "yes", "1"]}, "c": {}}"#,
        r#" {"a": 1, "b": {"c": 2, "c": 3}, "a": "last"}"#,
        "{\"a\":\t\"\\t\\\"\\\\\"}\n",
    ] {
        let yaml = decode_value_strictly(text.as_bytes(), Format::Yaml);
        assert_eq!(decode_yaml_strictly(text.as_bytes()), yaml, "{text}");
        assert!(yaml.is_ok(), "{text}");
    }
    for text in
        ["{a: 1}", "a: {b: 1}", "{\"a\": [}", r#"{"a": "\ud83d\ude00"}"#, r#"{"a": "\u0041\/"}"#, "[1]", ""]
    {
        let yaml = decode_value_strictly(text.as_bytes(), Format::Yaml);
        assert_eq!(decode_yaml_strictly(text.as_bytes()), yaml, "{text}");
    }
}
