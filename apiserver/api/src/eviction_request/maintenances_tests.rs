//! Tests of the annotation and the clause: the encoded value fits, and no value causes harm when it is read.

#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::eviction_request::PodInfo;

fn maintenance(name: &str, reason: &str) -> MaintenanceReference {
    MaintenanceReference { name: name.into(), reason: reason.into() }
}

#[test]
fn what_is_encoded_is_read_back() {
    let two = [maintenance("tidy", "RAM \"swap\""), maintenance("b.example", "")];
    assert_eq!(encode(&two), r#"[{"name":"tidy","reason":"RAM \"swap\""},{"name":"b.example"}]"#);
    assert_eq!(decode(&encode(&two)), two);
    assert_eq!((encode(&[]), decode("[]")), ("[]".into(), vec![]));
}

#[test]
fn the_oldest_three_are_named() {
    let five: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| maintenance(name, "r")).into();
    assert_eq!(decode(&encode(&five)), five[..3]);
}

#[test]
fn a_long_reason_is_cut_with_an_ellipsis_and_takes_what_short_ones_leave() {
    let long = "x".repeat(9_000);
    let read = decode(&encode(&[maintenance("a", ""), maintenance("b", &long)]));
    assert_eq!(read[0], maintenance("a", ""));
    assert!(read[1].reason.ends_with("xx\u{2026}") && read[1].reason.len() > 400, "{read:?}");
    let three = [maintenance("a", &long), maintenance("b", &long), maintenance("c", "short")];
    assert!(decode(&encode(&three))[2].reason == "short");
}

#[test]
fn names_that_leave_no_room_for_others_stay_whole() {
    let name = |c: &str| vec![c.repeat(62); 4].join(".");
    let names = [name("a"), name("b"), name("c")].map(|name| maintenance(&name, "because"));
    assert_eq!(decode(&encode(&names)), names[..1]);
}

#[test]
fn an_annotation_that_somebody_else_wrote_is_read_or_ignored() {
    for none in ["", "null", "7", "{}", "[", r#"["a"]"#, r#"[{"reason":"r"}]"#, r#"[{"name":7}]"#] {
        assert_eq!(decode(none), vec![], "{none}");
    }
    let mixed = json!([{"name": "Not A Name"}, {"name": "ok", "reason": "a\nb\u{1b}[31m\u{202e}c\t", "more": [1]}, {"name": ""}]);
    assert_eq!(decode(&mixed.to_string()), vec![maintenance("ok", "a b [31mc")]);
    let deep = "[".repeat(MAX_MAINTENANCES_BYTES);
    assert_eq!(decode(&deep), vec![]);
    let long = json!([{"name": "ok", "reason": "x".repeat(MAX_MAINTENANCES_BYTES)}]);
    assert_eq!(decode(&long.to_string()), vec![]);
}

#[test]
fn the_clause_names_maintenances_reasons_and_the_node() {
    let [a, b, c] = [maintenance("a", "x"), maintenance("b", ""), maintenance("c", "z")];
    assert_eq!(clause(&[], "n"), "");
    assert_eq!(
        clause(&[maintenance("tidy", "RAM swap")], "r1-n1"),
        "for NodeMaintenance tidy (RAM swap) on node r1-n1"
    );
    assert_eq!(clause(&[a.clone(), b.clone()], "n"), "for NodeMaintenances a (x) and b on node n");
    assert_eq!(clause(&[a, b, c], ""), "for NodeMaintenances a (x), b and c (z)");
}

#[test]
fn the_clause_stands_once_before_what_is_said() {
    let clause = "for NodeMaintenance a on node n";
    assert_eq!(with_clause(clause, "Leaving"), "for NodeMaintenance a on node n: Leaving");
    assert_eq!(with_clause(clause, &with_clause(clause, "Leaving")), with_clause(clause, "Leaving"));
    assert_eq!((with_clause(clause, ""), with_clause("", "Leaving")), (clause.into(), "Leaving".into()));
    let longer = "for NodeMaintenance a on node n2: Leaving";
    assert_eq!((without_clause(clause, longer), without_clause("", longer)), (longer, longer));
    assert_eq!(with_clause(clause, longer), format!("{clause}: {longer}"), "it is about another node");
    assert_eq!(without_clause(clause, &with_clause(clause, "Leaving")), "Leaving");
    assert_eq!((without_clause(clause, clause), without_clause(clause, "Leaving")), ("", "Leaving"));
    assert!(has_clause("for NodeMaintenances a and b: x") && has_clause(clause));
    assert!(!has_clause("for NodeMaintenancesque") && !has_clause("Leaving") && !has_clause(""));
}

#[test]
fn a_request_says_why_from_its_annotation_and_its_pod() {
    let mut request = EvictionRequest::named("ns", "uid");
    assert_eq!(clause_of(&request), "");
    let value = encode(&[maintenance("tidy", "")]);
    Arc::make_mut(&mut request.metadata.annotations).insert(MAINTENANCES_ANNOTATION.into(), value);
    assert_eq!(clause_of(&request), "for NodeMaintenance tidy");
    request.status.pod_info = Some(PodInfo { node_name: "n1".into(), ..Default::default() });
    assert_eq!(clause_of(&request), "for NodeMaintenance tidy on node n1");
}

proptest! {
    /// For all names and reasons, the annotation does not exceed its maximum length.
    #[test]
    fn every_list_fits_and_is_read_back_in_order(
        list in prop::collection::vec(("[a-z]([a-z.-]{0,200}[a-z])?", any::<String>()), 0..6),
    ) {
        let list: Vec<_> = list.iter().map(|(name, reason)| maintenance(name, reason)).collect();
        let value = encode(&list);
        prop_assert!(value.len() <= MAX_MAINTENANCES_BYTES, "{} bytes", value.len());
        let read = decode(&value);
        let named: Vec<_> = list.iter().filter(|m| is_name(&m.name)).take(read.len()).map(|m| &m.name).collect();
        prop_assert_eq!(read.iter().map(|m| &m.name).collect::<Vec<_>>(), named);
        prop_assert_eq!(encode(&read), value);
    }

    #[test]
    fn no_value_makes_reading_panic(value in any::<String>()) {
        prop_assert!(decode(&value).len() <= MAX_MAINTENANCES);
    }
}
