//! The tables that `kubectl get` prints.

#![allow(clippy::unwrap_used)]
use jiff::SignedDuration;
use serde_json::json;

use super::*;
use crate::testing::Thing;

fn object() -> Object {
    let meta = json!({"name": "a", "creationTimestamp": "2024-01-01T00:00:00Z"});
    Object::from(
        json!({"apiVersion": "g.io/v1", "kind": "Thing", "metadata": meta, "spec": {}})
            .as_object()
            .unwrap()
            .clone(),
    )
}

fn options(include: IncludeObject, headers: bool) -> TableOptions<'static> {
    TableOptions {
        api_version: "meta.k8s.io/v1",
        include,
        headers,
        now: "2024-01-01T00:05:00Z".parse().unwrap(),
    }
}

#[test]
fn a_table_has_columns_cells_and_metadata() {
    let table = table(
        &Thing::namespaced(),
        [&object()],
        list_meta("7", "", Some(3)),
        options(IncludeObject::default(), true),
    );
    assert_eq!(table["metadata"], json!({"resourceVersion": "7", "remainingItemCount": 3}));
    assert_eq!(
        table["columnDefinitions"][0],
        json!({"name": "Name", "type": "string", "format": "name", "description": "Its name.", "priority": 0})
    );
    assert_eq!(table["rows"][0]["cells"], json!(["a", "5m"]));
    assert_eq!(
        table["rows"][0]["object"],
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object().0["metadata"]})
    );
}

#[test]
fn rows_carry_what_was_asked_for() {
    let row = |include| {
        table(&Thing::namespaced(), [&object()], Map::new(), options(include, false))["rows"][0]["object"]
            .clone()
    };
    assert_eq!(row(IncludeObject::None), Value::Null);
    assert_eq!(row(IncludeObject::Object)["spec"], json!({}));
    assert_eq!(IncludeObject::parse("none"), None);
}

#[test]
fn columns_can_be_left_out() {
    let table = table(&Thing::namespaced(), [], Map::new(), options(IncludeObject::None, false));
    assert_eq!((&table["columnDefinitions"], &table["rows"]), (&json!([]), &json!([])));
}

#[test]
fn the_metadata_of_a_list_says_where_the_next_page_starts() {
    let meta = Value::from(list_meta("7", "next", None));
    assert_eq!(meta, json!({"resourceVersion": "7", "continue": "next"}));
}

#[test]
fn durations_read_as_kubectl_prints_them() {
    let (minute, hour, day) = (60, 3600, 86400);
    let cases = [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * minute, "2m"),
        (5 * minute + 30, "5m30s"),
        (10 * minute + 30, "10m"),
        (179 * minute, "179m"),
        (3 * hour + 5 * minute, "3h5m"),
        (8 * hour + 5 * minute, "8h"),
        (47 * hour, "47h"),
        (2 * day + 3 * hour, "2d3h"),
        (8 * day + 3 * hour, "8d"),
        (729 * day, "729d"),
        (2 * 365 * day, "2y"),
        (3 * 365 * day + 20 * day, "3y20d"),
        (9 * 365 * day + 20 * day, "9y"),
    ];
    for (seconds, text) in cases {
        assert_eq!(human_duration(SignedDuration::from_secs(seconds)), text);
    }
}

#[test]
fn an_object_without_creation_time_has_no_age() {
    assert_eq!(age(&Object::default(), "2024-01-01T00:00:00Z".parse().unwrap()), "<unknown>");
}
