//! Label and field selectors: the grammar, its errors, and that a formatted selector can be parsed again.

#![allow(clippy::unwrap_used)]
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::error::ApiError;
use crate::field::Path;
use crate::object::Object;

fn labels(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn matches(selector: &str, labelled: Value) -> bool {
    LabelRequirements::parse(selector).unwrap().matches_labels(Some(&labels(labelled)))
}

fn message(result: Result<impl std::fmt::Debug, ApiError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code(), 400);
    error.status.message
}

#[test]
fn every_operator_selects() {
    let one = || json!({"a": "1", "b/c": "x"});
    for yes in [
        "",
        "a",
        "a=1",
        "a==1",
        "a!=2",
        "z!=2",
        "!z",
        "a in (1,2)",
        "a notin (2)",
        "z notin (1)",
        "a>0",
        "a<2",
        " a = 1 , b/c ",
        "a,b/c in (x)",
    ] {
        assert!(matches(yes, one()), "{yes}");
    }
    for no in [
        "z",
        "a=2",
        "a!=1",
        "!a",
        "a in (2,3)",
        "a notin (1)",
        "z in (1)",
        "a>1",
        "a<1",
        "z>0",
        "b/c>0",
        "a=1,z",
        "a=",
    ] {
        assert!(!matches(no, one()), "{no}");
    }
}

#[test]
fn empty_places_stand_for_the_empty_value() {
    for selector in ["a=", "a in ()", "a in (,b)", "a in (b,)", "a in (b,,c)", "a==,b!=c"] {
        assert!(matches(selector, json!({"a": ""})), "{selector}");
    }
}

#[test]
fn in_and_notin_may_be_names_and_values() {
    assert!(matches("in in (in)", json!({"in": "in"})));
    assert!(matches("notin=notin", json!({"notin": "notin"})));
}

#[test]
fn bad_label_selectors_are_told_in_kubernetes_words() {
    let cases = [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ];
    for (selector, text) in cases {
        assert_eq!(message(LabelRequirements::parse(selector)), text, "{selector}");
    }
    assert!(
        message(LabelRequirements::parse("-a")).starts_with(
            "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of"
        )
    );
    assert!(message(LabelRequirements::parse("a=-")).starts_with(
        "unable to parse requirement: values[0][a]: Invalid value: \"-\": a valid label must be"
    ));
}

#[test]
fn selectors_are_bounded() {
    let many = vec!["a"; TERMS_MAX + 1].join(",");
    assert_eq!(message(LabelRequirements::parse(&many)), "a selector may not have more than 100 terms");
    let many = vec!["metadata.name=a"; TERMS_MAX + 1].join(",");
    assert_eq!(message(FieldSelector::parse(&many, &[])), "a selector may not have more than 100 terms");
}

/// Regression: 15,000 short values in one term took 1 MB, and a watch that kept them was counted as 6 KiB.
#[test]
fn what_a_selector_takes_grows_with_each_value() {
    let values: Vec<String> = (0..15_000).map(|at| at.to_string()).collect();
    let many = LabelRequirements::parse(&format!("a in ({})", values.join(","))).unwrap().bytes();
    assert!(many >= values.len() * (size_of::<String>() + 16), "{many}");
    assert!(LabelRequirements::parse("a=b").unwrap().bytes() < 512);
    let field = FieldSelector::parse(&format!("metadata.name={}", "x".repeat(60_000)), &[]).unwrap();
    assert!(field.bytes() > 60_000);
}

#[test]
fn selectors_of_objects_are_validated_with_paths() {
    let selector = json!({"matchLabels": {"a": "-"}, "matchExpressions": [{"key": "", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["x"]}, {"key": "a", "operator": "in", "values": ["-"]}]});
    let errors: Vec<_> = validate_label_selector(&selector, &Path::new("s"))
        .iter()
        .map(|e| format!("{} {}", e.path, e.to_cause().reason))
        .collect();
    assert_eq!(
        errors,
        [
            "s.matchLabels FieldValueInvalid",
            "s.matchExpressions[0].values FieldValueRequired",
            "s.matchExpressions[0].key FieldValueInvalid",
            "s.matchExpressions[0].key FieldValueInvalid",
            "s.matchExpressions[1].values FieldValueForbidden",
            "s.matchExpressions[2].operator FieldValueInvalid",
            "s.matchExpressions[2].values[0] FieldValueInvalid"
        ]
    );
}

fn thing() -> Object {
    Object::from(labels(json!({"metadata": {"name": "n", "namespace": "s"}, "spec": {"x": "a,b=c\\"}})))
}

#[test]
fn field_selectors_select_on_names_and_the_kinds_own_fields() {
    let matches =
        |selector: &str| FieldSelector::parse(selector, &["spec.x", "spec.y"]).unwrap().matches(&thing());
    for yes in
        ["", ",", "metadata.name=n", "metadata.name==n,metadata.namespace!=t", r"spec.x=a\,b\=c\\", "spec.y="]
    {
        assert!(matches(yes), "{yes}");
    }
    for no in ["metadata.name=m", "metadata.namespace!=s", "spec.y=z"] {
        assert!(!matches(no), "{no}");
    }
    let selector = FieldSelector::parse("metadata.name=n", &[]).unwrap();
    assert_eq!(selector.required_value("metadata.name"), Some("n"));
    assert_eq!(FieldSelector::parse("metadata.name!=n", &[]).unwrap().required_value("metadata.name"), None);
}

#[test]
fn bad_field_selectors_are_told_in_kubernetes_words() {
    let cases = [
        ("x=y", r#""x" is not a known field selector: only "metadata.name", "metadata.namespace""#),
        ("nonsense", "invalid selector: 'nonsense'; can't understand 'nonsense'"),
        ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
        (r"metadata.name=\a", r"invalid field selector: invalid escape sequence: \a"),
        (r"metadata.name=\", r"invalid field selector: invalid escape sequence: \"),
    ];
    for (selector, text) in cases {
        assert_eq!(message(FieldSelector::parse(selector, &[])), text, "{selector}");
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "[a-z!=<>(), \\\\\u{0}é]{0,40}") {
        let _ = LabelRequirements::parse(&text);
        let _ = FieldSelector::parse(&text, &[]);
    }

    #[test]
    fn a_label_selector_reads_its_own_text(text in "(!?[a-z]|[a-z](=|!=)[a-z]?|[a-z] (in|notin) \\([a-z](,[a-z]){0,3}\\)|[a-z][<>][0-9]{1,3})(,[a-z]=b){0,2}") {
        let selector = LabelRequirements::parse(&text).unwrap();
        prop_assert_eq!(LabelRequirements::parse(&selector.to_string()).unwrap(), selector);
    }

    #[test]
    fn a_field_selector_reads_its_own_text(value in "\\PC{0,20}") {
        let selector = FieldSelector { terms: vec![FieldTerm { field: "metadata.name".into(), value, negated: false }] };
        prop_assert_eq!(FieldSelector::parse(&selector.to_string(), &[]).unwrap(), selector);
    }
}
