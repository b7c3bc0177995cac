//! What surges leave: a number with its record on a Deployment or an autoscaler, and the interceptor's registration on pods.

use drydock_api::eviction_request::interceptor_annotations::PREFIX;
use drydock_api::eviction_request::interceptors::SURGE;
use drydock_runtime::surge_record::{FoundRecord, RECORD};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{ObjectPart, RemovalPlan, SeenVersion, UndoWrite, annotation, with_version};

/// The number where the object has none (k8s.io/kubernetes/pkg/apis, defaults.go of apps and autoscaling).
const DEFAULT_NUMBER: i32 = 1;

/// Takes a surge back from `spec.replicas` of a Deployment.
pub(crate) fn take_back_replicas(deployment: &DynamicObject) -> RemovalPlan {
    take_back(deployment, "replicas", FoundRecord::of_replicas)
}

/// Takes a surge back from `spec.minReplicas` of a HorizontalPodAutoscaler.
pub(crate) fn take_back_min_replicas(autoscaler: &DynamicObject) -> RemovalPlan {
    take_back(autoscaler, "minReplicas", |record| record)
}

/// Takes the interceptor off a pod: no pod waits for it in a later installation.
pub(crate) fn unregister(pod: &DynamicObject) -> RemovalPlan {
    let key = registration();
    if annotation(pod, &key).is_none() {
        return RemovalPlan::Nothing;
    }
    with_version(pod, |seen| {
        let patch = seen.patch(json!({"annotations": {key: null}}), json!({}));
        let effect = "the surge interceptor is not registered any more".to_owned();
        RemovalPlan::Write(vec![UndoWrite { effect, part: ObjectPart::Main, patch }])
    })
}

/// Key of the annotation with which the interceptor registers itself.
pub(crate) fn registration() -> String {
    format!("{PREFIX}priority_{SURGE}")
}

/// Lowers a number by what its record says, and never below what it was before the surge. A record that cannot be read, or
/// is another object's, takes nothing back.
fn take_back(
    object: &DynamicObject,
    field: &str,
    read_as: impl FnOnce(FoundRecord) -> FoundRecord,
) -> RemovalPlan {
    let text = annotation(object, RECORD);
    let uid = object.metadata.uid.as_deref().unwrap_or_default();
    let record = match read_as(FoundRecord::read(text, uid)) {
        FoundRecord::Absent => return RemovalPlan::Nothing,
        FoundRecord::Broken(why) => return leave(field, &why),
        FoundRecord::Valid(record) => record,
    };
    let Some(number) = number(&object.data["spec"][field]) else {
        return leave(field, &format!("spec.{field} is no number of replicas"));
    };
    let left = number - record.to_take_back(number);
    with_version(object, |seen| RemovalPlan::Write(vec![lower(&seen, field, number, left)]))
}

fn lower(seen: &SeenVersion, field: &str, number: i32, left: i32) -> UndoWrite {
    let spec = if left == number { json!({}) } else { json!({"spec": {field: left}}) };
    let effect = if left == number {
        format!("spec.{field} stays {number}, the record of its surge goes")
    } else {
        format!("spec.{field} from {number} to {left}, the record of its surge goes")
    };
    UndoWrite {
        effect,
        part: ObjectPart::Main,
        patch: seen.patch(json!({"annotations": {RECORD: null}}), spec),
    }
}

fn leave(field: &str, why: &str) -> RemovalPlan {
    RemovalPlan::Leave(format!(
        "annotation {RECORD}: {why}. Set spec.{field} as you want it, and remove the annotation"
    ))
}

/// A number of replicas as the API has it: an int32 that is not negative.
fn number(value: &Value) -> Option<i32> {
    if value.is_null() {
        return Some(DEFAULT_NUMBER);
    }
    i32::try_from(value.as_i64()?).ok().filter(|number| *number >= 0)
}

#[cfg(test)]
#[path = "surge_tests.rs"]
mod tests;
