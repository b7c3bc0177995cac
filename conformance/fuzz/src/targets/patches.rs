//! Patches, against an object of each kind.

use std::sync::LazyLock;

use drydock_machinery::Object;
use drydock_machinery::decode::{Format, decode_patched, decode_value, from_unstructured};
use drydock_machinery::kind::Kind;
use drydock_machinery::managed_fields::{FieldManager, Set};
use drydock_machinery::patch::{json_patch, merge_patch, strategic_merge_patch};
use serde_json::Value;

use crate::kinds;

static RESET: LazyLock<Set> = LazyLock::new(|| Set::of_fields(&[&["status"]]));
/// Bytes that a patch may add to an object beyond its own length, all copies together.
const GROWTH: usize = 4 * 1024 * 1024;

/// RFC 6902.
pub fn json(data: &[u8]) {
    each(data, json_patch);
}

/// RFC 7386.
pub fn merge(data: &[u8]) {
    each(data, merge_patch);
}

/// Kubernetes' own: what it makes of an object is no longer than both together, and fits the schema or is refused.
pub fn strategic(data: &[u8]) {
    let Ok(Value::Object(patch)) = decode_value(data, Format::Json) else { return };
    for (kind, sample) in kinds::all().into_iter().zip(kinds::samples()) {
        let (mut document, before) = (sample.to_tree(), sample.to_tree());
        if strategic_merge_patch(&mut document, &mut patch.clone(), kind.schema()).is_err() {
            continue;
        }
        let length = |map: &serde_json::Map<String, Value>| Value::Object(map.clone()).to_string().len();
        assert!(length(&document) <= length(&before) + length(&patch), "a patch adds more than it is long");
        if let Ok((new, _)) = from_unstructured(Value::Object(document), kind.names(), kind.schema()) {
            tracked(kind, &sample, new);
        }
    }
}

fn each<E>(data: &[u8], patch: impl Fn(&Value, &[u8]) -> Result<Value, E>) {
    with_kind(data, |_, document| patch(document, data));
}

fn with_kind<E>(data: &[u8], patch: impl Fn(&dyn Kind, &Value) -> Result<Value, E>) {
    for (kind, sample) in kinds::all().into_iter().zip(kinds::samples()) {
        let document = sample.to_value();
        let Ok(patched) = patch(kind, &document) else { continue };
        let length = patched.to_string().len();
        assert!(length < GROWTH + 2 * data.len(), "{} bytes became {length}", data.len());
        if let Value::Object(map) = patched {
            tracked(kind, &sample, Object::raw(map));
        }
    }
}

/// What fits the schema is tracked without a panic, and tracking it again changes nothing.
fn tracked(kind: &dyn Kind, old: &Object, mut new: Object) {
    if decode_patched(&mut new, kind.names(), kind.schema()).is_err() {
        return;
    }
    with_manager(kind, |manager| {
        let once = manager.update(Some(old), new.clone(), "fuzz", kinds::now());
        let twice = manager.update(Some(&once), once.clone(), "fuzz", kinds::now());
        assert_eq!(once, twice);
    });
}

/// Server-side apply.
pub fn apply(data: &[u8]) {
    let Ok(Value::Object(config)) = decode_value(data, Format::Yaml) else { return };
    for (kind, sample) in kinds::all().into_iter().zip(kinds::samples()) {
        with_manager(kind, |manager| {
            let applied = |live: &Object, force: bool| {
                manager.apply(live, Object::raw(config.clone()), "fuzz", force, kinds::now())
            };
            let restored = |new: Object| {
                from_unstructured(new.into_value(), kind.names(), kind.schema()).map(|(object, _)| object)
            };
            let _ = applied(&sample, false);
            let Ok(Some(Ok(once))) = applied(&sample, true).map(|new| new.map(restored)) else { return };
            if has_null_key(&once) {
                return;
            }
            match applied(&once, false).map(|new| new.map(restored)) {
                Ok(None) => {}
                Ok(Some(other)) => assert_eq!(Ok(once), other, "an apply after itself changes nothing"),
                Err(error) => panic!("applied once, not twice: {}", error.status.message),
            }
        });
    }
}

/// Whether an item of a list is owned by a key that is null. Such an item is stored with its type's zero value, so the
/// next apply does not find it and adds another, as kube-apiserver does; validation refuses empty keys.
fn has_null_key(object: &Object) -> bool {
    let entries = object.managed_fields().unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| entry.fields_v1.as_ref())
        .any(|fields| fields.as_str().contains("\\\":null"))
}

fn with_manager(kind: &dyn Kind, act: impl FnOnce(FieldManager<'_>)) {
    let api_version = kind.names().api_version();
    act(FieldManager {
        schema: kind.schema(),
        api_version: &api_version,
        kind: kind.names().kind,
        subresource: "",
        reset: &RESET,
        versions: None,
    });
}
