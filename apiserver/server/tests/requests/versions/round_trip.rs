//! The contract of a conversion, by properties.

use drydock_machinery::Object;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{GROUP, alpha, merge, versions};

/// Fields of a spec that both versions have: each absent, or with a value.
fn common_fields() -> impl Strategy<Value = Value> {
    let type_ = option::of(prop::sample::select(vec!["Flunder", "Fischer", "Other"]));
    let tools = prop::collection::btree_map("[a-c]", 0..3_i32, 0..3);
    (type_, option::of(tools)).prop_map(|(type_, tools)| {
        let tools = tools.map(|tools| {
            tools.into_iter().map(|(name, count)| json!({"name": name, "count": count})).collect::<Vec<_>>()
        });
        without_nulls(json!({"referenceType": type_, "tools": tools}))
    })
}

fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(map) = &mut value {
        map.retain(|_, value| !value.is_null());
    }
    value
}

/// A stored object. What decoding never leaves in one is left out: nulls, and annotations without entries.
fn stored() -> impl Strategy<Value = Object> {
    let own = (option::of("[ab]{0,2}"), option::of("[xyz]{0,2}"));
    let annotations = option::of(prop::collection::hash_map("[a-c]", "[a-c]{0,2}", 1..3));
    (common_fields(), own, annotations, any::<bool>()).prop_map(|(mut spec, own, annotations, has_spec)| {
        merge(&mut spec, without_nulls(json!({"reference": own.0, "note": own.1})));
        let entries = json!([{"manager": "m", "operation": "Update", "apiVersion": "g/v1"}]);
        let metadata = json!({"annotations": annotations, "labels": {"a": "b"}, "managedFields": entries});
        let object = alpha(json!({"metadata": without_nulls(metadata), "spec": has_spec.then_some(spec)}));
        object_of(without_nulls(object))
    })
}

/// An object of `v1beta1` that its validation accepts.
fn served() -> impl Strategy<Value = Object> {
    let reference = option::of(("[ab]{1,2}", any::<bool>()));
    (common_fields(), reference, option::of("[xyz]{0,2}")).prop_map(|(mut spec, reference, note)| {
        let fields = spec.as_object_mut().unwrap();
        fields.remove("referenceType");
        if let Some((name, is_fischer)) = reference {
            let (field, type_) =
                if is_fischer { ("fischerReference", "Fischer") } else { ("flunderReference", "Flunder") };
            fields.insert(field.to_owned(), name.into());
            fields.insert("referenceType".to_owned(), type_.into());
        }
        let mut object = super::beta(json!({"spec": spec}));
        if let Some(note) = note {
            merge(&mut object, json!({"metadata": {"annotations": {(super::conversion::NOTE): note}}}));
        }
        object_of(object)
    })
}

fn object_of(value: Value) -> Object {
    Object::from_json(value.to_string().as_bytes()).unwrap()
}

fn convert(object: &Object, from: &str, to: &str) -> Object {
    let [from, to] = [from, to].map(|version| format!("{GROUP}/{version}"));
    versions().convert(object.clone(), &from, &to).unwrap()
}

/// The object without what a conversion may change.
fn unconverted(object: &Object) -> Map<String, Value> {
    let mut tree = object.to_tree();
    tree.retain(|field, _| !matches!(&**field, "apiVersion" | "spec"));
    tree.get_mut("metadata").and_then(Value::as_object_mut).unwrap().remove("annotations");
    tree
}

proptest! {
    #[test]
    fn a_stored_object_survives_the_other_version(stored in stored()) {
        let served = convert(&stored, "v1alpha1", "v1beta1");
        prop_assert_eq!(&served.0["apiVersion"], "wardle.example.com/v1beta1");
        prop_assert_eq!(unconverted(&served), unconverted(&stored));
        for field in ["reference", "note"] {
            prop_assert!(served.0.get("spec").is_none_or(|spec| spec.get(field).is_none()));
        }
        prop_assert_eq!(convert(&served, "v1beta1", "v1alpha1"), stored);
    }

    #[test]
    fn a_valid_object_of_the_other_version_survives_storage(served in served()) {
        let stored = convert(&served, "v1beta1", "v1alpha1");
        prop_assert_eq!(convert(&stored, "v1alpha1", "v1beta1"), served);
    }
}
