//! Entries of several versions: the sample's `v2` differs from `v1`, which is stored, in the name of one field.

use std::sync::Arc;

use drydock_machinery::Object;
use drydock_machinery::kind::{Kind, Names, Now};
use drydock_machinery::managed_fields::{FieldManager, Set};
use drydock_machinery::schema::{Schema, Shape};
use drydock_machinery::versions::{Conversion, ConversionError, Versions};
use serde_json::{Value, json};

struct Sample(Names, Schema);

impl Kind for Sample {
    fn names(&self) -> &Names {
        &self.0
    }
    fn schema(&self) -> &Schema {
        &self.1
    }
}

/// The sample in a version, in which `spec.stage` has the name `stage`.
fn sample(version: &'static str, stage: &'static str) -> Arc<dyn Kind> {
    let names = Names {
        group: "example.io",
        version,
        kind: "Sample",
        plural: "samples",
        singular: "sample",
        short_names: &[],
        categories: &[],
        namespaced: true,
    };
    let mut schema = super::schema::sample();
    let Shape::Object(object) = &mut schema.shape else { panic!("an object") };
    let spec = object.fields.iter_mut().find(|field| field.name == "spec").unwrap();
    let Shape::Object(spec) = &mut spec.schema.shape else { panic!("an object") };
    spec.fields.iter_mut().find(|field| field.name == "stage").unwrap().name = stage;
    Arc::new(Sample(names, schema))
}

/// `spec.stage` is `spec.phase` in `v2`. A stage of "lost" has no form there.
struct Renaming;

fn rename(object: &mut Object, from: &str, to: &str) -> Result<(), ConversionError> {
    let Some(Value::Object(spec)) = object.0.get_mut("spec") else { return Ok(()) };
    match spec.remove(from) {
        Some(stage) if stage == "lost" => Err(ConversionError::new("it is lost")),
        Some(stage) => {
            spec.insert(to.to_owned(), stage);
            Ok(())
        }
        None => Ok(()),
    }
}

impl Conversion for Renaming {
    fn convert_from_storage(&self, object: &mut Object) -> Result<(), ConversionError> {
        rename(object, "stage", "phase")
    }
    fn convert_to_storage(&self, object: &mut Object) -> Result<(), ConversionError> {
        rename(object, "phase", "stage")
    }
}

fn versions() -> Versions {
    Versions::new(sample("v1", "stage")).with_version(sample("v2", "phase"), Renaming).unwrap()
}

fn with_manager<T>(version: &str, act: impl FnOnce(FieldManager<'_>) -> T) -> T {
    let (versions, api_version) = (versions(), format!("example.io/{version}"));
    let kind = versions.kind(&api_version).unwrap();
    let reset = Set::of_fields(&[&["status"]]);
    act(FieldManager {
        schema: kind.schema(),
        api_version: &api_version,
        kind: "Sample",
        subresource: "",
        reset: &reset,
        versions: Some(&versions),
    })
}

fn at(second: i64) -> Now {
    Now::from_second(1_700_000_000 + second).unwrap()
}

fn object(version: &str, spec: Value) -> Object {
    let object = json!({
        "apiVersion": format!("example.io/{version}"), "kind": "Sample",
        "metadata": {"name": "x", "uid": "u"}, "spec": spec,
    });
    Object::from(object.as_object().unwrap().clone())
}

/// Converts an object, as a client of the version would read it.
fn read(object: Object, version: &str) -> Object {
    let from = object.0["apiVersion"].as_str().unwrap().to_owned();
    versions().convert(object, &from, &format!("example.io/{version}")).unwrap()
}

/// `manager version: paths of the spec`
fn owners(object: &Object) -> Vec<String> {
    let entries = object.managed_fields().unwrap_or_default().iter();
    let owner = |entry: Value| {
        let version = entry["apiVersion"].as_str().unwrap().replace("example.io/", "");
        format!("{} {version}: {}", entry["manager"].as_str().unwrap(), entry["fieldsV1"]["f:spec"])
    };
    entries.map(|entry| owner(entry.to_value())).collect()
}

#[test]
fn a_write_takes_a_field_over_under_the_name_that_each_version_has_for_it() {
    let created = object("v1", json!({"stage": "a", "count": 1}));
    let live = with_manager("v1", |manager| manager.update(None, created, "one", at(0)));
    let live = read(live, "v2");
    let mut new = live.clone();
    new.0["spec"]["phase"] = json!("b");
    let live = with_manager("v2", |manager| manager.update(Some(&live), new, "two", at(1)));
    assert_eq!(owners(&live), [r#"one v1: {"f:count":{}}"#, r#"two v2: {"f:phase":{}}"#]);
    let live = read(live, "v1");
    let config = object("v1", json!({"stage": "c"}));
    let refused = with_manager("v1", |manager| manager.apply(&live, config, "three", false, at(2)));
    let message = refused.unwrap_err().status.message;
    let who = "conflict with \"two\" using example.io/v2";
    assert_eq!(message, format!("Apply failed with 1 conflict: {who}: .spec.phase"));
}

/// As managedfields/internal/fieldmanager.go, UpdateNoErrors: an update does not fail because it cannot be tracked.
#[test]
fn an_update_that_cannot_be_converted_is_not_tracked_and_an_apply_fails() {
    let created = object("v2", json!({"phase": "a"}));
    let live = with_manager("v2", |manager| manager.update(None, created, "one", at(0)));
    let live = read(live, "v1");
    let mut new = live.clone();
    new.0["spec"]["stage"] = json!("lost");
    let updated = with_manager("v1", |manager| manager.update(Some(&live), new, "two", at(1)));
    assert!(!updated.has_managed_fields());
    let config = object("v1", json!({"stage": "lost"}));
    let mut patch = config.clone();
    patch.set_meta("uid", None);
    let error = with_manager("v1", |manager| manager.apply(&live, patch, "three", true, at(2))).unwrap_err();
    let why = "cannot convert Sample from example.io/v1 to example.io/v2: it is lost";
    assert_eq!((error.code(), error.status.message), (500, format!("Internal error occurred: {why}")));
}

/// The expected entries are those of managedfields/internal/capmanagers.go: each version has a bucket of its own.
#[test]
fn old_updates_are_merged_by_version() {
    let first = object("v1", json!({"count": 1}));
    let mut live = with_manager("v1", |manager| manager.update(None, first, "m00", at(0)));
    for n in 1..12 {
        let version = ["v1", "v2"][n % 2];
        live = read(live, version);
        let mut new = live.clone();
        new.0["spec"]["map"][format!("k{n:02}")] = json!("v");
        let (name, now) = (format!("m{n:02}"), at(i64::try_from(n).unwrap()));
        live = with_manager(version, |manager| manager.update(Some(&live), new, &name, now));
    }
    let owners = owners(&live);
    assert_eq!(owners.len(), 10, "{owners:?}");
    assert_eq!(owners[0], r#"ancient-changes v1: {"f:count":{},"f:map":{"f:k02":{}}}"#);
    assert_eq!(owners[1], r#"ancient-changes v2: {"f:map":{".":{},"f:k01":{},"f:k03":{}}}"#);
    assert_eq!(owners[2], r#"m04 v1: {"f:map":{"f:k04":{}}}"#);
    assert_eq!(owners[9], r#"m11 v2: {"f:map":{"f:k11":{}}}"#);
}
