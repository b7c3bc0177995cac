//! The kind that a strategy makes, by a Widget.

#![allow(clippy::unwrap_used)]
use std::cell::Cell;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::json;

use super::*;
use crate::field::{Error, Path};
use crate::metav1::ObjectMeta;

thread_local! {
    static DECODED: Cell<u32> = const { Cell::new(0) };
}

/// A Widget has a color.
#[derive(Debug, Default, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "com.example.v1")]
struct Widget {
    /// Metadata.
    #[schema(tag = 1, always)]
    metadata: ObjectMeta,
    /// Spec.
    #[serde(deserialize_with = "counted")]
    #[schema(tag = 2, required)]
    spec: WidgetSpec,
    /// Status.
    #[schema(tag = 3)]
    status: WidgetStatus,
    /// Base color.
    #[schema(tag = 4)]
    base: Color,
}

/// The spec of a Widget.
#[derive(Debug, Default, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "com.example.v1")]
struct WidgetSpec {
    /// Color.
    #[schema(tag = 1)]
    color: Color,
    /// Number of changes.
    #[schema(tag = 2)]
    changes: i32,
    /// Colors of the rooms.
    #[schema(tag = 3)]
    rooms: BTreeMap<String, Color>,
}

/// Colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
enum Color {
    #[default]
    Red,
    Blue,
    #[serde(other)]
    Unknown,
}

/// The status of a Widget.
#[derive(Debug, Default, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "com.example.v1")]
struct WidgetStatus {
    /// Shade.
    #[schema(tag = 1)]
    shade: Color,
}

fn counted<'de, D: Deserializer<'de>>(from: D) -> Result<WidgetSpec, D::Error> {
    DECODED.set(DECODED.get() + 1);
    WidgetSpec::deserialize(from)
}

struct WidgetStrategy;

const NAMES: Names = Names::namespaced("example.com", "v1", "Widget", "widgets", "widget");

impl Strategy for WidgetStrategy {
    type Object = Widget;

    fn names(&self) -> &Names {
        &NAMES
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        new.0.keys().map(|field| format!("{field} is old")).collect()
    }

    fn counts_generation(&self) -> bool {
        false
    }

    fn status_keeps_metadata(&self) -> bool {
        false
    }

    fn prepare_for_update(&self, new: &mut Draft<'_, Widget>, old: &Widget) {
        if new.spec.color != old.spec.color {
            new.edit(|new| new.spec.changes = old.spec.changes + 1);
        }
    }

    fn validate_update(&self, new: &Widget, old: &Widget, _now: Now) -> ErrorList {
        let grew = new.spec.changes - old.spec.changes <= 1;
        let path = Path::new("spec").child("changes");
        if grew { ErrorList::new() } else { vec![Error::invalid(path, new.spec.changes, "too many at once")] }
    }
}

fn object(value: &Value) -> Object {
    Object::from(value.as_object().unwrap().clone())
}

#[test]
fn an_update_decodes_each_object_once_and_its_rules_see_what_was_prepared() {
    let kind = WidgetStrategy.into_kind();
    let old = object(&json!({"spec": {"color": "Red", "changes": 1}, "status": {"shade": "Blue"}}));
    let mut new = object(&json!({"spec": {"color": "Blue", "other": null}, "status": {"shade": "Red"}}));
    DECODED.set(0);
    assert_eq!(kind.before_update(&mut new, &old, Now::UNIX_EPOCH), ErrorList::new());
    assert_eq!(DECODED.get(), 2, "the new and the old object");
    let wanted = json!({"spec": {"color": "Blue", "other": null, "changes": 2}, "status": {"shade": "Blue"}});
    assert_eq!(Value::Object(new.0), wanted);
    DECODED.set(0);
    kind.before_create(&mut object(&json!({"spec": {}})), Now::UNIX_EPOCH);
    assert_eq!(DECODED.get(), 1);
}

#[test]
fn an_unsupported_value_is_an_error_with_what_was_sent() {
    let kind = WidgetStrategy.into_kind();
    let errors = |errors: ErrorList| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut new = object(&json!({"spec": {"color": "green"}, "status": {"shade": "gray"}}));
    let status = kind.validate_status_update(&new, &object(&json!({})), Now::UNIX_EPOCH);
    assert!(errors(status)[0].starts_with("status.shade: Unsupported value: \"gray\""));
    let spec = errors(kind.before_create(&mut new, Now::UNIX_EPOCH));
    assert_eq!(spec, ["spec.color: Unsupported value: \"green\": supported values: \"Red\", \"Blue\""]);
    assert_eq!(new.0["status"], json!({}), "a new object has no status");
    let elsewhere = object(&json!({"spec": {"rooms": {"hall": "gray"}}, "base": "pink"}));
    let all = errors(kind.validate_create(&elsewhere, Now::UNIX_EPOCH)).join("\n");
    assert!(all.contains("spec.rooms[hall]: Unsupported") && all.contains("base: Unsupported"), "{all}");
}

#[test]
fn a_write_of_the_status_changes_the_status_alone() {
    let kind = WidgetStrategy.into_kind();
    let old = object(&json!({"spec": {"color": "Red"}, "base": "Blue", "status": {}}));
    let mut new = object(&json!({"base": "Red", "status": {"shade": "Blue"}, "more": 1}));
    assert_eq!(kind.before_status_update(&mut new, &old, Now::UNIX_EPOCH), ErrorList::new());
    let wanted = json!({"spec": {"color": "Red"}, "base": "Blue", "status": {"shade": "Blue"}});
    assert_eq!(Value::Object(new.0), wanted);
}

#[test]
fn the_kind_decides_as_its_strategy_does() {
    let kind = WidgetStrategy.into_kind();
    assert_eq!(kind.warnings(&object(&json!({"spec": {}})), None), ["spec is old"]);
    assert!(!kind.counts_generation() && !kind.status_keeps_metadata());
}
