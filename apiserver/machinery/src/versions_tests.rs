//! Versions of the crate's own test kind: `v2` has `spec.total` where the stored `v1` has `spec.count`.
#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::testing::Thing;

fn version(version: &'static str) -> Arc<dyn Kind> {
    Arc::new(Thing::namespaced().in_version(version))
}

/// Renames `spec.count`; refuses to store a negative total.
struct Renaming(&'static str);

fn rename(object: &mut Object, from: &str, to: &str) -> Result<(), ConversionError> {
    let Some(Value::Object(spec)) = object.0.get_mut("spec") else { return Ok(()) };
    if let Some(value) = spec.remove(from) {
        if value.as_i64().is_some_and(|count| count < 0) {
            return Err(ConversionError::new(format!("spec.{from} is negative")));
        }
        spec.insert(to.to_owned(), value);
    }
    Ok(())
}

impl Conversion for Renaming {
    fn convert_from_storage(&self, object: &mut Object) -> Result<(), ConversionError> {
        rename(object, "count", self.0)
    }
    fn convert_to_storage(&self, object: &mut Object) -> Result<(), ConversionError> {
        rename(object, self.0, "count")
    }
}

fn versions() -> Versions {
    let versions = Versions::new(Arc::new(Thing::namespaced()) as Arc<dyn Kind>);
    let versions = versions.with_version(version("v2"), Renaming("total")).unwrap();
    versions.with_version(version("v3"), Renaming("sum")).unwrap()
}

fn thing(api_version: &str, spec: Value) -> Object {
    let object = json!({
        "apiVersion": api_version, "kind": "Thing", "spec": spec,
        "metadata": {"name": "a", "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "g.io/v1"}]},
    });
    Object::from_json(object.to_string().as_bytes()).unwrap()
}

#[test]
fn an_object_is_converted_by_way_of_the_stored_version() {
    let [v1, v2, v3] = [("v1", "count"), ("v2", "total"), ("v3", "sum")]
        .map(|(version, field)| thing(&format!("g.io/{version}"), json!({field: 7})));
    let convert = |object: &Object, from, to| versions().convert(object.clone(), from, to);
    assert_eq!(convert(&v1, "g.io/v1", "g.io/v2").as_ref(), Ok(&v2));
    assert_eq!(convert(&v2, "g.io/v2", "g.io/v3").as_ref(), Ok(&v3));
    assert_eq!(convert(&v3, "g.io/v3", "g.io/v1").as_ref(), Ok(&v1));
    // The entries of managed fields keep the version that they have.
    assert_eq!(convert(&v1, "g.io/v1", "g.io/v3").unwrap().managed_fields(), v1.managed_fields());
}

#[test]
fn an_error_names_the_kind_and_both_versions() {
    let error = |object, from, to| versions().convert(object, from, to).unwrap_err().to_string();
    let negative = thing("g.io/v2", json!({"total": -1}));
    let expected = "cannot convert Thing from g.io/v2 to g.io/v1: spec.total is negative";
    assert_eq!(error(negative, "g.io/v2", "g.io/v1"), expected);
    let unknown = "cannot convert Thing from g.io/v1 to g.io/v9: the kind is not served in g.io/v9";
    assert_eq!(error(thing("g.io/v1", json!({})), "g.io/v1", "g.io/v9"), unknown);
}

#[test]
fn only_versions_of_the_same_kind_are_added() {
    let error = versions().with_version(version("v1"), Renaming("x")).unwrap_err();
    assert_eq!(error.to_string(), "g.io/v1, Kind=Thing is there already");
    let error =
        versions().with_version(Arc::new(Thing::cluster()) as Arc<dyn Kind>, Renaming("x")).unwrap_err();
    assert!(matches!(error, VersionsError::OtherKind { .. }), "{error}");
    assert_eq!(versions().kind("g.io/v3").map(|kind| kind.names().version), Some("v3"));
    for unknown in ["g.io/v4", "v1", "other.io/v1"] {
        assert!(versions().kind(unknown).is_none(), "{unknown}");
    }
}

#[test]
fn versions_are_ordered_as_kubernetes_does() {
    // Names of another form come last, even if they look alike.
    let sorted = [
        "v12",
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v1beta1",
        "v12alpha1",
        "v11alpha2",
        "+v1",
        "foo1",
        "foo10",
        "v",
        "v+1",
        "v1beta",
        "v1gamma2",
    ];
    let mut shuffled = sorted;
    shuffled.reverse();
    shuffled.sort_by(|a, b| by_priority(a, b));
    assert_eq!(shuffled, sorted);
}
