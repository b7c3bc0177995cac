//! Properties of any object and patch: a computed difference yields its target, merging it again changes nothing, and
//! no patch adds more than its length.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::strategic_merge_patch;
use super::schema::thing;
use crate::schema::{PatchStrategy, Schema, Shape};

proptest! {
    #[test]
    fn a_difference_yields_what_it_was_taken_from(from in objects(), to in objects()) {
        let patch = differences(&from, &to, &thing());
        let merged = merge(&from, &patch).unwrap();
        prop_assert_eq!(&merged, &to, "{}", Value::Object(patch.clone()));
        prop_assert_eq!(merge(&merged, &patch).unwrap(), to);
    }

    #[test]
    fn an_empty_patch_and_a_patch_of_the_object_itself_change_nothing(object in objects()) {
        prop_assert_eq!(merge(&object, &Map::new()).unwrap(), object.clone());
        prop_assert_eq!(merge(&object, &object).unwrap(), object);
    }

    #[test]
    fn whatever_is_sent_is_merged_or_refused_and_adds_no_more_than_it_is_long(
        object in objects(), patch in patches()
    ) {
        let Value::Object(patch) = patch else { return Ok(()) };
        if let Some(merged) = merge(&object, &patch) {
            let length = |map: &Map<String, Value>| Value::Object(map.clone()).to_string().len();
            prop_assert!(length(&merged) <= length(&object) + length(&patch));
        }
    }
}

fn merge(object: &Map<String, Value>, patch: &Map<String, Value>) -> Option<Map<String, Value>> {
    let (mut object, mut patch) = (object.clone(), patch.clone());
    strategic_merge_patch(&mut object, &mut patch, &thing()).ok().map(|()| object)
}

/// Objects of the schema without empty lists, as they are stored.
fn objects() -> impl Strategy<Value = Map<String, Value>> {
    let name = || prop::sample::select(vec!["a", "b", "c", "d", "e"]);
    let names = move || prop::collection::btree_set(name(), 0..5).prop_shuffled();
    let labels = move || prop::collection::btree_map(name(), name(), 0..3);
    let part = (prop::option::of(1..5), names(), names(), prop::collection::btree_map(0..4, name(), 0..3));
    let parts = (names(), prop::collection::vec(part, 5));
    (names(), names(), labels(), parts, names(), prop::option::of(0..3)).prop_map(
        |(finalizers, owners, labels, (named, parts), words, size)| {
            let owners: Vec<Value> =
                owners.iter().map(|uid| json!({"uid": uid, "name": finalizers.first()})).collect();
            let parts: Vec<Value> = named
                .iter()
                .zip(&parts)
                .map(|(name, (count, tags, opts, ports))| {
                    let ports: Vec<Value> =
                        ports.iter().map(|(port, note)| json!({"port": port, "note": note})).collect();
                    json!({"name": name, "count": count, "tags": tags, "opts": opts, "ports": ports})
                })
                .collect();
            let object = json!({"metadata": {"finalizers": finalizers, "owners": owners, "labels": labels},
                "spec": {"parts": parts, "atoms": owners, "words": words, "labels": labels, "size": size}});
            let Value::Object(object) = full(object) else { panic!("an object") };
            object
        },
    )
}

/// Sets as lists in random order.
trait Shuffled {
    fn prop_shuffled(self) -> BoxedStrategy<Vec<&'static str>>;
}

impl<S: Strategy<Value = std::collections::BTreeSet<&'static str>> + 'static> Shuffled for S {
    fn prop_shuffled(self) -> BoxedStrategy<Vec<&'static str>> {
        self.prop_map(|set| set.into_iter().collect::<Vec<_>>()).prop_shuffle().boxed()
    }
}

/// Removes nulls and empty lists and maps, except `metadata` and `spec`.
fn full(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().map(|(key, value)| (key, full(value)));
            let empty = |v: &Value| v.is_null() || *v == json!([]) || *v == json!({});
            kept.filter(|(key, value)| key == "metadata" || key == "spec" || !empty(value))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.into_iter().map(full).collect(),
        other => other,
    }
}

/// Any JSON whose field names and words have a meaning in the schema.
fn patches() -> impl Strategy<Value = Value> {
    let words = ["a", "b", "delete", "replace", "merge", "name", "uid"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..3i64).prop_map(Value::from),
        Just(json!(1.5)),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 5, |inner| {
        let fields = ["finalizers", "owners", "labels", "parts", "atoms", "words", "ports", "tags"];
        let prefixes = ["", "", "", "$setElementOrder/", "$deleteFromPrimitiveList/", "$setElementOrder"];
        let listed = (prop::sample::select(prefixes.to_vec()), prop::sample::select(fields.to_vec()));
        let plain = ["metadata", "spec", "name", "uid", "port", "size", "$patch", "$retainKeys", ""];
        let key = prop_oneof![
            listed.prop_map(|(prefix, field)| format!("{prefix}{field}")),
            prop::sample::select(plain.to_vec()).prop_map(str::to_owned),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Returns the patch from `from` to `to`, as clients compute it.
fn differences(from: &Map<String, Value>, to: &Map<String, Value>, schema: &Schema) -> Map<String, Value> {
    let mut patch: Map<String, Value> = Map::new();
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, new) in to {
        match (from.get(name), new, schema.field(name)) {
            (Some(old), new, _) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new), Some(schema)) => {
                patch.insert(name.clone(), differences(old, new, schema).into());
            }
            (Some(Value::Array(old)), Value::Array(new), Some(schema)) => {
                list_differences(&mut patch, name, old, new, schema);
            }
            _ => drop(patch.insert(name.clone(), new.clone())),
        }
    }
    patch
}

fn list_differences(
    patch: &mut Map<String, Value>,
    name: &str,
    old: &[Value],
    new: &[Value],
    schema: &Schema,
) {
    let Shape::List(items, _) = &schema.shape else { panic!("no list") };
    let order = format!("$setElementOrder/{name}");
    match schema.patch {
        PatchStrategy::Unset | PatchStrategy::Replace => {
            drop(patch.insert(name.to_owned(), new.to_vec().into()))
        }
        PatchStrategy::Merge => {
            let (gone, come) = (without(old, new), without(new, old));
            patch.insert(format!("$deleteFromPrimitiveList/{name}"), gone.into());
            patch.insert(order, new.to_vec().into());
            patch.insert(name.to_owned(), new.iter().filter(|v| come.contains(v)).cloned().collect());
        }
        PatchStrategy::MergeBy(key) => {
            let known: BTreeMap<String, &Value> =
                old.iter().map(|item| (item[key].to_string(), item)).collect();
            let mut items: Vec<Value> = new.iter().map(|item| changed(&known, item, key, items)).collect();
            let stays = |item: &Value| new.iter().any(|n| n[key] == item[key]);
            items.extend(
                old.iter()
                    .filter(|item| !stays(item))
                    .map(|item| json!({key: item[key], "$patch": "delete"})),
            );
            patch.insert(name.to_owned(), items.into());
            patch.insert(order, new.iter().map(|item| json!({key: item[key]})).collect());
        }
    }
}

fn without(list: &[Value], other: &[Value]) -> Vec<Value> {
    list.iter().filter(|item| !other.contains(item)).cloned().collect()
}

fn changed(known: &BTreeMap<String, &Value>, item: &Value, key: &str, items: &Schema) -> Value {
    match (known.get(&item[key].to_string()), item) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            let mut patch = differences(old, new, items);
            patch.insert(key.to_owned(), item[key].clone());
            patch.into()
        }
        _ => item.clone(),
    }
}
