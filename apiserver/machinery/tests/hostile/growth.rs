//! Bodies that become many times larger when they are decoded.

use drydock_machinery::decode::{
    DecodeError, Decoded, Format, decode, decode_patched, decode_value, decode_yaml_strictly,
    from_unstructured,
};
use drydock_machinery::patch::{json_patch, merge_patch};
use drydock_machinery::{ApiError, Object, protobuf};
use serde_json::{Value, json};

use super::{MAX_FEW_ITEMS, NAMES, schema};

const TOO_MANY: &str = "spec.few: Too many: 1000000: must have at most 100 items";

fn decoded(body: &str, format: Format) -> Result<Decoded, ApiError> {
    decode(body.as_bytes(), format, &NAMES, &schema())
}

fn body(list: &str, item: &str, items: usize) -> String {
    let items = vec![item; items].join(",");
    format!(
        r#"{{"apiVersion":"g.io/v1","kind":"Thing","metadata":{{"name":"a"}},"spec":{{"{list}":[{items}]}}}}"#
    )
}

/// Regression: a million maps with one field took 700 MB before their number was checked.
#[test]
fn items_beyond_the_limit_of_their_list_are_counted_and_not_made() {
    for item in ["{}", "null"] {
        let error = decoded(&body("few", item, 1_000_000), Format::Json).unwrap_err();
        assert_eq!(error.code(), 422, "{error}");
        assert_eq!(error.status.message, format!("Thing.g.io \"a\" is invalid: {TOO_MANY}"));
        let causes = error.status.details.unwrap().causes;
        assert_eq!(
            (causes.len(), &*causes[0].field, &*causes[0].reason),
            (1, "spec.few", "FieldValueTooMany")
        );
    }
    assert!(decoded(&body("few", "{}", MAX_FEW_ITEMS), Format::Json).is_ok());
    let yaml = decoded(&body("few", "{}", MAX_FEW_ITEMS + 1), Format::Yaml).unwrap_err();
    assert!(yaml.status.message.ends_with("spec.few: Too many: 101: must have at most 100 items"), "{yaml}");
}

#[test]
fn what_a_patch_makes_has_no_more_items_either() {
    let items = json!({"metadata": {"name": "a"}, "spec": {"few": vec![json!({}); MAX_FEW_ITEMS + 1]}});
    let why = "Thing.g.io \"a\" is invalid: spec.few: Too many: 101: must have at most 100 items";
    let mut object = Object::raw(items.as_object().unwrap().clone());
    let error = decode_patched(&mut object, &NAMES, &schema()).unwrap_err();
    assert_eq!((error.code(), &*error.status.message), (422, why));
    match from_unstructured(items, &NAMES, &schema()).unwrap_err() {
        DecodeError::Status(error) => assert_eq!((error.code(), &*error.status.message), (422, why)),
        DecodeError::Reason(why) => panic!("{why}"),
    }
}

/// Lists without a limit, maps and free-form values: their memory is counted.
#[test]
fn a_body_takes_a_bounded_multiple_of_itself() {
    for list in ["items", "few"] {
        let error =
            decoded(&body(list, r#"{"name":"","note":"n"}"#, 100).replace("\"n\"", "1"), Format::Json);
        assert_eq!(error.unwrap_err().code(), 400, "{list}");
    }
    let many = decoded(&body("items", "{}", 1_000_000), Format::Json).unwrap_err();
    assert_eq!(many.code(), 413, "{many}");
    assert!(many.status.message.starts_with("Request entity too large: "), "{many}");
    let free = format!("[{}]", vec![r#"{"":0}"#; 400_000].join(","));
    let error = decode_value(free.as_bytes(), Format::Json).unwrap_err();
    assert_eq!(error.code(), 413, "{error}");
}

#[test]
fn an_object_of_ordinary_items_is_not_too_large() {
    let ordinary = body("items", r#"{"name":"a"}"#, 250_000).len();
    assert!(ordinary > 3 << 20);
    assert!(
        decoded(&body("items", r#"{"name":"a","note":"what there is to say of it"}"#, 60_000), Format::Json)
            .is_ok()
    );
}

#[test]
fn messages_of_nothing_are_counted_too() {
    // Field 3 of the object is its spec, field 1 of the spec its items; an item with one field takes four bytes.
    let items = [0x0a, 2, 0x0a, 0].repeat(700_000);
    let mut spec = vec![0x12];
    let mut length = items.len();
    while length >= 0x80 {
        spec.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    spec.push(length as u8);
    spec.extend_from_slice(&items);
    let error = protobuf::decode_message(&spec, &schema()).unwrap_err();
    assert_eq!(error.code(), 413, "{error}");
}

#[test]
fn patches_take_a_bounded_multiple_of_themselves() {
    let small = vec![r#"{"a":1}"#; 350_000].join(",");
    let merge = format!(r#"{{"spec":[{small}]}}"#);
    assert_eq!(merge_patch(&json!({}), merge.as_bytes()).unwrap_err().code(), 413);
    let patch = format!(r#"[{{"op":"add","path":"/a","value":[{small}]}}]"#);
    assert_eq!(json_patch(&json!({}), patch.as_bytes()).unwrap_err().code(), 413);
}

/// Each copy of a list into itself doubles it.
#[test]
fn copies_of_copies_are_bounded() {
    let copy = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    let patch = Value::from(vec![copy; 64]).to_string();
    let error = json_patch(&json!({"a": [{"b": 1}]}), patch.as_bytes()).unwrap_err();
    assert_eq!(error.code(), 422, "{error}");
}

/// Regression: three megabytes of question marks took 600 MB and seconds.
#[test]
fn yaml_of_nothing_but_marks_is_refused_before_it_is_parsed() {
    for mark in ["? ", "- ", "-\n", "a:\n", "{},", "[],", "&a ", "*a "] {
        let error = decode_value(mark.repeat(3_000_000 / mark.len()).as_bytes(), Format::Yaml).unwrap_err();
        assert_eq!(error.code(), 413, "{mark}: {error}");
    }
    let ordinary = "key: a value of some length, with a comma\n- item\n".repeat(60_000);
    assert!(ordinary.len() > 2_500_000);
    let text = format!("text: {}\n", serde_json::Value::from(ordinary));
    assert!(decode_value(text.as_bytes(), Format::Yaml).is_ok());
}

/// Regression: the memory for short items repeated by aliases was used up before their number was too large, and the
/// response was 413.
#[test]
fn aliases_that_repeat_short_items_are_refused_in_the_words_of_the_parser() {
    let mut yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        yaml.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    for refused in [
        decode_yaml_strictly(yaml.as_bytes()).map(drop).unwrap_err(),
        decode_value(yaml.as_bytes(), Format::Yaml).map(drop).unwrap_err(),
    ] {
        assert_eq!(refused.code(), 400, "{refused}");
        assert_eq!(refused.status.message, "yaml: document contains excessive aliasing");
    }
}
