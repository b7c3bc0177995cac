//! Cases for each type of patch.

use drydock_machinery::decode::{self, Format};
use drydock_machinery::kind::{Kind, Now};
use drydock_machinery::patch::{json_patch, merge_patch, strategic_merge_patch};
use drydock_machinery::{ApiError, Object};
use serde_json::{Map, Value, json};

use crate::MeasuredCall;
use crate::objects::{evictions, with_manager};
use crate::texts::list;

pub fn merge() -> MeasuredCall {
    let text = format!("{{\"spec\":{}}}", list("{\"a\":1}"));
    Box::new(move || merge_patch(&json!({}), text.as_bytes()).map(drop))
}

pub fn patch(operation: &dyn Fn(usize) -> Value, count: usize) -> MeasuredCall {
    let large: Map<String, Value> = (0..100_000).map(|n| (n.to_string(), Value::Null)).collect();
    let doc = json!({"a": large, "s": [{"a": 1}, {"a": 1}], "l": vec![0; 100_000]});
    let patch = Value::from((0..count).map(operation).collect::<Vec<_>>()).to_string();
    Box::new(move || json_patch(&doc, patch.as_bytes()).map(drop))
}

pub fn strategic(owners: bool) -> MeasuredCall {
    let metadata = if owners {
        let owner = |n: u32| json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": n.to_string()});
        let items: Vec<Value> = (0..25_000).map(owner).collect();
        let order: Vec<Value> = (0..25_000).map(|n: u32| json!({"uid": n.to_string()})).collect();
        json!({"$setElementOrder/ownerReferences": order, "ownerReferences": items})
    } else {
        json!({"finalizers": (0..300_000).map(|n: u32| n.to_string().into()).collect::<Vec<Value>>()})
    };
    let patch = json!({"metadata": metadata}).to_string();
    let live = json!({"name": "a", "finalizers": ["x"], "ownerReferences": [{"uid": "x".repeat(500_000)}]});
    Box::new(move || {
        let kind = evictions();
        let mut live = json!({"metadata": live}).as_object().cloned().unwrap();
        let mut patch = decode::decode_value(patch.as_bytes(), Format::Json)?.as_object().cloned().unwrap();
        strategic_merge_patch(&mut live, &mut patch, kind.schema())?;
        let restored = decode::from_unstructured(Value::Object(live), kind.names(), kind.schema());
        restored.map(drop).map_err(|refusal| refusal.into_error(ApiError::bad_request))
    })
}

pub fn apply() -> MeasuredCall {
    let object = |value: &str| {
        let annotations: Map<String, Value> = (0..150_000).map(|n| (format!("a{n}"), value.into())).collect();
        json!({
            "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "EvictionRequest",
            "metadata": {"name": "a", "annotations": annotations},
        })
    };
    let (live, patch) = (object("a"), object("b").to_string());
    let live = Object::from(live.as_object().cloned().unwrap());
    let live = with_manager(|manager| manager.update(None, live, "other", Now::UNIX_EPOCH));
    Box::new(move || {
        let (patch, _) = decode::decode_yaml_strictly(patch.as_bytes())?;
        let patch = Object::raw(patch.as_object().cloned().unwrap());
        with_manager(|manager| manager.apply(&live, patch, "me", false, Now::UNIX_EPOCH).map(drop))
    })
}
