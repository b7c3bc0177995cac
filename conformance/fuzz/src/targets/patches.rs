//! Patches, against an object of each kind.

use std::sync::LazyLock;

use drydock_machinery::Object;
use drydock_machinery::decode::{Format, conform, decode_value};
use drydock_machinery::kind::Kind;
use drydock_machinery::managed_fields::{FieldManager, Set};
use drydock_machinery::patch::{json_patch, merge_patch};
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

fn each<E>(data: &[u8], patch: impl Fn(&Value, &[u8]) -> Result<Value, E>) {
    for (kind, sample) in kinds::all().into_iter().zip(kinds::samples()) {
        let document = Value::Object(sample.0.clone());
        let Ok(patched) = patch(&document, data) else { continue };
        let length = patched.to_string().len();
        assert!(length < GROWTH + 2 * data.len(), "{} bytes became {length}", data.len());
        if let Value::Object(map) = patched {
            tracked(kind, &sample, Object(map));
        }
    }
}

/// What fits the schema is tracked without a panic, and tracking it again changes nothing.
fn tracked(kind: &dyn Kind, old: &Object, mut new: Object) {
    if conform(&mut new, kind.schema()).is_err() {
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
            let config = || Object(config.clone());
            let _ = manager.apply(&sample, config(), "fuzz", false, kinds::now());
            let Ok(Some(once)) = manager.apply(&sample, config(), "fuzz", true, kinds::now()) else { return };
            let twice = manager.apply(&once, config(), "fuzz", false, kinds::now());
            match twice {
                Ok(None) => {}
                Ok(Some(other)) => assert_eq!(once, other, "an apply after itself changes nothing"),
                Err(error) => panic!("applied once, not twice: {}", error.status.message),
            }
        });
    }
}

fn with_manager(kind: &dyn Kind, act: impl FnOnce(FieldManager<'_>)) {
    let api_version = kind.names().api_version();
    act(FieldManager {
        schema: kind.schema(),
        api_version: &api_version,
        kind: kind.names().kind,
        subresource: "",
        reset: &RESET,
    });
}
