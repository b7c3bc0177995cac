//! Cases that decode, validate or track objects.

use std::time::Duration;

use drydock_api::eviction_request::{EvictionRequestKind, EvictionRequestStrategy};
use drydock_api::node_maintenance::NodeMaintenanceStrategy;
use drydock_machinery::decode::{self, Format};
use drydock_machinery::kind::{Kind, Now};
use drydock_machinery::managed_fields::{FieldManager, Set};
use drydock_machinery::meta::validate_object_meta_update;
use drydock_machinery::strategy::Strategy;
use drydock_machinery::{ApiError, Object};
use serde_json::{Map, Value, json};

use crate::texts::wrap;
use crate::{MAX, MeasuredCall};

pub fn evictions() -> EvictionRequestKind {
    EvictionRequestStrategy::new(Duration::from_secs(1200)).into_kind()
}

/// Decodes, defaults and validates an object, as a write does.
pub fn object(of_evictions: bool, text: String) -> MeasuredCall {
    Box::new(move || {
        let (a, b) = (evictions(), NodeMaintenanceStrategy.into_kind());
        let kind: &dyn Kind = if of_evictions { &a } else { &b };
        let mut object = decode::decode(text.as_bytes(), Format::Json, kind.names(), kind.schema())?.object;
        kind.set_defaults(&mut object);
        let mut errors = kind.validate_create(&object, Now::UNIX_EPOCH);
        errors.extend(kind.validate_status_update(&object, &Object::default(), Now::UNIX_EPOCH));
        errors.extend(validate_object_meta_update(&object, &object, true));
        Err(ApiError::invalid("g", "k", "n", errors))
    })
}

pub fn fields(kind: &str) -> MeasuredCall {
    let key = |n: usize| if kind == "f:" { format!("f:{n:x}") } else { format!("k:{{\\\"a\\\":{n}}}") };
    let size = if kind == "f:" { 14 } else { 25 };
    let fields: Vec<String> = (0..MAX / size).rev().map(|n| format!("\"{}\":{{}}", key(n))).collect();
    let entry = format!(
        r#"[{{"manager":"m","operation":"Update","apiVersion":"coordination.k8s.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{{"f:spec":{{{}}}}}}}]"#,
        fields.join(",")
    );
    updated(wrap("metadata.managedFields", &entry))
}

pub fn managed(managers: usize, paths: usize) -> MeasuredCall {
    let entry = |m: usize| {
        let fields: Map<String, Value> = (0..paths).map(|n| (format!("f:{m}-{n}"), json!({}))).collect();
        json!({
            "manager": format!("m{m}"), "operation": "Update", "apiVersion": "coordination.k8s.io/v1alpha1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:annotations": fields}},
        })
    };
    let entries: Vec<Value> = (0..managers).map(entry).collect();
    updated(json!({"metadata": {"name": "a", "managedFields": entries}}).to_string())
}

pub fn with_manager<T>(act: impl FnOnce(FieldManager<'_>) -> T) -> T {
    let (kind, reset) = (evictions(), Set::of_fields(&[&["status"]]));
    let api_version = kind.names().api_version();
    let (schema, kind) = (kind.schema(), kind.names().kind);
    act(FieldManager {
        schema,
        api_version: &api_version,
        kind,
        subresource: "",
        reset: &reset,
        versions: None,
    })
}

pub fn updated(text: String) -> MeasuredCall {
    Box::new(move || {
        let kind = evictions();
        let object = decode::decode(text.as_bytes(), Format::Json, kind.names(), kind.schema())?.object;
        with_manager(|manager| {
            manager.update(Some(&Object::default()), object, "me", Now::UNIX_EPOCH).to_json()
        });
        Ok(())
    })
}

pub fn free(text: &str, format: Format) -> MeasuredCall {
    let text = text.to_owned();
    Box::new(move || decode::decode_value_strictly(text.as_bytes(), format).map(drop))
}
